"""Any number of labels for a text or a pair of texts."""

import keras
import numpy as np
from keras import ops
from scipy.special import expit

from keras_corrupt.downstream.classification_head import (
    ClassificationHead,
    as_list,
)
from keras_corrupt.downstream.model import DownstreamModel
from keras_corrupt.downstream.text_features import format_of_rows, text_features


@keras.saving.register_keras_serializable(package="keras_corrupt")
class MultiLabelClassifier(DownstreamModel):
    """Gives a text each label whose probability reaches a threshold.

    The head is one linear layer on the last hidden vector of `[CLS]`, with a sigmoid
    for each label.

    Args:
        labels: The names of the labels.
        threshold: The least probability of a label that is given. Fine-tuning takes
            the best one on the development examples: see `calibrate`.
        label_weights: For each label, how much a text that has it counts in the loss
            beside a text without it; 1 if not given.
        pairs: Whether it learned from pairs of texts: `predict` reads two texts a row
            if so, and one if not. `None` where it reads what there is.
        kwargs: Arguments of `DownstreamModel`.

    Example:

    >>> from keras_corrupt.tokenizers import SPECIAL_TOKENS, WordPieceTokenizer
    >>> tokenizer = WordPieceTokenizer([*SPECIAL_TOKENS, "good", "bad"])
    >>> classifier = MultiLabelClassifier.from_preset(
    ...     "tiny", tokenizer=tokenizer, labels=["happy", "sad"], threshold=0.0)
    >>> classifier.predictions(["good"])
    [['happy', 'sad']]
    """

    head_arguments = ("labels",)
    label_arguments = ("threshold", "label_weights", "pairs")

    def __init__(
        self,
        encoder,
        tokenizer,
        labels,
        threshold=0.5,
        label_weights=None,
        pairs=None,
        **kwargs,
    ):
        super().__init__(encoder, tokenizer, **kwargs)
        labels, label_weights = as_list(labels), as_list(label_weights)
        if not labels or len(set(labels)) < max(2, len(labels)):
            raise ValueError(
                f"`labels` must be two or more different names; got {labels!r}."
            )
        if label_weights is not None and len(label_weights) != len(labels):
            raise ValueError(
                "`label_weights` must be one for each of `labels`; got "
                f"{label_weights!r}."
            )
        self.labels, self.threshold = labels, float(threshold)
        self.label_weights = label_weights
        self.pairs = pairs
        self.head = ClassificationHead(
            self.encoder, len(labels), self.dropout, name="head"
        )
        self.built = True

    def features(self, examples, labels=None):
        """Encodes strings or pairs of strings; `labels` are lists of names."""
        targets = None if labels is None else list(map(self.target, labels))
        return text_features(self.tokenizer, examples, targets, self.max_length)

    def target(self, names):
        """Returns the targets of a text's labels: 1 for each of these, 0 for others."""
        if isinstance(names, str):
            raise ValueError(f"`labels` are lists of names; got the string {names!r}.")
        if unknown := [name for name in names if name not in self.labels]:
            raise ValueError(
                f"Unknown label {unknown[0]!r}; the model's are {self.labels}."
            )
        return {"labels": tuple(float(label in names) for label in self.labels)}

    def checked_targets(self, targets):
        """Returns the targets' array: a 1 for each label of a text, else 0."""
        array = np.asarray(targets, "float32")
        count = len(self.labels)
        if array.ndim != 2 or array.shape[1] != count:
            raise ValueError(
                f"Targets have the shape (texts, {count}); got {array.shape}."
            )
        if not ((array >= 0) & (array <= 1)).all():
            raise ValueError("Targets are from 0 to 1: whether a text has a label.")
        return array

    def targets_of(self, array):
        return {"labels": ops.cast(array, "float32")}

    @property
    def row_format(self):
        return format_of_rows(self.pairs)

    def head_outputs(self, hidden, inputs, training=False):
        return {"logits": self.head(hidden[:, 0], training=training)}

    def sequence_losses(self, outputs, targets):
        """The sum over labels of the cross-entropy of each label's probability."""
        target, logits = targets["labels"], outputs["logits"]
        losses = ops.binary_crossentropy(target, logits, from_logits=True)
        if self.label_weights is not None:
            weights = ops.convert_to_tensor(self.label_weights, "float32")
            losses *= 1.0 + target * (weights - 1.0)
        return ops.sum(losses, axis=-1)

    def soft_targets(self, features, outputs):
        return [{"labels": expit(output["logits"])} for output in outputs]

    def calibrate(self, outputs, labels):
        """Takes the threshold by which micro F1 is best.

        Args:
            outputs: What `outputs` returned for development examples.
            labels: The examples' lists of labels.
        """
        scores = expit(np.stack([output["logits"] for output in outputs]))
        true = np.array([np.isin(self.labels, list(names)) for names in labels])
        order = np.argsort(-scores, axis=None)
        right = np.cumsum(true.ravel()[order])
        f1 = 2 * right / (np.arange(1, len(right) + 1) + true.sum())
        # Equal scores are given together: only the last one of them ends a choice.
        ranked = scores.ravel()[order]
        f1[:-1][ranked[:-1] == ranked[1:]] = -1.0
        self.threshold = float(ranked[f1.argmax()])

    def decode(self, examples, features, outputs):
        """Returns a list of labels for each example, in the order of `labels`."""
        scores = expit(np.stack([output["logits"] for output in outputs]))
        return [
            [self.labels[i] for i in np.flatnonzero(row >= self.threshold)]
            for row in scores
        ]

    def written(self, examples, predictions, features, outputs):
        """Returns each text's labels, and the probability of every label."""
        rows = [expit(output["logits"]).tolist() for output in outputs]
        return [
            {"labels": names, "probabilities": dict(zip(self.labels, row, strict=True))}
            for names, row in zip(predictions, rows, strict=True)
        ]

    def probabilities(self, examples, batch_size=64):
        """Returns the probability of each label, float32 `[examples, labels]`."""
        outputs = self.outputs(self.features(examples), batch_size)
        return expit(np.stack([output["logits"] for output in outputs]))

    def get_config(self):
        return {
            **super().get_config(),
            "labels": self.labels,
            "threshold": self.threshold,
            "label_weights": self.label_weights,
            "pairs": self.pairs,
        }
