"""BERT's masked language model: the papers' baseline, and ELECTRA's generator."""

import keras
from keras import ops

from keras_corrupt.corruption import (
    check_rates,
    gather_tokens,
    mask_tokens,
)
from keras_corrupt.encoders import TransformerEncoder
from keras_corrupt.heads import VocabularyHead
from keras_corrupt.kernels import FusedSteps
from keras_corrupt.models.masked_lm import objective
from keras_corrupt.models.masked_lm.examples import describe_predictions
from keras_corrupt.models.masked_lm.presets import PRESETS
from keras_corrupt.models.pretrainer import Pretrainer


class MaskedLMNetwork(FusedSteps, keras.Model):
    """An encoder with BERT's head: logits over the vocabulary at chosen positions.

    Args:
        encoder: Constructor arguments of `TransformerEncoder`.
    """

    def __init__(self, encoder, **kwargs):
        super().__init__(**kwargs)
        self.encoder = TransformerEncoder(
            **encoder, dtype=self.dtype_policy, name="encoder"
        )
        self.head = VocabularyHead(self.encoder, dtype=self.dtype_policy, name="head")
        self.built = True

    def build(self, inputs_shape=None, positions_shape=None):
        self.built = True

    def compute_output_shape(self, inputs_shape, positions_shape=(None, None)):
        return (*positions_shape, self.encoder.vocabulary_size)

    def call(self, inputs, positions, training=False):
        """Predicts the tokens at `positions`.

        Args:
            inputs: The encoder's inputs.
            positions: int32 `[batch, masked]`.
            training: Whether dropout is active.

        Returns:
            float32 logits, `[batch, masked, vocabulary]`.
        """
        return self.head(self.encoder(inputs, training=training), positions)

    # === What it costs ===

    def flops(self, length, num_masked, training=False):
        """Counts one sequence, forward, with `num_masked` positions predicted."""
        return self.encoder.flops(length, training) + self.head.flops(num_masked)

    def activation_bytes(self, batch_size, length, num_masked, number_bytes):
        """Counts what a training step needs at its peak, the logits included."""
        logits = self.head.activation_bytes(batch_size * num_masked, number_bytes)
        return logits + self.encoder.activation_bytes(batch_size, length, number_bytes)


#: Of the metrics that every model with a masked language model has.
METRIC_NAMES = {
    "mlm_loss": "masked LM loss (nats)",
    "mlm_accuracy": "masked LM accuracy",
}


@keras.saving.register_keras_serializable(package="keras_corrupt")
class MaskedLM(Pretrainer):
    """Pretrains an encoder to predict masked tokens.

    Inputs are dicts of int32 `[batch, length]` arrays `token_ids`, `segment_ids` and
    `padding_mask`, or what else `text_inputs` makes into that: `token_ids` alone, an
    array of ids, lengths that vary from batch to batch. Positions are drawn anew each
    step, unless the inputs have `masked_positions` and `masked_weights` of their own
    (static masking).

    Args:
        encoder: Constructor arguments of `TransformerEncoder`.
        mask_rate: Fraction of tokens to predict.
        keep_rate: Fraction of those that keep their token in the input.
        random_rate: Fraction of those that get a random token. BERT's 80-10-10 is the
            default.
        kwargs: Those of `Pretrainer`.

    Example:

    >>> import keras_corrupt
    >>> model = keras_corrupt.models.MaskedLM.from_preset("tiny")
    >>> model.encoder.hidden_size
    128
    """

    presets = PRESETS
    several_masks = True
    masks_each_token = True
    loss_weights = {"mlm": 1.0}
    metric_names = METRIC_NAMES

    def __init__(
        self, encoder, mask_rate=0.15, keep_rate=0.1, random_rate=0.1, **kwargs
    ):
        super().__init__(
            vocabulary_size=encoder["vocabulary_size"],
            max_length=encoder.get("max_length", 512),
            mask_rate=mask_rate,
            **kwargs,
        )
        check_rates(keep_rate, random_rate)

        # === Layers ===
        self.network = MaskedLMNetwork(
            self.with_padding(encoder), dtype=self.dtype_policy, name="network"
        )
        self.accuracy = keras.metrics.Mean(name="mlm_accuracy")

        # === Config ===
        self.keep_rate = keep_rate
        self.random_rate = random_rate
        self.built = True

    @property
    def networks(self):
        return {"masked_lm": self.network}

    @property
    def encoder(self):
        return self.network.encoder

    @property
    def vocabulary_head(self):
        return self.network.head

    def call(self, inputs, training=False):
        inputs = self.text_inputs(inputs, training)
        masking = self.choose_positions(inputs)
        masked_ids = mask_tokens(
            inputs["token_ids"],
            masking,
            self.mask_id,
            self.vocabulary_size,
            self.keep_rate,
            self.random_rate,
            self.seed_generator,
        )
        logits = self.network(
            {**inputs, "token_ids": masked_ids}, masking.positions, training=training
        )
        return {
            "masked_ids": masked_ids,
            "masked_positions": masking.positions,
            "masked_weights": masking.weights,
            "target_ids": gather_tokens(inputs["token_ids"], masking.positions),
            "mlm_logits": logits,
        }

    def loss_terms(self, outputs):
        loss = objective.masked_lm_loss(outputs["mlm_logits"], outputs["target_ids"])
        return {"mlm": (loss, outputs["masked_weights"])}

    def update_metrics(self, outputs):
        correct = objective.correct_predictions(
            outputs["mlm_logits"], outputs["target_ids"]
        )
        self.accuracy.update_state(correct, outputs["masked_weights"])

    def token_log_probabilities(self, inputs):
        """Returns log p(x_t | all other tokens), normalised, of a pass for each token.

        It masks one token of every text at a time (Salazar et al., 2020). Where the
        inputs have `word_ids`, int32 `[batch, length]`, it masks with it the tokens
        that follow and have the same one (Kauf and Ivanova, 2023).
        """
        token_ids, word_ids = inputs["token_ids"], inputs.get("word_ids")
        batch, length = ops.shape(token_ids)

        def log_probability(_, position):
            places = ops.arange(length, dtype="int32")[None, :]
            positions = ops.broadcast_to(position, (batch, 1))
            masked = places == position
            if word_ids is not None:
                same_word = word_ids == gather_tokens(word_ids, positions)
                masked = ops.logical_and(places >= position, same_word)
            masked_ids = ops.where(masked, self.mask_id, token_ids)
            logits = self.network({**inputs, "token_ids": masked_ids}, positions)
            targets = gather_tokens(token_ids, positions)
            log = -objective.masked_lm_loss(logits, targets)[:, 0]
            return log, log

        positions = ops.arange(length, dtype="int32")
        start = ops.zeros((batch,), "float32")
        return ops.transpose(ops.scan(log_probability, start, positions)[1])

    # === What a run shows ===

    def describe_examples(self, inputs):
        return describe_predictions(self, inputs)

    def baselines(self, metrics, unigram):
        return baselines(unigram)

    def warnings(self, metrics, unigram):
        return warnings(metrics, unigram)

    # === What a step costs ===

    def forward_flops(self, length):
        return self.network.flops(length, self.num_masked(length), training=True)

    def activation_bytes(self, batch_size, length):
        sizes = batch_size, length, self.num_masked(length), self.number_bytes
        return self.network.activation_bytes(*sizes)

    def get_config(self):
        return {
            **super().get_config(),
            "encoder": self.network.encoder.architecture,
            "keep_rate": self.keep_rate,
            "random_rate": self.random_rate,
        }


def baselines(unigram):
    """Returns what guessing by frequency reaches, as `Pretrainer.baselines` does."""
    return {
        "mlm_loss": (unigram.loss, "unigram"),
        "mlm_accuracy": (unigram.accuracy, "unigram"),
    }


def warnings(metrics, unigram):
    """Yields what looks wrong with a masked language model; see `Pretrainer`."""
    if metrics["mlm_loss"] > unigram.loss:
        yield (
            f"the masked language model (loss {metrics['mlm_loss']:.2f}) is no better "
            f"than token frequencies ({unigram.loss:.2f}). Try a lower --learning_rate "
            "or a longer warm-up."
        )
