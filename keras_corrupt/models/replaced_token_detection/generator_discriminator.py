"""What systems share in which a generator corrupts text and a discriminator finds out.

ELECTRA and those built on it.
"""

from typing import NamedTuple

import keras
import numpy as np
from keras import ops

from keras_corrupt.encoders import TransformerEncoder
from keras_corrupt.heads import ReplacedTokenHead
from keras_corrupt.kernels import FusedSteps
from keras_corrupt.models.one_state import why_dead
from keras_corrupt.models.pretrainer import Pretrainer
from keras_corrupt.models.replaced_token_detection import objective
from keras_corrupt.models.replaced_token_detection.examples import describe_detections
from keras_corrupt.models.replaced_token_detection.masked_lm_generator import (
    MaskedLMGenerator,
    TwoNetworks,
)
from keras_corrupt.tokenizers.texts import text_tuples

#: Enough to tell logits apart that differ by hundredths, as all do at first.
AUC_THRESHOLDS = 4096


class TokenScores(NamedTuple):
    """A text's tokens and, for each, the probability that it was replaced."""

    tokens: list
    probabilities: np.ndarray


class Discriminator(FusedSteps, keras.Model):
    """An encoder with a binary classifier at every position.

    Args:
        encoder: Constructor arguments of `TransformerEncoder`.
    """

    #: Class of the head, made of the encoder that it reads.
    head_class = ReplacedTokenHead

    def __init__(self, encoder, **kwargs):
        super().__init__(**kwargs)
        self.encoder = TransformerEncoder(
            **encoder, dtype=self.dtype_policy, name="encoder"
        )
        self.head = self.head_class(self.encoder, dtype=self.dtype_policy, name="head")
        # Not by `build`, which would keep a subclass from adding layers.
        self.built = True

    def build(self, input_shape=None):
        self.built = True

    def compute_output_shape(self, input_shape):
        return self.encoder.compute_output_shape(input_shape)[:-1]

    def call(self, inputs, training=False):
        """Returns float32 `[batch, length]`, the logits of "replaced"."""
        return self.head(self.encoder(inputs, training=training))

    # === What it costs ===

    def flops(self, length, num_masked=0, training=False):
        """Counts one sequence, forward; what is masked in it plays no part."""
        return self.encoder.flops(length, training) + self.head.flops(length)

    def activation_bytes(self, batch_size, length, num_masked, number_bytes):
        """Counts what a training step needs at its peak."""
        return self.encoder.activation_bytes(batch_size, length, number_bytes)


class GeneratorDiscriminator(TwoNetworks):
    """Tells tokens of a text from those that a generator has put into it.

    What all such systems have, whatever their generator is. A subclass makes
    `generator` and `discriminator`, and its `call` gives what `update_metrics` reads.

    Args:
        discriminator: Constructor arguments of the discriminator's
            `TransformerEncoder`.
        kwargs: Those of `Pretrainer`.
    """

    metric_names = {
        "rtd_auc": "replaced token detection AUC",
        "rtd_precision": "replaced token detection precision",
        "rtd_recall": "replaced token detection recall",
    }
    vital_metrics = (*Pretrainer.vital_metrics, "rtd_auc")
    examples_legend = (
        "[original > replacement p]: replaced, and the discriminator's\nprobability of "
        "that; <token p>: wrongly suspected"
    )

    def __init__(self, discriminator, **kwargs):
        super().__init__(discriminator, **kwargs)
        self.sampled_accuracy = keras.metrics.Mean(name="sampled_accuracy")
        self.replaced_fraction = keras.metrics.Mean(name="replaced_fraction")
        self.auc = keras.metrics.AUC(num_thresholds=AUC_THRESHOLDS, name="rtd_auc")
        self.precision = keras.metrics.Precision(name="rtd_precision")
        self.recall = keras.metrics.Recall(name="rtd_recall")

    def update_metrics(self, outputs):
        super().update_metrics(outputs)
        targets, masked = outputs["target_ids"], outputs["masked_weights"]
        same = ops.cast(outputs["sampled_ids"] == targets, "float32")
        self.sampled_accuracy.update_state(same, masked)

        replaced, real = outputs["replaced"], outputs["rtd_weights"]
        self.replaced_fraction.update_state(replaced, real)
        logits = outputs["rtd_logits"]
        # The area is the same on any scale. On this one Keras's thresholds, which are
        # evenly spaced, are closest where the logits begin and most of them stay.
        self.auc.update_state(replaced, ops.sigmoid(0.5 * logits + 1.0), real)
        for metric in (self.precision, self.recall):
            metric.update_state(replaced, ops.sigmoid(logits), real)

    def detect(self, inputs):
        """Returns the logits of "replaced" of a text as it is.

        Args:
            inputs: A dict of the three arrays of every text model, NumPy.

        Returns:
            float32 `[batch, length]`, NumPy.
        """
        return self.discriminator.predict_on_batch(inputs)

    def score(self, texts, batch_size=32):
        """Gives each token of each text the probability that it was replaced.

        Args:
            texts: A list of strings, or of pairs of strings.
            batch_size: Texts in a batch.

        Returns:
            A list of `TokenScores`, special tokens included.

        Raises:
            ValueError: The model has no tokenizer, something is no text or too long
                for the model, or `batch_size` is less than 1.
        """
        if not batch_size >= 1:
            raise ValueError(f"`batch_size` must be 1 or more; got {batch_size!r}.")
        if self.tokenizer is None:
            raise ValueError(
                "`score` reads raw strings and needs the model's tokenizer: load a "
                "saved preset, or pass `tokenizer` to `from_preset`."
            )
        texts = text_tuples(texts)
        scores = []
        for start in range(0, len(texts), batch_size):
            inputs = self.tokenizer.pack(
                texts[start : start + batch_size], self.max_length, first=start
            )
            probabilities = 1.0 / (1.0 + np.exp(-self.detect(inputs)))
            lengths = inputs["padding_mask"].sum(axis=1)
            for ids, row, length in zip(
                inputs["token_ids"], probabilities, lengths, strict=True
            ):
                tokens = self.tokenizer.tokens(ids[:length])
                scores.append(TokenScores(tokens, row[:length]))
        return scores

    # === What a run shows ===

    def describe_examples(self, inputs):
        return describe_detections(self, inputs)

    def baselines(self, metrics, unigram):
        return {**super().baselines(metrics, unigram), **random_detector(metrics)}

    def warnings(self, metrics, unigram):
        yield from super().warnings(metrics, unigram)
        if metrics["rtd_auc"] < 0.55:
            yield (
                "the discriminator does not tell replaced tokens from original ones "
                f"(AUC {metrics['rtd_auc']:.2f}, recall {metrics['rtd_recall']:.2f}). "
                "Try a lower --learning_rate, a longer warm-up, or more steps."
            )

    def collapse(self, metrics):
        return why_dead(metrics["token_spread"], metrics["rtd_auc"])

    def generator_warnings(self, metrics, unigram):
        yield from super().generator_warnings(metrics, unigram)
        if metrics["sampled_accuracy"] > 0.8:
            yield (
                "the generator restores most tokens, so that few are replaced "
                f"({metrics['replaced_fraction']:.3f} of all). Try a smaller generator "
                "or a higher --mask_rate."
            )


class ReplacedTokenDetection(MaskedLMGenerator, GeneratorDiscriminator):
    """Corrupts text with a masked language model and detects what was replaced.

    A subclass makes `generator`, a `MaskedLMNetwork`, and `discriminator`, a
    `Discriminator`. Inputs are as for `MaskedLM`.

    Args:
        kwargs: Those of `MaskedLMGenerator`.
    """

    metric_names = {
        **MaskedLMGenerator.metric_names,
        **GeneratorDiscriminator.metric_names,
    }

    def corrupt(self, inputs, training=False):
        """Masks some tokens, and fills their places: see `MaskedLMGenerator.corrupt`.

        Args:
            inputs: The model's inputs.
            training: Whether dropout is active.

        Returns:
            A dict, with what the discriminator's loss needs, too.
        """
        outputs = super().corrupt(inputs, training)
        return {
            **outputs,
            "replaced": objective.replaced_labels(
                inputs["token_ids"], outputs["corrupted_ids"]
            ),
            "rtd_weights": inputs["padding_mask"],
        }

    def loss_terms(self, outputs):
        rtd = objective.replaced_token_detection_loss(
            outputs["rtd_logits"], outputs["replaced"]
        )
        return {**super().loss_terms(outputs), "rtd": (rtd, outputs["rtd_weights"])}


def random_detector(metrics):
    """Scores a detector that flags as many tokens as the model did, but at random.

    Args:
        metrics: The model's validation metrics.

    Returns:
        A dict as of `Pretrainer.baselines`: its AUC, its precision (the fraction
        replaced) and its recall (the fraction flagged).
    """
    replaced = metrics["replaced_fraction"]
    precision, recall = metrics["rtd_precision"], metrics["rtd_recall"]
    flagged = recall * replaced / precision if precision else 0.0
    return {
        "rtd_auc": (0.5, "chance"),
        "rtd_precision": (replaced, "chance"),
        "rtd_recall": (flagged, "chance"),
    }
