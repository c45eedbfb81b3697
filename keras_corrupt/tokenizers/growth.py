"""A vocabulary that grows: new word pieces of a text that the old ones cut."""

from collections import Counter
from collections.abc import Iterable

from keras_corrupt.tokenizers.roles import SPECIAL_TOKENS
from keras_corrupt.tokenizers.tokenizer import Tokenizer
from keras_corrupt.tokenizers.vocabulary import ALPHABET_SIZE, even_sample
from keras_corrupt.tokenizers.wordpiece import INSIDE, WordPieceTokenizer

_REASONS = {
    "byte_bpe": "a new merge would change how texts are cut that the old ones knew",
    "unigram": "new pieces would need probabilities, which depend on all pieces",
}


def check_growth(tokenizer: Tokenizer) -> None:
    """Checks that a vocabulary can grow.

    Args:
        tokenizer: It.

    Raises:
        ValueError: If it is of a kind that cannot.
    """
    if not isinstance(tokenizer, WordPieceTokenizer):
        raise ValueError(
            f"A vocabulary of the kind {tokenizer.kind} cannot grow: "
            f"{_REASONS[tokenizer.kind]}. Leave out --grow_vocabulary; only word "
            "pieces can grow."
        )


def grown(
    tokenizer: Tokenizer,
    lines: Iterable[str],
    number: int,
    max_train_bytes: int = 200_000_000,
) -> WordPieceTokenizer:
    """Adds new pieces to a vocabulary; the ids that it has keep their meaning.

    A vocabulary is learned from the text as a new one would be. Some of its pieces the
    old one lacks, and so cuts; the pieces among them that the text then uses most are
    added.

    Args:
        tokenizer: The old vocabulary, of word pieces.
        lines: The text; read once.
        number: Pieces to add. A small text gives fewer.
        max_train_bytes: See `WordPieceTokenizer.train`.

    Returns:
        The tokenizer; the same lines always give the same one.

    Raises:
        ValueError: If the vocabulary cannot grow, there is no text, or the text has no
            piece that is not known.

    Example:
    >>> old = WordPieceTokenizer([*SPECIAL_TOKENS, "ten", "##s", "##o", "##r"])
    >>> new = grown(old, ["tensor tensors"] * 9, number=1)
    >>> (pieces,) = old_pieces(old, new)
    >>> new.vocabulary[-1], old.tokens(pieces)
    ('tensor', ['ten', '##s', '##o', '##r'])
    """
    check_growth(tokenizer)
    sample = even_sample(lines, max_train_bytes)
    # Room for the new pieces beside all of the old ones and all usual letters.
    size = tokenizer.vocabulary_size + number + 2 * ALPHABET_SIZE + len(SPECIAL_TOKENS)
    learned = WordPieceTokenizer.train(sample, size, **tokenizer.flags)
    old = set(tokenizer.vocabulary)
    candidates = [
        piece for piece in learned.vocabulary if piece not in {*old, *SPECIAL_TOKENS}
    ]
    both = _extended(tokenizer, candidates)
    uses: Counter[int] = Counter()
    for start in range(0, len(sample), 1000):
        for ids in both.encode_batch(sample[start : start + 1000]):
            uses.update(ids)
    first = tokenizer.vocabulary_size
    most = sorted(
        (index for index in range(first, both.vocabulary_size) if uses[index]),
        key=lambda index: (-uses[index], index),
    )
    if not most:
        raise ValueError(
            "the text has no piece that the vocabulary lacks, so it cannot grow. Leave "
            "out --grow_vocabulary."
        )
    return _extended(tokenizer, [both.vocabulary[index] for index in most[:number]])


def extends(tokenizer: Tokenizer, old: Tokenizer) -> bool:
    """Whether a vocabulary is an old one, or that one grown.

    Args:
        tokenizer: The vocabulary.
        old: The old one.
    """
    if tokenizer.fingerprint == old.fingerprint:
        return True
    old_vocabulary = old.vocabulary
    return (
        isinstance(old, WordPieceTokenizer)
        and (tokenizer.kind, tokenizer.flags) == (old.kind, old.flags)
        and tokenizer.roles == old.roles
        and tokenizer.vocabulary[: len(old_vocabulary)] == old_vocabulary
    )


def old_pieces(old: Tokenizer, tokenizer: Tokenizer) -> list[list[int]]:
    """Tells what a grown vocabulary's new pieces were made of before.

    Args:
        old: The vocabulary before it grew.
        tokenizer: It now.

    Returns:
        For each new piece the ids of the pieces that it was cut into, greedily from its
        beginning as in a text; the id of the unknown token where a letter was not
        known.
    """
    ids = {piece: index for index, piece in enumerate(old.vocabulary)}
    new = tokenizer.vocabulary[old.vocabulary_size :]
    return [_cut(piece, ids) or [old.unknown_id] for piece in new]


def _cut(piece, ids):
    piece_ids, prefix = [], INSIDE if piece.startswith(INSIDE) else ""
    rest = piece.removeprefix(prefix)
    while rest:
        ends = range(len(rest), 0, -1)
        end = next((end for end in ends if prefix + rest[:end] in ids), None)
        if end is None:
            return []
        piece_ids.append(ids[prefix + rest[:end]])
        rest, prefix = rest[end:], INSIDE
    return piece_ids


def _extended(tokenizer, pieces):
    return WordPieceTokenizer(
        [*tokenizer.vocabulary, *pieces], **tokenizer.flags, roles=tokenizer.roles
    )
