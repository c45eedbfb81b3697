"""Batches of sentences and their translations."""

import numpy as np

from keras_corrupt.cross_view.text.batches import WordBatches
from keras_corrupt.downstream.batches import LENGTHS


class TranslationBatches(WordBatches):
    """Batches of sentences and of their translations.

    Args are `WordBatches`'s; labels are for each sentence the classes of its
    translation's words, the end's included.
    """

    def assembled(self, rows, length):
        """Returns inputs and targets; these have a length of their own.

        Without translations it is 1, and there is no target.
        """
        translations = [] if self.labels is None else [self.labels[row] for row in rows]
        longest = max(map(len, translations), default=1)
        if translations:
            longest = next((n for n in LENGTHS if n >= longest), longest)
        targets = np.full((self.batch_size, longest), -1, "int32")
        for row, classes in zip(targets, translations, strict=False):
            row[: len(classes)] = classes
        return {**self.words(rows, length), "target_ids": targets}, targets
