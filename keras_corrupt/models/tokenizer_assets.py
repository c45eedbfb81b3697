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
