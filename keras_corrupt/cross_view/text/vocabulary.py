"""Words and characters as ids."""

import re
from collections import Counter

import numpy as np


def form_of(word):
    """Returns the form in which a word is looked up: in lower case, each digit as 0.

    The release of Clark's thesis does so; the characters tell numbers apart.

    >>> form_of("B2B"), form_of("1,984")
    ('b0b', '0,000')
    """
    return re.sub(r"\d", "0", word.lower())


class WordVocabulary:
    """Gives ids to words, by their `form_of`, and to their characters.

    Word ids are 0 for padding, 1 for a word that is not known, from 2 on for `words`,
    and `removed_id` for one that was removed. Character ids are 0 for padding, 1 for
    one that is not known, 2 and 3 for a word's beginning and end, and from 4 on for
    `characters`.

    Args:
        words: Words, each once; of those that have one form, the first one is known.
        characters: A string of characters, each once.

    Raises:
        ValueError: One is there twice.

    Example:

    >>> vocabulary = WordVocabulary(["the", "cat"], "acehtT")
    >>> word_ids, character_ids = vocabulary.encode(["The", "cab"])
    >>> word_ids.tolist(), character_ids[:, :6].tolist()
    ([2, 1], [[2, 9, 7, 6, 3, 0], [2, 5, 4, 1, 3, 0]])
    """

    #: Characters of a word that are read, the marks of its beginning and end included.
    WIDTH = 20

    def __init__(self, words, characters):
        self.words, self.characters = list(words), "".join(characters)
        for name, entries in [("words", words), ("characters", characters)]:
            twice = [entry for entry, n in Counter(entries).items() if n > 1]
            if twice:
                raise ValueError(f"`{name}` has {twice[0]!r} more than once.")
        self._words = {}
        for i, word in enumerate(self.words, 2):
            self._words.setdefault(form_of(word), i)
        self._characters = {c: i for i, c in enumerate(self.characters, 4)}

    @classmethod
    def of(cls, counts, size, min_count=2, more=()):
        """Makes a vocabulary of the most frequent words.

        A word below `min_count` is left out, so that training meets unknown words.

        Args:
            counts: Word, as it is written -> how often it occurs.
            size: Words to keep, at most.
            min_count: How often a form must occur.
            more: Forms that take the places left, the first ones first.
        """
        words, characters = Counter(), Counter()
        for word, count in counts.items():
            words[form_of(word)] += count
            for character in set(word):
                characters[character] += count
        by_frequency = sorted(words, key=lambda word: (-words[word], word))
        kept_words = [word for word in by_frequency if words[word] >= min_count]
        kept_characters = sorted(c for c in characters if characters[c] >= min_count)
        kept_words = dict.fromkeys([*kept_words, *more])
        return cls([*kept_words][:size], kept_characters)

    @property
    def num_words(self):
        """Number of word ids."""
        return len(self.words) + 3

    @property
    def removed_id(self):
        """The id of the token REMOVED (Clark's thesis, 4.3.2), the last one."""
        return len(self.words) + 2

    @property
    def num_characters(self):
        """Number of character ids."""
        return len(self.characters) + 4

    def encode(self, words):
        """Returns the ids of words, int32 `[words]` and int32 `[words, WIDTH]`."""
        word_ids = np.array([self._words.get(form_of(w), 1) for w in words], "int32")
        character_ids = np.zeros((len(words), self.WIDTH), "int32")
        for row, word in zip(character_ids, words, strict=True):
            spelled = [self._characters.get(c, 1) for c in word[: self.WIDTH - 2]]
            row[: len(spelled) + 2] = [2, *spelled, 3]
        return word_ids, character_ids
