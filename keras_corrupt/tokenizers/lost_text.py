"""How much of a text is lost to a model because the vocabulary does not know it."""

import itertools
import unicodedata
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from keras_corrupt.tokenizers.tokenizer import Tokenizer

#: More characters than WordPiece reads of a word: `[UNK]` stands for a longer one.
LONG_WORD = 100
_LAST_SPACE = 0x3000
_IS_SPACE = np.array([chr(code).isspace() for code in range(_LAST_SPACE + 2)])
# Characters of examples to look at: a tenth of a second.
_SAMPLE_SIZE = 20_000


class LostText(NamedTuple):
    """Counts of characters, spaces left out.

    Attributes:
        characters: Number of the text's characters.
        lost: Number that no token tells, such as the letters of an unknown word.
        in_long_words: Number among the lost that one unknown token stands for together
            with more than 100 others.
    """

    characters: int
    lost: int
    in_long_words: int


def lost_text(
    tokenizer: Tokenizer,
    texts: Sequence[str],
    token_ids: np.ndarray | None = None,
    lengths: np.ndarray | None = None,
) -> LostText:
    """Counts the characters of texts, and those that a tokenizer loses.

    Accents that are stripped, and control characters, are not counted as lost.

    Args:
        tokenizer: The tokenizer.
        texts: Any strings.
        token_ids: Their token ids by `Tokenizer.encode_flat`, if they are known, which
            spares the texts that have no unknown token.
        lengths: How many are each text's.

    Returns:
        The counts.

    Example:
    >>> from keras_corrupt.tokenizers import SPECIAL_TOKENS, WordPieceTokenizer
    >>> tokenizer = WordPieceTokenizer([*SPECIAL_TOKENS, "a", "cat"])
    >>> lost_text(tokenizer, ["A cat sleeps."])
    LostText(characters=11, lost=7, in_long_words=0)
    """
    characters = _characters(texts)
    if token_ids is not None:
        unknown = token_ids == tokenizer.unknown_id
        has_unknown = np.unique(np.repeat(np.arange(len(texts)), lengths)[unknown])
        texts = [texts[number] for number in has_unknown]
    lost = in_long_words = 0
    encoded = tokenizer.encode_with_offsets(texts)
    for text, (ids, offsets) in zip(texts, encoded, strict=True):
        covered = np.zeros(len(text), bool)
        for start, end in offsets[ids != tokenizer.unknown_id]:
            covered[start:end] = True
        is_lost = np.array([unicodedata.category(c)[0] not in "CZ" for c in text], bool)
        is_lost &= ~covered
        lost += int(is_lost.sum())
        for start, end in offsets[ids == tokenizer.unknown_id]:
            if end - start > LONG_WORD:
                in_long_words += int(is_lost[start:end].sum())
    return LostText(characters, lost, in_long_words)


def _characters(texts):
    """Counts the characters that are no spaces."""
    codes = np.frombuffer("".join(texts).encode("utf-32-le"), "<u4")
    return len(codes) - int(_IS_SPACE[np.minimum(codes, _LAST_SPACE + 1)].sum())


def describe_lost(tokenizer: Tokenizer, examples: Iterable) -> str | None:
    """Tells how much a tokenizer loses of a task's examples.

    Args:
        tokenizer: The tokenizer.
        examples: Strings, or lists and tuples of them. The first ones are looked at.

    Returns:
        A line, or None if they have more than 99% of their characters in known tokens.
    """
    sample, size = [], 0
    for text in itertools.chain.from_iterable(map(_texts, examples)):
        sample.append(text)
        size += len(text)
        if size > _SAMPLE_SIZE:
            break
    counts = lost_text(tokenizer, sample)
    if counts.lost <= 0.01 * counts.characters:
        return None
    return (
        f"{counts.lost / counts.characters:.1%} of the characters, which the preset's "
        "vocabulary does not know; take a preset of another vocabulary"
    )


def _texts(example):
    if isinstance(example, (list, tuple)):
        return itertools.chain.from_iterable(map(_texts, example))
    return [example] if isinstance(example, str) else []
