"""Which tokens of a text a pretraining model corrupts: its options, and the draw."""

import numpy as np
from keras import ops

from keras_corrupt.corruption import (
    Masking,
    choose_positions,
    choose_spans,
    choose_words,
    num_masked,
)

MASKINGS = ("token", "whole_word", "span")
SPAN_LENGTHS = ("geometric", "fixed")


class PositionChoice:
    """Chooses positions, as a model's options and its tokenizer say.

    A base of `Pretrainer`, whose docstring describes the options.
    """

    #: Whether a training step may have several masks of each text: `call` then passes
    #: `training` on to `text_inputs`.
    several_masks = False

    def _set_masks(
        self, mask_rate, masking, span_length, span_lengths, num_masks, disjoint_masks
    ):
        if isinstance(mask_rate, str) or not 0.0 < mask_rate < 1.0:
            raise ValueError(
                f"`mask_rate` must lie between 0 and 1, both excluded (the papers use "
                f"0.15 and 0.25); got {mask_rate!r}."
            )
        for name, value, known in (
            ("masking", masking, MASKINGS),
            ("span_lengths", span_lengths, SPAN_LENGTHS),
        ):
            if value not in known:
                raise ValueError(f"`{name}` must be one of {known}; got {value!r}.")
        if isinstance(span_length, str) or not span_length >= 1:
            raise ValueError(f"`span_length` must be 1 or more; got {span_length!r}.")
        if not isinstance(num_masks, int) or num_masks < 1:
            raise ValueError(
                f"`num_masks` must be a whole number from 1 on; got {num_masks!r}."
            )
        if num_masks > 1 and not self.several_masks:
            raise ValueError(
                f"{type(self).__name__} has one mask of each text: leave out "
                f"`num_masks={num_masks}`."
            )
        if num_masks > 1 and disjoint_masks and num_masks * mask_rate > 1 + 1e-9:
            raise ValueError(
                f"`num_masks={num_masks}` masks of `mask_rate={mask_rate}` have more "
                f"than all tokens. Take a `mask_rate` of {1 / num_masks:.4g} at most, "
                "fewer masks, or `disjoint_masks=False`."
            )
        self.mask_rate = mask_rate
        self.masking = masking
        self.span_length = span_length
        self.span_lengths = span_lengths
        self.num_masks = num_masks
        self.disjoint_masks = disjoint_masks

    @property
    def mask_options(self):
        """The options by name, for `get_config`."""
        return {
            "mask_rate": self.mask_rate,
            "masking": self.masking,
            "span_length": self.span_length,
            "span_lengths": self.span_lengths,
            "num_masks": self.num_masks,
            "disjoint_masks": self.disjoint_masks,
        }

    def num_masked(self, length):
        """Returns how many positions of a sequence of that length are chosen."""
        return num_masked(self.mask_rate, length)

    def text_inputs(self, inputs, training=False):
        """Returns the networks' inputs, each sequence once for each of its masks.

        Outside training a sequence has one mask.

        Args:
            inputs: What `keras_corrupt.encoders.text_model.text_inputs` takes.
            training: Whether they are those of a training step.

        Returns:
            A dict of arrays `[batch * masks, length]`; disjoint masks are in it, as
            `masked_positions` and `masked_weights`.
        """
        inputs = super().text_inputs(inputs)
        if self.num_masks == 1 or not training:
            return inputs
        if "masked_positions" in inputs:
            raise ValueError(
                "The examples have masked positions of their own (static masking), one "
                f"mask each: leave out `num_masks={self.num_masks}`."
            )
        repeated = {
            name: ops.repeat(array, self.num_masks, axis=0)
            for name, array in inputs.items()
        }
        if self.disjoint_masks:
            masking = self.choose_positions(inputs, self.num_masks)
            repeated["masked_positions"] = masking.positions
            repeated["masked_weights"] = masking.weights
        return repeated

    def choose_positions(self, inputs, num_masks=1):
        """Returns the inputs' own masked positions (static masking), or draws new ones.

        Args:
            inputs: The networks' inputs.
            num_masks: Masks of each sequence, with nothing in common.

        Returns:
            A `Masking`, `[batch * num_masks, masked]`.
        """
        if "masked_positions" in inputs:
            return Masking(inputs["masked_positions"], inputs["masked_weights"])
        draw = inputs, self.mask_rate, self.unmaskable_ids, self.seed_generator
        if self.masking == "token":
            return choose_positions(*draw, num_masks)
        word_starts = self._word_starts()
        if self.masking == "whole_word":
            return choose_words(*draw, word_starts, num_masks)
        fixed = self.span_lengths == "fixed"
        return choose_spans(*draw, word_starts, self.span_length, fixed, num_masks)

    def _word_starts(self):
        if self.tokenizer is None:
            raise ValueError(
                f"`masking={self.masking!r}` needs the model's tokenizer, which knows "
                "where words begin: pass `tokenizer`, or load a saved preset."
            )
        known = self.tokenizer.word_starts
        return np.pad(known, (0, self.vocabulary_size - len(known)))
