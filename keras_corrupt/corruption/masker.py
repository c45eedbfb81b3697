"""Which tokens of a text a pretraining model corrupts: its options, and the draw."""

from keras import ops

from keras_corrupt.corruption.masking import (
    Masking,
    choose_positions,
    maskable_tokens,
    num_chosen,
    num_masked,
)
from keras_corrupt.corruption.words_and_spans import choose_spans, choose_words

MASKINGS = ("token", "whole_word", "span")
SPAN_LENGTHS = ("geometric", "fixed")


class Masker:
    """Chooses positions.

    Args:
        options: Name -> value of `mask_rate`, `masking`, `span_length`, `span_lengths`,
            `num_masks` and `disjoint_masks`: see `Pretrainer`.
        unmaskable_ids: Token ids that are never chosen.
        seed_generator: The model's `SeedGenerator`.
        word_starts: Function without arguments that returns booleans `[vocabulary]`,
            true for tokens that begin a word.

    Raises:
        ValueError: An option is out of its bounds.
    """

    def __init__(self, options, unmaskable_ids, seed_generator, word_starts):
        self.options = options
        self.unmaskable_ids = unmaskable_ids
        self.seed_generator = seed_generator
        self.word_starts = word_starts
        check_options(**options)

    @property
    def mask_rate(self):
        """Fraction of a text's tokens that are chosen."""
        return self.options["mask_rate"]

    @property
    def num_masks(self):
        """Masks of each text in a training step."""
        return self.options["num_masks"]

    def __call__(self, inputs, num_masks=1):
        """Returns the inputs' own masked positions (static masking), or draws new ones.

        Args:
            inputs: The networks' inputs.
            num_masks: Masks of each sequence, with nothing in common.

        Returns:
            A `Masking`, `[batch * num_masks, masked]`.
        """
        if "masked_positions" in inputs:
            if "masked_weights" not in inputs:
                raise ValueError(
                    "The inputs have `masked_positions` and no `masked_weights`: give "
                    "1 for each position that is masked, and 0 for those that fill "
                    "rows up."
                )
            return Masking(inputs["masked_positions"], inputs["masked_weights"])
        draw = inputs, self.mask_rate, self.unmaskable_ids, self.seed_generator
        masking = self.options["masking"]
        if masking == "token":
            return choose_positions(*draw, num_masks)
        if masking == "whole_word":
            return choose_words(*draw, self.word_starts(), num_masks)
        fixed = self.options["span_lengths"] == "fixed"
        lengths = self.options["span_length"], fixed
        return choose_spans(*draw, self.word_starts(), *lengths, num_masks)

    def repeated(self, inputs):
        """Returns the inputs of a training step: each text once for each of its masks.

        Args:
            inputs: The networks' inputs.

        Returns:
            A dict of arrays `[batch * num_masks, length]`; disjoint masks are in it, as
            `masked_positions` and `masked_weights`.
        """
        if self.num_masks == 1:
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
        if self.options["disjoint_masks"]:
            masking = self(inputs, self.num_masks)
            repeated["masked_positions"] = masking.positions
            repeated["masked_weights"] = masking.weights
        return repeated

    def num_masked(self, length):
        """Returns how many positions of a sequence of that length are chosen."""
        return num_masked(self.mask_rate, length)

    def maskable(self, inputs):
        """Returns which tokens may be chosen, booleans `[batch, length]`."""
        return maskable_tokens(inputs, self.unmaskable_ids)

    def counts(self, inputs):
        """Returns how many tokens are chosen, and from how many: two `[batch]`."""
        return num_chosen(inputs, self.maskable(inputs), self.mask_rate)


def check_options(
    mask_rate, masking, span_length, span_lengths, num_masks, disjoint_masks
):
    """Raises a `ValueError` if an option of a `Masker` is out of its bounds."""
    if isinstance(mask_rate, str) or not 0.0 < mask_rate < 1.0:
        raise ValueError(
            f"`mask_rate` must lie between 0 and 1, both excluded (the papers use "
            f"0.15 and 0.25); got {mask_rate!r}."
        )
    for name, value, choices in (
        ("masking", masking, MASKINGS),
        ("span_lengths", span_lengths, SPAN_LENGTHS),
    ):
        if value not in choices:
            raise ValueError(f"`{name}` must be one of {choices}; got {value!r}.")
    if isinstance(span_length, str) or not span_length >= 1:
        raise ValueError(f"`span_length` must be 1 or more; got {span_length!r}.")
    if not isinstance(num_masks, int) or num_masks < 1:
        raise ValueError(
            f"`num_masks` must be a whole number from 1 on; got {num_masks!r}."
        )
    if num_masks > 1 and disjoint_masks and num_masks * mask_rate > 1 + 1e-9:
        raise ValueError(
            f"`num_masks={num_masks}` masks of `mask_rate={mask_rate}` have more "
            f"than all tokens. Take a `mask_rate` of {1 / num_masks:.4g} at most, "
            "fewer masks, or `disjoint_masks=False`."
        )
