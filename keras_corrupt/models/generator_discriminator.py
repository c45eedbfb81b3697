"""What systems share in which a generator corrupts text and a discriminator finds out.

ELECTRA and those built on it.
"""

from typing import NamedTuple

import numpy as np

from keras_corrupt.corruption.corrupters import MaskedLMCorrupter, TokenMasker
from keras_corrupt.encoders import TransformerEncoder
from keras_corrupt.models.networks import sizes_of
from keras_corrupt.models.pretrainer import Pretrainer
from keras_corrupt.objectives.replaced_tokens import ReplacedTokens
from keras_corrupt.tokenizers.texts import text_tuples


class TokenScores(NamedTuple):
    """A text's tokens and, for each, the probability that it was replaced."""

    tokens: list
    probabilities: np.ndarray


class GeneratorDiscriminator(Pretrainer):
    """A generator that corrupts text, and the network that reads it and is kept.

    A subclass makes them, `generator` and `discriminator`. Both count what they cost as
    `MaskedLMNetwork` does.

    Args:
        discriminator: The discriminator's `TransformerEncoder`, or its constructor
            arguments.
        kwargs: Arguments of `Pretrainer`.
    """

    network_arguments = {
        "discriminator": TransformerEncoder,
        "generator": TransformerEncoder,
    }
    several_masks = True

    #: Batches whose texts `score` sorts by length: few are padded for a long one then.
    sorted_batches = 32

    def __init__(self, discriminator, **kwargs):
        sizes = sizes_of(discriminator)
        super().__init__(
            vocabulary_size=sizes["vocabulary_size"],
            max_length=sizes.get("max_length", 512),
            **kwargs,
        )

    @property
    def networks(self):
        return {"generator": self.generator, "discriminator": self.discriminator}

    @property
    def encoder(self):
        return self.discriminator.encoder

    def masked_lm_corrupter(self, keep_rate, temperature, exclude_original):
        """Returns a `MaskedLMCorrupter` of the generator, with these options."""
        mask = TokenMasker(self.masker, self.mask_id, self.vocabulary_size, keep_rate)
        return MaskedLMCorrupter(self.generator, mask, temperature, exclude_original)

    def detect(self, inputs):
        """Returns the logits of "replaced" of a text as it is.

        Args:
            inputs: A dict of the three arrays of every text model, NumPy.

        Returns:
            float32 `[batch, length]`, NumPy.

        Raises:
            ValueError: The model does not learn to detect.
        """
        if not any(isinstance(o, ReplacedTokens) for o in self.objectives.values()):
            raise ValueError(
                f"{type(self).__name__} does not learn to tell replaced tokens from "
                "original ones: score texts by a model that does, such as Electra."
            )
        return self.discriminator.predict_on_batch(inputs)

    def score(self, texts, batch_size=32):
        """Gives each token of each text the probability that it was replaced.

        Args:
            texts: A list of strings, or of pairs of strings.
            batch_size: Texts in a batch.

        Returns:
            A list of `TokenScores`, special tokens included.

        Raises:
            ValueError: The model detects nothing or has no tokenizer, something is no
                text or too long for the model, or `batch_size` is less than 1.
        """
        if not batch_size >= 1:
            raise ValueError(f"`batch_size` must be 1 or more; got {batch_size!r}.")
        if self.tokenizer is None:
            raise ValueError(
                "`score` reads raw strings and needs the model's tokenizer: load a "
                "saved preset, or pass `tokenizer` to `from_preset`."
            )
        texts = text_tuples(texts)
        scores, at_once = [None] * len(texts), self.sorted_batches * batch_size
        for start in range(0, len(texts), at_once):
            packed = self.tokenizer.pack(
                texts[start : start + at_once], self.max_length, first=start
            )
            lengths = packed["padding_mask"].sum(axis=1)
            order = np.argsort(-lengths, kind="stable")
            for first in range(0, len(order), batch_size):
                rows = order[first : first + batch_size]
                longest = lengths[rows[0]]
                inputs = {name: x[rows, :longest] for name, x in packed.items()}
                probabilities = 1.0 / (1.0 + np.exp(-self.detect(inputs)))
                for row, numbers in zip(rows, probabilities, strict=True):
                    ids = packed["token_ids"][row, : lengths[row]]
                    tokens = self.tokenizer.tokens(ids)
                    scores[start + row] = TokenScores(tokens, numbers[: lengths[row]])
        return scores

    # === What a step costs ===

    def forward_flops(self, length):
        """Counts both networks, dropout included.

        They share embedding tables but read different sequences, so each pays for its
        own look-ups.
        """
        sizes = length, self.masker.num_masked(length)
        generator = self.generator.flops(*sizes, training=True)
        return generator + self.discriminator.flops(*sizes, training=True)

    def activation_bytes(self, batch_size, length):
        """Counts the higher of two peaks.

        A generator's activations are given free before the discriminator has run: one
        peak is the vocabulary's logits and their gradient with the generator's
        activations, the other the discriminator with the logits that are left.
        """
        sizes = batch_size, length, self.masker.num_masked(length), self.number_bytes
        positions = batch_size * self.masker.num_masked(length)
        logits = self.generator.head.activation_bytes(positions, self.number_bytes) // 2
        return max(
            self.generator.activation_bytes(*sizes),
            logits + self.discriminator_bytes(batch_size, length),
        )

    def discriminator_bytes(self, batch_size, length):
        """Counts the second network's activations of a step."""
        sizes = batch_size, length, self.masker.num_masked(length), self.number_bytes
        return self.discriminator.activation_bytes(*sizes)

    def get_config(self):
        return {
            **super().get_config(),
            "discriminator": self.discriminator.encoder.architecture,
        }
