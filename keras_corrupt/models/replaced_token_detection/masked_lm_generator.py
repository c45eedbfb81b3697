"""A masked language model whose samples take the places of tokens."""

import keras
import numpy as np
from keras import ops

from keras_corrupt.corruption import (
    check_rates,
    gather_tokens,
    mask_tokens,
    replace_tokens,
    sample_negatives,
    sample_tokens,
)
from keras_corrupt.encoders import TransformerEncoder
from keras_corrupt.models.masked_lm import masked_lm, objective
from keras_corrupt.models.pretrainer import Pretrainer


class TwoNetworks(Pretrainer):
    """A generator that corrupts text, and the network that learns from it and is kept.

    A subclass makes them, `generator` and `discriminator`. Both count what they cost as
    `MaskedLMNetwork` does.

    Args:
        discriminator: Constructor arguments of the `TransformerEncoder` that is kept.
        kwargs: Those of `Pretrainer`.
    """

    network_arguments = {"discriminator": TransformerEncoder}
    several_masks = True

    def __init__(self, discriminator, **kwargs):
        super().__init__(
            vocabulary_size=discriminator["vocabulary_size"],
            max_length=discriminator.get("max_length", 512),
            **kwargs,
        )

    @property
    def networks(self):
        return {"generator": self.generator, "discriminator": self.discriminator}

    @property
    def encoder(self):
        return self.discriminator.encoder

    def warnings(self, metrics, unigram):
        yield from self.generator_warnings(metrics, unigram)

    def generator_warnings(self, metrics, unigram):
        """Yields what of `warnings` is about the generator: too good, or too bad."""
        yield from ()

    # === What a step costs ===

    def forward_flops(self, length):
        """Counts both networks, dropout included.

        They share embedding tables but read different sequences, so each pays for its
        own look-ups.
        """
        sizes = length, self.num_masked(length)
        generator = self.generator.flops(*sizes, training=True)
        return generator + self.discriminator.flops(*sizes, training=True)

    def activation_bytes(self, batch_size, length):
        """Counts the higher of two peaks.

        A generator's activations are given free before the discriminator has run: one
        peak is the vocabulary's logits and their gradient with the generator's
        activations, the other the discriminator with the logits that are left.
        """
        sizes = batch_size, length, self.num_masked(length), self.number_bytes
        generator = self.generator.activation_bytes(*sizes)
        positions = batch_size * self.num_masked(length)
        logits = self.generator.head.activation_bytes(positions, self.number_bytes) // 2
        return max(generator, logits + self.discriminator_bytes(batch_size, length))

    def discriminator_bytes(self, batch_size, length):
        """Counts the second network's activations of a step."""
        sizes = batch_size, length, self.num_masked(length), self.number_bytes
        return self.discriminator.activation_bytes(*sizes)

    def get_config(self):
        return {
            **super().get_config(),
            "discriminator": self.discriminator.encoder.architecture,
        }


class MaskedLMGenerator(TwoNetworks):
    """Fills masked positions with the samples of a masked language model.

    A subclass makes `generator`, a `MaskedLMNetwork`. Inputs are as for `MaskedLM`.

    Args:
        discriminator: Constructor arguments of the `TransformerEncoder` that is kept.
        keep_rate: Fraction of the chosen positions that keep their token in the
            generator's input.
        temperature: By what the logits are divided before tokens are drawn from their
            softmax: above 1, the generator is a weaker one (Clark's thesis, 5.5).
        exclude_original: Whether the original token is never drawn (5.5).
        kwargs: Those of `Pretrainer`.
    """

    metric_names = masked_lm.METRIC_NAMES

    def __init__(
        self,
        discriminator,
        keep_rate=0.0,
        temperature=1.0,
        exclude_original=False,
        **kwargs,
    ):
        super().__init__(discriminator, **kwargs)
        check_rates(keep_rate)
        if isinstance(temperature, str) or not 0 < temperature < np.inf:
            raise ValueError(
                "`temperature` must be more than 0 (1 for the generator's own softmax, "
                f"more for a flatter one); got {temperature!r}."
            )
        self.keep_rate = keep_rate
        self.temperature = temperature
        self.exclude_original = exclude_original
        self.accuracy = keras.metrics.Mean(name="mlm_accuracy")

    def corrupt(self, inputs, training=False):
        """Masks some tokens, and fills their places with the generator's samples.

        Args:
            inputs: The model's inputs.
            training: Whether dropout is active.

        Returns:
            A dict of what the generator's loss and the other network need; its
            `corrupted_ids`, int32 `[batch, length]`, are what the latter reads.
        """
        token_ids = inputs["token_ids"]
        masking = self.choose_positions(inputs)
        masked_ids = mask_tokens(
            token_ids,
            masking,
            self.mask_id,
            self.vocabulary_size,
            self.keep_rate,
            0.0,
            self.seed_generator,
        )
        masked = {**inputs, "token_ids": masked_ids}
        predicted = self.generate(masked, masking.positions, training)
        target_ids = gather_tokens(token_ids, masking.positions)
        sampled_ids = self.sample_replacements(
            masked, masking.positions, target_ids, predicted["mlm_logits"], training
        )
        return {
            "masked_ids": masked_ids,
            "masked_positions": masking.positions,
            "masked_weights": masking.weights,
            "target_ids": target_ids,
            **predicted,
            "sampled_ids": sampled_ids,
            "corrupted_ids": replace_tokens(token_ids, masking, sampled_ids),
        }

    def generate(self, masked, positions, training):
        """Runs the generator.

        Args:
            masked: Its inputs.
            positions: int32 `[batch, masked]`.
            training: Whether dropout is active.

        Returns:
            A dict of outputs, among them float32 `mlm_logits`, `[batch, masked,
            vocabulary]`.
        """
        return {"mlm_logits": self.generator(masked, positions, training=training)}

    def sample_replacements(self, masked, positions, target_ids, mlm_logits, training):
        """Draws the tokens that come to the masked positions.

        Args:
            masked: The generator's inputs.
            positions: int32 `[batch, masked]`.
            target_ids: int32 `[batch, masked]`, the original tokens.
            mlm_logits: float32 `[batch, masked, vocabulary]`, those it learns from.
            training: Whether dropout is active in them.

        Returns:
            int32 `[batch, masked]`, samples of the generator; no gradient flows.
        """
        if self.temperature != 1:
            mlm_logits = ops.stop_gradient(mlm_logits) / self.temperature
        if self.exclude_original:
            drawn = sample_negatives(mlm_logits, target_ids, 1, self.seed_generator)
            return drawn[..., 0]
        return sample_tokens(mlm_logits, self.seed_generator)

    def loss_terms(self, outputs):
        mlm = objective.masked_lm_loss(outputs["mlm_logits"], outputs["target_ids"])
        return {"mlm": (mlm, outputs["masked_weights"])}

    def update_metrics(self, outputs):
        targets, masked = outputs["target_ids"], outputs["masked_weights"]
        correct = objective.correct_predictions(outputs["mlm_logits"], targets)
        self.accuracy.update_state(correct, masked)
        super().update_metrics(outputs)

    # === What a run shows ===

    def baselines(self, metrics, unigram):
        return {**super().baselines(metrics, unigram), **masked_lm.baselines(unigram)}

    def generator_warnings(self, metrics, unigram):
        yield from masked_lm.warnings(metrics, unigram)
        yield from super().generator_warnings(metrics, unigram)

    def get_config(self):
        return {
            **super().get_config(),
            "keep_rate": self.keep_rate,
            "temperature": self.temperature,
            "exclude_original": self.exclude_original,
        }
