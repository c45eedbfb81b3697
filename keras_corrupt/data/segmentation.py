"""How a vocabulary cuts held-out text, for a person to judge it by."""

import string
from collections.abc import Sequence

from keras_corrupt.tokenizers import Tokenizer
from keras_corrupt.tokenizers.vocabulary import is_word_character

_PUNCTUATION = string.punctuation + "„“”‚‘’«»‹›–—…¿¡"
# Vocabularies of 4,000 to 30,000 tokens cut words of their own language into 1.1 to 1.9
# tokens, German words by an English vocabulary into 2.1 to 3.4 and English by a German
# one into 1.9 to 3.2; of 1,000 tokens, those of their own language into 1.6 to 2.7.
_MANY_TOKENS = 2.0
_MANY_UNKNOWN = 0.02
# Mean characters of what stands between spaces; beyond, the script writes none.
_LONG_WORDS = 15
_EXAMPLES, _EXAMPLE_TOKENS = 3, 16


def describe_segmentation(tokenizer: Tokenizer, lines: Sequence[str]) -> dict:
    """Measures how a tokenizer cuts text.

    Args:
        tokenizer: The tokenizer.
        lines: A sample of the text, not what the vocabulary was trained on.

    Returns:
        A dict, JSON-ready: `tokens_per_word`, of words of letters and digits between
        spaces, punctuation at their ends left out (None where there are no words of
        usual length); `unknown_rate`, of all tokens; and `examples`, the tokens of the
        first lines.
    """
    words = [word.strip(_PUNCTUATION) for line in lines for word in line.split()]
    words = [word for word in words if word and all(map(is_word_character, word))]
    tokens_per_word = None
    if words and sum(map(len, words)) <= _LONG_WORDS * len(words):
        pieces = sum(map(len, tokenizer.encode_batch(words)))
        tokens_per_word = round(pieces / len(words), 2)
    encoded = [ids for ids in tokenizer.encode_batch(lines) if ids]
    unknown = sum(ids.count(tokenizer.unknown_id) for ids in encoded)
    return {
        "tokens_per_word": tokens_per_word,
        "unknown_rate": round(unknown / max(1, sum(map(len, encoded))), 4),
        "examples": [
            " ".join(map(tokenizer.readable, ids[:_EXAMPLE_TOKENS]))
            for ids in encoded[:_EXAMPLES]
        ],
    }


def summary(segmentation: dict) -> str:
    """Writes the two numbers of a segmentation in a line.

    Args:
        segmentation: By `describe_segmentation`.

    Returns:
        The line.
    """
    tokens = segmentation["tokens_per_word"]
    words = f"{tokens} tokens a word, " if tokens else ""
    return f"held-out text: {words}{segmentation['unknown_rate']:.2%} unknown tokens"


def warning(segmentation: dict) -> str | None:
    """Tells what is bad about a segmentation, and the remedy.

    Args:
        segmentation: By `describe_segmentation`.

    Returns:
        A line, or None if nothing is.
    """
    tokens, unknown = segmentation["tokens_per_word"], segmentation["unknown_rate"]
    if (tokens or 0) <= _MANY_TOKENS and unknown <= _MANY_UNKNOWN:
        return None
    return (
        f"WARNING: the vocabulary fits the text badly ({summary(segmentation)}; usual "
        "are 1.1 to 1.9, and below 1%). Train one on the corpus (no --vocabulary), or "
        "a larger one (--vocabulary_size)."
    )
