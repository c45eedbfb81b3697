"""The tokenizer in a model's `.keras` file: the files that `Tokenizer.save` writes.

It is no part of the model's configuration, which presets keep without it.
"""

import os

from keras_corrupt import tokenizers
from keras_corrupt.tokenizers.tokenizer import DOCUMENT_FILE


class TokenizerAssets:
    """Makes Keras keep a model's `tokenizer`; the model has a `vocabulary_size`."""

    def save_assets(self, directory):
        tokenizer = getattr(self, "tokenizer", None)
        if tokenizer is not None:
            tokenizer.save(directory)

    def load_assets(self, directory):
        if directory and os.path.exists(os.path.join(directory, DOCUMENT_FILE)):
            tokenizer = tokenizers.load(directory)
            if tokenizer.vocabulary_size > self.vocabulary_size:
                raise ValueError(
                    f"The file's tokenizer has {tokenizer.vocabulary_size} tokens, "
                    f"more than the model's {self.vocabulary_size}: it is not "
                    "the model's own."
                )
            self.tokenizer = tokenizer


def vocabulary_of(cls, tokenizer):
    """Returns the argument that gives new networks of a class a tokenizer's size."""
    main = next(iter(cls.network_arguments))
    return {main: {"vocabulary_size": tokenizer.vocabulary_size}}


def check_vocabulary(cls, tokenizer, vocabulary_size):
    """Raises a `ValueError` if a tokenizer has more tokens than a model of a class."""
    if tokenizer.vocabulary_size > vocabulary_size:
        ((name, value),) = vocabulary_of(cls, tokenizer).items()
        raise ValueError(
            f"`tokenizer` has {tokenizer.vocabulary_size} tokens, more than the "
            f"model's vocabulary_size={vocabulary_size}. Pass {name}={value} where "
            "weights are new, or else the tokenizer that they were trained with."
        )
