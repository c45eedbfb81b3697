"""How a vocabulary cuts held-out text, for a person to judge it by."""

import string
import unicodedata
from collections.abc import Iterator, Sequence

from keras_corrupt.data.info import DatasetError
from keras_corrupt.tokenizers import Tokenizer
from keras_corrupt.tokenizers.lost_text import LONG_WORD, LostText, lost_text
from keras_corrupt.tokenizers.vocabulary import is_word_character

_PUNCTUATION = string.punctuation + "„“”‚‘’«»‹›–—…¿¡"
# Vocabularies of 4,000 to 30,000 tokens cut words of their own language into 1.1 to 1.9
# tokens, German words by an English vocabulary into 2.1 to 3.4 and English by a German
# one into 1.9 to 3.2. Vocabularies of 1,000 tokens cut words of their own language into
# 1.6 to 2.7.
_MANY_TOKENS = 2.0
# Shares of lost characters that a warning tells, and that make the examples useless.
_MANY_LOST, _TOO_MANY_LOST = 0.01, 0.05
# French has accents on 4% of its letters, and 1% of its words differ by them alone.
# Czech, Vietnamese, Thai and Hindi have far more.
_MANY_STRIPPED, _MANY_MERGED = 0.05, 0.02
# Mean characters from space to space; a script with more of them writes no spaces.
_LONG_WORDS = 15
_EXAMPLES, _EXAMPLE_TOKENS = 3, 16


def describe_segmentation(tokenizer: Tokenizer, lines: Sequence[str]) -> dict:
    """Measures how a tokenizer cuts text.

    Args:
        tokenizer: The tokenizer.
        lines: A sample of the held-out text.

    Returns:
        A dict, JSON-ready: `tokens_per_word`, of words of letters and digits between
        spaces, punctuation at their ends left out (None where there are no words of
        usual length); the shares of `lost_shares`; `stripped_letters`, the share of the
        letters and marks that stripping accents changes, and `merged_words`, the share
        of the different words that it makes equal to others (both 0 where accents
        stay); and `examples`, the tokens of the first lines.
    """
    words = [word.strip(_PUNCTUATION) for line in lines for word in line.split()]
    words = [word for word in words if word and all(map(is_word_character, word))]
    tokens_per_word = None
    if words and sum(map(len, words)) <= _LONG_WORDS * len(words):
        pieces = sum(map(len, tokenizer.encode_batch(words)))
        tokens_per_word = round(pieces / len(words), 2)
    stripped, merged = _stripped(words) if tokenizer.flags["strip_accents"] else (0, 0)
    encoded = [ids for ids in tokenizer.encode_batch(lines) if ids]
    return {
        "tokens_per_word": tokens_per_word,
        **lost_shares(lost_text(tokenizer, lines)),
        "stripped_letters": round(stripped, 4),
        "merged_words": round(merged, 4),
        "examples": [
            " ".join(map(tokenizer.readable, ids[:_EXAMPLE_TOKENS]))
            for ids in encoded[:_EXAMPLES]
        ],
    }


def lost_shares(lost: LostText) -> dict:
    """Makes shares of counts of characters.

    Args:
        lost: The counts.

    Returns:
        A dict, JSON-ready: `lost_characters`, the share of the characters that no token
        tells, and `lost_in_long_words`, the share of the characters that no token tells
        because their word is too long.
    """
    return {
        "lost_characters": round(lost.lost / max(1, lost.characters), 4),
        "lost_in_long_words": round(lost.in_long_words / max(1, lost.characters), 4),
    }


def summary(segmentation: dict) -> str:
    """Writes the two main numbers of a segmentation in a line.

    Args:
        segmentation: By `describe_segmentation`.

    Returns:
        The line.
    """
    tokens = segmentation["tokens_per_word"]
    parts = [f"{tokens} tokens a word"] if tokens else []
    parts.append(f"{segmentation['lost_characters']:.2%} of the characters lost")
    return ", ".join(parts)


def unknown_examples(number: int) -> str:
    """Says how many examples were left out because most of their tokens are unknown."""
    return f"{number:,} examples left out: most of their tokens are unknown"


def warnings(segmentation: dict, kind: str, vocabulary_given: bool) -> Iterator[str]:
    """Tells the faults of a segmentation, and the remedies.

    Args:
        segmentation: By `describe_segmentation`.
        kind: The vocabulary's kind.
        vocabulary_given: Whether it was given, and not trained on the text.

    Yields:
        Lines.
    """
    if (segmentation["tokens_per_word"] or 0) > _MANY_TOKENS:
        remedy = "a larger one (--vocabulary_size)"
        if vocabulary_given:
            remedy = "one on the corpus (no --vocabulary)"
        yield (
            f"WARNING: the vocabulary fits the text badly ({summary(segmentation)}; "
            f"usual are 1.1 to 1.9 tokens a word). Train {remedy}."
        )
    if segmentation["lost_characters"] > _MANY_LOST:
        yield f"WARNING: {_loss(segmentation, kind, vocabulary_given)}"
    stripped, merged = segmentation["stripped_letters"], segmentation["merged_words"]
    if stripped > _MANY_STRIPPED or merged > _MANY_MERGED:
        remedy = "Keep them with --no_strip_accents"
        if vocabulary_given:
            remedy += ", and a vocabulary that has them, or none (no --vocabulary)"
        yield (
            f"WARNING: stripping accents, which vowel signs are too, changes "
            f"{stripped:.1%} of the letters, and makes {merged:.1%} of the different "
            f"words equal to others. {remedy}."
        )


def check_lost_text(segmentation: dict, kind: str, vocabulary_given: bool) -> None:
    """Checks that a vocabulary knows the text.

    Args:
        segmentation: By `describe_segmentation`.
        kind: The vocabulary's kind.
        vocabulary_given: See `warnings`.

    Raises:
        DatasetError: If more than 5% of the characters are lost.
    """
    if segmentation["lost_characters"] > _TOO_MANY_LOST:
        raise DatasetError(
            f"{_loss(segmentation, kind, vocabulary_given)} A model would learn to "
            "tell [UNK] from other tokens, and little of the text."
        )


def _loss(segmentation: dict, kind: str, vocabulary_given: bool) -> str:
    lost = segmentation["lost_characters"]
    in_words = segmentation["lost_in_long_words"] > lost / 2 and kind == "wordpiece"
    why = (
        f"are in words of more than {LONG_WORD}, which word pieces cannot cut"
        if in_words
        else "are ones that it lacks"
    )
    # A unigram vocabulary lacks the same rare letters.
    flags = "--tokenizer unigram or --tokenizer byte_bpe"
    flags = flags if in_words else "--tokenizer byte_bpe"
    if not vocabulary_given:
        remedy = f"Pass {flags}"
    elif in_words:
        remedy = f"Train one on the corpus: {flags} (no --vocabulary, no --init_from)"
    else:
        remedy = "Train one on the corpus (no --vocabulary, no --init_from)"
        remedy += ", or add to it: --grow_vocabulary" * (kind == "wordpiece")
    return (
        f"the {kind} vocabulary loses {lost:.1%} of the text's characters, most of "
        f"which {why}. {remedy}."
    )


def _stripped(words: Sequence[str]) -> tuple[float, float]:
    """Measures the shares of letters and of words that stripping accents changes."""
    different = {word.lower() for word in words}
    letters = unicodedata.normalize("NFC", "".join(words))
    changed = sum(_without_accents(letter) != letter for letter in letters)
    merged = len(different) - len({_without_accents(word) for word in different})
    return changed / max(1, len(letters)), merged / max(1, len(different))


def _without_accents(text: str) -> str:
    """As BERT does it: without Unicode's nonspacing marks."""
    decomposed = unicodedata.normalize("NFD", text)
    kept = (c for c in decomposed if unicodedata.category(c) != "Mn")
    return unicodedata.normalize("NFC", "".join(kept))
