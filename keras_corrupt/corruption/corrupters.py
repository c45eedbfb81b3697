"""What chosen tokens become: each corrupter makes a `Corrupted` of a text."""

import numpy as np
from keras import ops

from keras_corrupt.corruption.corrupted import Corrupted, Predictions
from keras_corrupt.corruption.masking import check_rates, gather_tokens, mask_tokens
from keras_corrupt.corruption.replacement import replace_tokens
from keras_corrupt.corruption.sampling import sample_negatives, sample_tokens


def corrupted(token_ids, masking, sampled_ids):
    """Puts samples into chosen places.

    Args:
        token_ids: int32 `[batch, length]`, a text.
        masking: A `Masking`, of `[batch, masked]`.
        sampled_ids: int32 `[batch, masked]`.

    Returns:
        A `Corrupted`.
    """
    return Corrupted(
        original_ids=token_ids,
        token_ids=replace_tokens(token_ids, masking, sampled_ids),
        masking=masking,
        target_ids=gather_tokens(token_ids, masking.positions),
        sampled_ids=sampled_ids,
    )


class TokenMasker:
    """Puts `[MASK]` into chosen places (Clark's thesis, 5.1.1).

    Args:
        masker: The `Masker` that chooses.
        mask_id: Id of the mask token.
        vocabulary_size: Random tokens have ids below it.
        keep_rate: Fraction of the chosen positions that keep their token.
        random_rate: Fraction of them that get a random token.

    Raises:
        ValueError: The rates are no fractions that add up to at most 1.
    """

    def __init__(self, masker, mask_id, vocabulary_size, keep_rate, random_rate=0.0):
        check_rates(keep_rate, random_rate)
        self.masker = masker
        self.mask_id, self.vocabulary_size = mask_id, vocabulary_size
        self.keep_rate, self.random_rate = keep_rate, random_rate

    def __call__(self, inputs):
        """Masks a text.

        Args:
            inputs: The model's inputs.

        Returns:
            The inputs with masked `token_ids`, and the `Masking`.
        """
        token_ids, masking = inputs["token_ids"], self.masker(inputs)
        masked_ids = mask_tokens(
            token_ids,
            masking,
            self.mask_id,
            self.vocabulary_size,
            self.keep_rate,
            self.random_rate,
            self.masker.seed_generator,
        )
        return {**inputs, "token_ids": masked_ids}, masking


class MaskedLMCorrupter:
    """Masks tokens, and fills their places with a masked language model's samples.

    Clark's thesis, 5.1.5.

    Args:
        network: The generator, a `MaskedLMNetwork`.
        mask: The `TokenMasker`.
        temperature: By what the logits are divided before tokens are drawn from their
            softmax: above 1, the generator is a weaker one (thesis, 5.5).
        exclude_original: Whether the original token is never drawn (5.5).

    Raises:
        ValueError: The temperature is no positive number.
    """

    def __init__(self, network, mask, temperature=1.0, exclude_original=False):
        if isinstance(temperature, str) or not 0 < temperature < np.inf:
            raise ValueError(
                "`temperature` must be more than 0 (1 for the generator's own softmax, "
                f"more for a flatter one); got {temperature!r}."
            )
        self.network, self.mask = network, mask
        self.temperature, self.exclude_original = temperature, exclude_original

    def corrupt(self, inputs, training=False):
        """Corrupts a text.

        Args:
            inputs: The model's inputs.
            training: Whether the generator's dropout is active.

        Returns:
            A `Corrupted`, and the `Predictions` that the generator learns from.
        """
        masked, masking = self.mask(inputs)
        logits = self.network(masked, masking.positions, training=training)
        text = self.fill(inputs["token_ids"], masking, logits)
        return text, predictions(masked, text, logits)

    def fill(self, token_ids, masking, logits):
        """Puts samples into the masked places.

        Args:
            token_ids: int32 `[batch, length]`, the text.
            masking: The `Masking`.
            logits: float32 `[batch, masked, vocabulary]`, of the generator.

        Returns:
            A `Corrupted`; no gradient flows through the draw.
        """
        seed = self.mask.masker.seed_generator
        if self.temperature != 1:
            logits = ops.stop_gradient(logits) / self.temperature
        if self.exclude_original:
            target_ids = gather_tokens(token_ids, masking.positions)
            drawn = sample_negatives(logits, target_ids, 1, seed)[..., 0]
        else:
            drawn = sample_tokens(logits, seed)
        return corrupted(token_ids, masking, drawn)

    @property
    def options(self):
        """The options by name, for `get_config`."""
        return {
            "keep_rate": self.mask.keep_rate,
            "temperature": self.temperature,
            "exclude_original": self.exclude_original,
        }


def predictions(masked, text, logits):
    """Returns the `Predictions` of a network that read a masked text.

    Args:
        masked: The network's inputs.
        text: The `Corrupted` that the masked text became.
        logits: float32 `[batch, masked, vocabulary]`.
    """
    return Predictions(masked["token_ids"], text.masking, text.target_ids, logits)


class TwoTowerCorrupter:
    """Puts a two-tower model's samples into the places of tokens, none of them masked.

    Clark's thesis, 5.1.5.

    Args:
        network: The generator, a `TwoTowerNetwork`.
        masker: The `Masker` that chooses the places.
    """

    def __init__(self, network, masker):
        self.network, self.masker = network, masker

    def corrupt(self, inputs, training=False):
        """Corrupts a text.

        Args:
            inputs: The model's inputs.
            training: Whether the generator's dropout is active.

        Returns:
            A `Corrupted`; the `Predictions` from which the samples were drawn, without
            gradient; and the generator's states, `[batch, length, 2 * hidden]`.
        """
        token_ids, masking = inputs["token_ids"], self.masker(inputs)
        states = self.network(inputs, training=training)
        logits = self.network.head(ops.stop_gradient(states), masking.positions)
        sampled_ids = sample_tokens(logits, self.masker.seed_generator)
        text = corrupted(token_ids, masking, sampled_ids)
        return text, predictions(inputs, text, ops.stop_gradient(logits)), states


class UnigramCorrupter:
    """Puts tokens into places that are drawn without regard to the text.

    Clark's thesis, 5.3.2.

    Args:
        generator: The `UnigramGenerator`.
        masker: The `Masker` that chooses the places.
    """

    def __init__(self, generator, masker):
        self.generator, self.masker = generator, masker

    def corrupt(self, inputs):
        """Corrupts a text.

        Args:
            inputs: The model's inputs.

        Returns:
            A `Corrupted`.
        """
        masking = self.masker(inputs)
        seed = self.masker.seed_generator
        sampled_ids = self.generator.sample(masking.positions, seed)
        return corrupted(inputs["token_ids"], masking, sampled_ids)
