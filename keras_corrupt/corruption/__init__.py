"""Corruption of text: which positions, what they become, and what was replaced."""

from keras_corrupt.corruption.cropping import crop_texts, cropped_length
from keras_corrupt.corruption.masking import (
    Masking,
    check_rates,
    choose_positions,
    gather_tokens,
    mask_tokens,
    maskable_tokens,
    num_chosen,
    num_masked,
)
from keras_corrupt.corruption.replacement import add_up, replace_tokens
from keras_corrupt.corruption.sampling import (
    hardest_negatives,
    sample_negatives,
    sample_tokens,
)
from keras_corrupt.corruption.words_and_spans import choose_spans, choose_words

__all__ = [
    "Masking",
    "add_up",
    "check_rates",
    "choose_positions",
    "choose_spans",
    "choose_words",
    "crop_texts",
    "cropped_length",
    "gather_tokens",
    "hardest_negatives",
    "mask_tokens",
    "maskable_tokens",
    "num_chosen",
    "num_masked",
    "replace_tokens",
    "sample_negatives",
    "sample_tokens",
]
