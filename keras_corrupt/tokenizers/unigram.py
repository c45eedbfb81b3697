"""SentencePiece's unigram language model."""

import itertools
import json
import re
from collections.abc import Iterable

import tokenizers
from tokenizers import normalizers, pre_tokenizers

from keras_corrupt.tokenizers.normalization import case_and_accents
from keras_corrupt.tokenizers.roles import SPECIAL_TOKENS, find_roles
from keras_corrupt.tokenizers.tokenizer import Tokenizer
from keras_corrupt.tokenizers.vocabulary import (
    check_size,
    even_sample,
    frequent_letters,
    is_word_character,
)

# How the vocabulary writes a space.
SPACE = "▁"
# Words, numbers and other marks, each with the space before it.
_PARTS = r"▁?[\p{L}\p{M}]+|▁?\p{N}+|▁?[^▁\p{L}\p{M}\p{N}]+|▁"
# The library gives letters that its model lost the lowest score and this much more for
# each, in the order of a randomly seeded hash table.
_STEP = 1e-4
# Scores are sums in an order that varies, so their last digits do too.
_DIGITS = 3
# More pieces than wanted are trained, for those that join letters with other marks go.
_SURPLUS = 1.3
_UNKNOWN = find_roles(SPECIAL_TOKENS)["unknown"]
# Text without spaces is long words that all differ, and the library takes a minute or
# two for a million characters of them, ten and more for ten million.
_LONG = re.compile(" ?[^ ]{21,}")
_LONG_WORDS_SIZE = 1_000_000


class UnigramTokenizer(Tokenizer):
    """Cuts text into the pieces that are likeliest together, as SentencePiece does.

    A space belongs to the word after it and is written `▁`; every text begins with
    one. With a vocabulary trained here, text is brought to the Unicode form NFKC,
    white space is one space, and no piece joins letters with digits or other marks.
    A character that the vocabulary lacks is `[UNK]`.

    Args:
        engine: A `tokenizers.Tokenizer` with a unigram model.
        roles: See `Tokenizer`.

    Raises:
        ValueError: If the engine is of another kind, or lacks a special token.

    Example:
    >>> tokenizer = UnigramTokenizer.train(["the cat, the cats", "the catalogue"], 30)
    >>> tokenizer.tokens(tokenizer.encode("A CAT, cats"))
    ['▁', 'a', '▁cat', ',', '▁cat', 's']
    >>> tokenizer.decode(tokenizer.encode("The  cat"))
    'the cat'
    """

    kind = "unigram"

    @classmethod
    def train(
        cls,
        lines: Iterable[str],
        vocabulary_size: int = 30522,
        lowercase: bool = True,
        strip_accents: bool = True,
        max_train_bytes: int = 200_000_000,
        progress: bool = False,
    ) -> "UnigramTokenizer":
        """Learns a vocabulary; the same lines always give the same one.

        Args:
            lines: Any text, in pieces of any length; read once.
            vocabulary_size: Tokens wanted. A small corpus gives fewer.
            lowercase: Whether to lower-case text.
            strip_accents: Whether to remove combining marks (é to e).
            max_train_bytes: Text to train on, in UTF-8 bytes. From more text an evenly
                spread sample of half to all of this size is used and held in memory.
                Words of more than 20 characters, as the text of a script without
                spaces is, are sampled in the same way to a million characters.
            progress: Whether a terminal shows bars of progress.

        Returns:
            The tokenizer.

        Raises:
            ValueError: If there is no text, or the vocabulary has no room for the
                letters.
        """
        check_size(vocabulary_size)
        normalizer = normalizers.Sequence(
            [
                normalizers.Nmt(),
                normalizers.NFKC(),
                *case_and_accents(lowercase, strip_accents),
                normalizers.Replace(tokenizers.Regex(" {2,}"), " "),
                normalizers.Strip(),
            ]
        )
        sample = even_sample(lines, max_train_bytes)
        sample = [normalizer.normalize_str(line) for line in sample]
        letters = frequent_letters(sample, vocabulary_size)
        least = len(SPECIAL_TOKENS) + len({*letters, SPACE})
        if vocabulary_size < least:
            raise ValueError(
                f"vocabulary_size={vocabulary_size} has no room for the text's "
                f"{len(letters)} letters and the special tokens: at least {least} are "
                "needed."
            )
        pieces = _train(sample, letters, vocabulary_size, progress)
        vocabulary = [*((token, 0.0) for token in SPECIAL_TOKENS), *pieces]
        engine = tokenizers.Tokenizer(
            tokenizers.models.Unigram(vocabulary, SPECIAL_TOKENS.index(_UNKNOWN))
        )
        engine.normalizer = normalizer
        engine.pre_tokenizer = pre_tokenizers.Sequence([_words(), _parts()])
        engine.decoder = tokenizers.decoders.Metaspace(SPACE)
        return cls(engine)

    def _encoding_engine(self, engine):
        # The model knows no special tokens and would find them in a text. None has a
        # space when it gets there, so a name with a space is never found.
        parts = json.loads(engine.to_str())
        if parts["model"]["type"] != "Unigram":
            raise ValueError(
                f"it is no unigram tokenizer: its model is {parts['model']['type']}."
            )
        names = {
            token["content"] for token in parts["added_tokens"] if token["special"]
        }
        for token in parts["added_tokens"]:
            if token["special"]:
                token["content"] = f" {token['content']}"
        for piece in parts["model"]["vocab"]:
            if piece[0] in names:
                piece[0] = f" {piece[0]}"
        return tokenizers.Tokenizer.from_str(json.dumps(parts))

    def _begins_word(self, token):
        return not is_word_character(token[0])

    def _spaced(self, tokens):
        return "".join(tokens).replace(SPACE, " ")


def _train(sample, letters, vocabulary_size, progress) -> list[tuple[str, float]]:
    """Learns pieces; returns them with their scores, the likeliest first."""
    # Every letter becomes a piece; rare ones shall not.
    present = set().union(*sample)
    to_space = dict.fromkeys(map(ord, present - {*letters}), " ")
    engine = tokenizers.Tokenizer(tokenizers.models.Unigram())
    # Words are not split any further here: the trainer proposes only what occurs in
    # several different words, and "which" does in "which" and "which,".
    engine.pre_tokenizer = _words()
    trainer = tokenizers.trainers.UnigramTrainer(
        vocab_size=round(_SURPLUS * vocabulary_size),
        special_tokens=list(SPECIAL_TOKENS),
        initial_alphabet=letters,  # letters of words that are left out, too
        unk_token=_UNKNOWN,
        show_progress=progress,
    )
    sample = [line.translate(to_space) for line in sample]
    engine.train_from_iterator(_few_long_words(sample), trainer)
    scores = dict(json.loads(engine.to_str())["model"]["vocab"])
    for token in SPECIAL_TOKENS:
        del scores[token]
    lowest = min(scores.values())
    for piece, score in scores.items():
        lost = len(piece) == 1 and score < lowest + _STEP * len(scores)
        scores[piece] = round(lowest if lost else score, _DIGITS)
    split = _parts().pre_tokenize_str
    # All letters, and of the other pieces that are no more than one part the likeliest.
    order = sorted(scores, key=lambda piece: (len(piece) > 1, -scores[piece], piece))
    order = [piece for piece in order if len(split(piece)) == 1]
    kept = order[: vocabulary_size - len(SPECIAL_TOKENS)]
    kept.sort(key=lambda piece: (-scores[piece], piece))
    return [(piece, scores[piece]) for piece in kept]


def _few_long_words(sample):
    """Leaves out most long words of much text, and repeats the others as often."""
    size = sum(map(len, itertools.chain.from_iterable(map(_LONG.findall, sample))))
    stride = -(-size // _LONG_WORDS_SIZE)
    if stride < 2:
        return sample
    numbers = itertools.count()

    def repeated(match):
        return "" if next(numbers) % stride else f" {match[0].strip()}" * stride

    return [_LONG.sub(repeated, line).strip() for line in sample]


def _words():
    return pre_tokenizers.Metaspace(SPACE, prepend_scheme="always")


def _parts():
    return pre_tokenizers.Split(tokenizers.Regex(_PARTS), "isolated")
