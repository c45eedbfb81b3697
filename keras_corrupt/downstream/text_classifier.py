"""A label or a number for a text or a pair of texts (Clark's thesis, 5.2.4)."""

import keras
import numpy as np
from keras import ops
from scipy.special import softmax

from keras_corrupt.downstream.answering import labelled
from keras_corrupt.downstream.array_targets import (
    as_column,
    class_numbers,
    class_targets,
)
from keras_corrupt.downstream.classification_head import (
    ClassificationHead,
    as_list,
)
from keras_corrupt.downstream.model import DownstreamModel
from keras_corrupt.downstream.soft_targets import cross_entropy
from keras_corrupt.downstream.text_features import format_of_rows, text_features


@keras.saving.register_keras_serializable(package="keras_corrupt")
class TextClassifier(DownstreamModel):
    """Classifies texts or pairs of texts, or rates them with a number.

    The head is one linear layer on the last hidden vector of `[CLS]`. Texts longer
    than `max_length` are cut at their end, the longer one of a pair first.

    Args:
        labels: The names of the classes; `None` for a number.
        score_range: For a number, the least and the greatest; the head learns where
            in this range a text lies.
        score_activation: For a number, `"sigmoid"` to keep it within the range, as
            Clark's thesis does in 3.2.1; `None` for the head's output as it is.
        label_weights: For classes, how much an example of each counts in the loss; 1
            if not given. With soft targets it is the mean by the targets.
        pairs: Whether it learned from pairs of texts: `predict` reads two texts a row
            if so, and one if not. `None` where it reads what there is.
        kwargs: Arguments of `DownstreamModel`.

    Example:

    >>> from keras_corrupt.tokenizers import SPECIAL_TOKENS, WordPieceTokenizer
    >>> tokenizer = WordPieceTokenizer([*SPECIAL_TOKENS, "good", "bad"])
    >>> classifier = TextClassifier.from_preset(
    ...     "tiny", tokenizer=tokenizer, labels=["negative", "positive"])
    >>> classifier.probabilities(["good", "bad bad"]).shape
    (2, 2)
    """

    head_arguments = ("labels", "score_range", "score_activation")
    label_arguments = ("label_weights", "pairs")

    def __init__(
        self,
        encoder,
        tokenizer,
        labels=None,
        score_range=None,
        score_activation=None,
        label_weights=None,
        pairs=None,
        **kwargs,
    ):
        super().__init__(encoder, tokenizer, **kwargs)
        labels, score_range = as_list(labels), as_list(score_range)
        label_weights = as_list(label_weights)
        if (labels is None) == (score_range is None):
            raise ValueError(
                "Give either `labels`, the classes' names, or `score_range`; got "
                f"labels={labels!r}, score_range={score_range!r}."
            )
        if labels is not None and len(set(labels)) != len(labels) or labels == []:
            raise ValueError(f"`labels` must be different names; got {labels!r}.")
        if score_range is not None and not score_range[0] < score_range[1]:
            raise ValueError(
                f"`score_range` must be (least, greatest); got {score_range!r}."
            )
        if score_activation not in (None, "sigmoid") or score_activation and labels:
            raise ValueError(
                "`score_activation` is None or, for a model with `score_range`, "
                f"'sigmoid'; got {score_activation!r}."
            )
        self.labels = labels
        self.score_range = score_range
        self.score_activation = score_activation
        if label_weights is not None and len(label_weights) != len(labels or ()):
            raise ValueError(
                "`label_weights` must be one for each of `labels`; got "
                f"{label_weights!r}."
            )
        self.label_weights = label_weights
        self.pairs = pairs
        units = 1 if labels is None else len(labels)
        self.head = ClassificationHead(self.encoder, units, self.dropout, name="head")
        self.built = True

    def features(self, examples, labels=None):
        """Encodes strings or pairs of strings; see `DownstreamModel.features`."""
        targets = None if labels is None else list(map(self.target, labels))
        return text_features(self.tokenizer, examples, targets, self.max_length)

    def target(self, label):
        """Returns the targets of a label: its index, or its place in the range."""
        if self.labels is None:
            low, high = self.score_range
            if not low <= float(label) <= high:
                raise ValueError(
                    f"The score {label!r} is not within score_range={self.score_range}."
                )
            return {"score": (float(label) - low) / (high - low)}
        if label not in self.labels:
            raise ValueError(f"Unknown label {label!r}; the model's are {self.labels}.")
        return {"label": self.labels.index(label)}

    @property
    def head_config(self):
        """See `DownstreamModel`; without an activation, as before there was one."""
        config = super().head_config
        if self.score_activation is None:
            del config["score_activation"]
        return config

    @property
    def input_limits(self):
        return super().input_limits._replace(num_labels=len(self.labels or ()))

    @property
    def row_format(self):
        return format_of_rows(self.pairs)

    def checked_targets(self, targets):
        """Returns numbers of classes, or distributions over them, or scores."""
        if self.labels is not None:
            return class_numbers(targets, self.labels)
        scores = as_column(np.asarray(targets, "float32"))
        for score in scores.tolist():
            self.target(score)
        return scores

    def targets_of(self, array):
        """Returns the targets of what `checked_targets` returns."""
        if self.labels is not None:
            return class_targets(array)
        low, high = self.score_range
        scores = ops.cast(as_column(array), "float32")
        return {"score": (scores - low) / (high - low)}

    def head_outputs(self, hidden, inputs, training=False):
        logits = self.head(hidden[:, 0], training=training)
        if self.score_activation:  # then it is the place in the range
            logits = ops.sigmoid(logits)
        return {"logits": logits}

    def sequence_losses(self, outputs, targets):
        """Cross-entropy, or the squared error of the place in the range."""
        logits = outputs["logits"]
        if self.labels is None:
            return ops.square(logits[:, 0] - targets["score"])
        losses = cross_entropy(targets["label"], logits)
        if self.label_weights is None:
            return losses
        return losses * self.weights_of(targets["label"])

    def weights_of(self, target):
        """Returns the weights of classes, or of distributions over them."""
        weights = ops.convert_to_tensor(self.label_weights, "float32")
        if len(target.shape) == 1:
            return ops.take(weights, target)
        return ops.matmul(target, weights[:, None])[:, 0]

    def soft_targets(self, features, outputs):
        if self.labels is None:
            return [{"score": output["logits"][0]} for output in outputs]
        return [{"label": softmax(output["logits"], axis=-1)} for output in outputs]

    def decode(self, examples, features, outputs):
        """Returns a label, or a number within the range, for each example."""
        logits = np.stack([output["logits"] for output in outputs])
        if self.labels is not None:
            return [self.labels[i] for i in logits.argmax(axis=1)]
        low, high = self.score_range
        return (low + (high - low) * logits[:, 0]).clip(low, high).tolist()

    def written(self, examples, predictions, features, outputs):
        """Returns each label with all labels' probabilities, or each score."""
        if self.labels is None:
            return [{"score": score} for score in predictions]
        rows = [softmax(output["logits"], axis=-1) for output in outputs]
        return labelled(predictions, self.labels, rows)

    def probabilities(self, examples, batch_size=64):
        """Returns the probability of each label, float32 `[examples, labels]`."""
        if self.labels is None:
            raise ValueError("The model rates texts with a number; it has no labels.")
        outputs = self.outputs(self.features(examples), batch_size)
        logits = np.stack([output["logits"] for output in outputs])
        return softmax(logits, axis=-1)

    def get_config(self):
        return {
            **super().get_config(),
            "labels": self.labels,
            "score_range": self.score_range,
            "score_activation": self.score_activation,
            "label_weights": self.label_weights,
            "pairs": self.pairs,
        }
