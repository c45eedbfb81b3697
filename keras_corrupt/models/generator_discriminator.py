"""What systems share in which a generator corrupts text and a discriminator finds out.

ELECTRA and those built on it.
"""

from typing import NamedTuple

import numpy as np

from keras_corrupt.corruption.corrupters import MaskedLMCorrupter, TokenMasker
from keras_corrupt.encoders import TransformerEncoder
from keras_corrupt.models.networks import sizes_of
from keras_corrupt.models.pretrainer import Pretrainer
from keras_corrupt.models.windows import read_in_batches, window_length, windows_of
from keras_corrupt.objectives.replaced_tokens import ReplacedTokens
from keras_corrupt.tokenizers.texts import listed


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

    def score(self, texts, batch_size=32, max_length=None):
        """Gives each token of each text the probability that it was replaced.

        A text of more than `max_length` tokens is read in windows that overlap by half.
        A token's probability is from the window in which it is farther from the ends.

        Args:
            texts: A list whose items are strings, pairs of strings, or lists of token
                ids, without special tokens. A pair must fit the model at once.
            batch_size: Texts in a batch. Texts of like length share one.
            max_length: Tokens of a window, special ones included, such as the length of
                a sequence in pretraining; the model's `max_length` if not given.

        Returns:
            A list of `TokenScores`, special tokens included.

        Raises:
            ValueError: The model detects nothing or has no tokenizer; something is no
                text, or a pair is too long for the model; an option is none.
        """
        from scipy.special import expit  # not above: help needs no SciPy

        if not batch_size >= 1:
            raise ValueError(f"`batch_size` must be 1 or more; got {batch_size!r}.")
        max_length = window_length(max_length, self)
        if self.tokenizer is None:
            raise ValueError(
                "`score` reads raw strings and needs the model's tokenizer: load a "
                "saved preset, or pass `tokenizer` to `from_preset`."
            )
        texts = listed(texts, "texts")
        windows = windows_of(texts, self.tokenizer, max_length, special=True)
        logits = dict(read_in_batches(windows, self.detect, self, batch_size))
        parts = [[] for _ in texts]
        for number, (text, ids, _, kept) in enumerate(windows):
            parts[text].append((ids[kept], logits[number][kept]))
        scores = []
        for part in parts:
            ids, numbers = map(np.concatenate, zip(*part, strict=True))
            probabilities = expit(numbers)
            scores.append(TokenScores(self.tokenizer.tokens(ids), probabilities))
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
        """Counts the higher of two peaks, or both.

        The CPU kernels give a generator's activations free before the discriminator has
        run: one peak is the vocabulary's logits and their gradient with the generator's
        activations, the other the discriminator with the logits that are left. Where
        they do not compute its layers, both wait for the backward pass.
        """
        sizes = batch_size, length, self.masker.num_masked(length), self.number_bytes
        positions = batch_size * self.masker.num_masked(length)
        logits = self.generator.head.activation_bytes(positions, self.number_bytes) // 2
        generator = self.generator.activation_bytes(*sizes)
        discriminator = self.discriminator_bytes(batch_size, length)
        if all(layer.is_bert_layer for layer in self.encoder.layers_):
            return max(generator, logits + discriminator)
        return generator + discriminator

    def discriminator_bytes(self, batch_size, length):
        """Counts the second network's activations of a step."""
        sizes = batch_size, length, self.masker.num_masked(length), self.number_bytes
        return self.discriminator.activation_bytes(*sizes)

    def get_config(self):
        return {
            **super().get_config(),
            "discriminator": self.discriminator.encoder.architecture,
        }
