"""Training of vocabularies, reproducibly and in bounded memory."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from keras_corrupt.tokenizers.texts import check_text

#: More characters than any one alphabet has, but for the scripts of Chinese, Japanese
#: and Korean. Those have as many as cover this share of a text, as in SentencePiece.
#: Rarer ones become the unknown token.
ALPHABET_SIZE, COVERAGE = 1000, 0.9995
# Characters of the longest word to learn pieces from; more than any language has. The
# time that the library takes grows with the square of a word's length.
_LONGEST_WORD = 1000
#: Tokens of the largest vocabulary, twice as many as the largest in use has.
MAX_TOKENS = 1 << 21


def is_word_character(character: str) -> bool:
    """Returns whether a character is a letter, a mark or a digit (Unicode L, M, N)."""
    return unicodedata.category(character)[0] in "LMN"


def check_size(vocabulary_size: int) -> None:
    """Checks the size of a vocabulary that is to be trained.

    Args:
        vocabulary_size: Tokens wanted.

    Raises:
        ValueError: If it is none that a vocabulary has.
    """
    if not 1 <= vocabulary_size <= MAX_TOKENS:
        raise ValueError(
            f"vocabulary_size={vocabulary_size}: pass a number up to {MAX_TOKENS:,}, "
            "such as 30522."
        )


def train_word_pieces(
    lines: Iterable[str],
    *,
    normalizer,
    vocabulary_size: int,
    special_tokens: Sequence[str],
    unknown_token: str,
    max_bytes: int,
    progress: bool = False,
) -> list[str]:
    """Learns the pieces of the words of a text; the same text gives the same pieces.

    Args:
        lines: The text; read once.
        normalizer: A normaliser of the `tokenizers` library.
        vocabulary_size: Tokens wanted. A small text gives fewer.
        special_tokens: First tokens of the vocabulary.
        unknown_token: That among them which stands for unknown words.
        max_bytes: UTF-8 bytes of text to hold and train on.
        progress: Whether a terminal shows bars of progress.

    Returns:
        The tokens in the order of their ids.

    Raises:
        ValueError: If there is no text, or no room for its letters.
    """
    import tokenizers

    check_size(vocabulary_size)
    sample = [normalizer.normalize_str(line) for line in even_sample(lines, max_bytes)]
    # The library breaks ties between equally frequent pairs by token ids, and numbers
    # the inner letters (##e) in the order of a randomly seeded hash table. Listing all
    # letters up front, sorted, makes the result reproducible.
    letters = frequent_letters(sample, vocabulary_size)
    reserved = [*special_tokens, *_inner_letters(letters, normalizer)]
    least = len(reserved) + len(letters)
    if vocabulary_size < least:
        raise ValueError(
            f"vocabulary_size={vocabulary_size} has no room for the text's "
            f"{len(letters)} letters and the special tokens: at least {least} are "
            "needed."
        )
    trainer = tokenizers.trainers.WordPieceTrainer(
        vocab_size=vocabulary_size,
        special_tokens=reserved,
        initial_alphabet=letters,
        limit_alphabet=len(letters),
        min_frequency=2,
        show_progress=progress,
    )
    engine = tokenizers.Tokenizer(tokenizers.models.WordPiece(unk_token=unknown_token))
    engine.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    engine.train_from_iterator(sample, trainer)
    ids = engine.get_vocab()
    return sorted(ids, key=ids.get)


def even_sample(lines: Iterable[str], max_bytes: int) -> list[str]:
    """Keeps every n-th line, n the smallest power of 2 that fits.

    Args:
        lines: The text; read once, held only as far as kept.
        max_bytes: UTF-8 bytes to keep at most (but always one line).

    Returns:
        The kept lines, half of `max_bytes` or more if there was more. One with a word
        (or white space) of more than 1,000 characters is in pieces.

    Raises:
        ValueError: If a line is no text.
    """
    sample, sample_bytes, stride = [], 0, 1
    for number, line in enumerate(lines):
        if number % stride:
            continue
        try:
            sample_bytes += len(line.encode("utf-8"))
        except (AttributeError, UnicodeEncodeError):
            check_text(line, f"lines[{number}]")
            raise
        sample.append(line)
        while sample_bytes > max_bytes and len(sample) > 1:
            del sample[1::2]
            stride *= 2
            sample_bytes = sum(len(kept.encode("utf-8")) for kept in sample)
    return [piece for line in sample for piece in _bounded_words(line)]


def _bounded_words(line: str) -> list[str]:
    runs = re.findall(r"\S+|\s+", line) if len(line) > _LONGEST_WORD else ()
    if not any(len(run) > _LONGEST_WORD for run in runs):
        return [line]
    starts = range(0, len(line), _LONGEST_WORD)
    return [line[start : start + _LONGEST_WORD] for start in starts]


def frequent_letters(sample: Iterable[str], vocabulary_size: int) -> list[str]:
    """Finds the letters that a vocabulary has room for.

    Args:
        sample: The text.
        vocabulary_size: Tokens of the vocabulary. A quarter of them at most are letters
            beyond `ALPHABET_SIZE`.

    Returns:
        The most frequent characters but white space, sorted.

    Raises:
        ValueError: If there is none.
    """
    counts: Counter[str] = Counter()
    for text in sample:
        counts.update(text)
    letters = [letter for letter in counts if not letter.isspace()]
    if not letters:
        raise ValueError("no text to train a vocabulary on: the corpus is empty.")
    letters.sort(key=lambda letter: (-counts[letter], letter))
    covered = np.cumsum([counts[letter] for letter in letters])
    enough = 1 + int(np.searchsorted(covered, COVERAGE * covered[-1]))
    return sorted(letters[: max(ALPHABET_SIZE, min(enough, vocabulary_size // 4))])


def _inner_letters(letters: Iterable[str], normalizer) -> list[str]:
    """The pieces `##x` of the letters that can stand inside a word."""
    from tokenizers.pre_tokenizers import BertPreTokenizer

    split = BertPreTokenizer().pre_tokenize_str
    return [
        f"##{letter}"
        for letter in letters
        if len(split(normalizer.normalize_str(f"a{letter}a"))) == 1
    ]
