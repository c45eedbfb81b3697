"""Vocabularies that grow by the pieces of a text."""

import itertools

import pytest

from keras_corrupt.tokenizers import SPECIAL_TOKENS, WordPieceTokenizer
from keras_corrupt.tokenizers.growth import extends, grown, old_pieces

TEXT = [
    "Transformers pretrain encoders; encoders pretrain transformers.",
    "An encoder of transformers, a transformer of encoders.",
] * 20


@pytest.fixture(scope="module")
def old():
    lines = ["the cat sat on the mat, an encoded cat of the form trans x"] * 20
    letters = [chr(c) for c in range(97, 123)]
    return WordPieceTokenizer.train([*lines, " ".join(letters), *letters], 150)


def test_old_ids_keep_their_meaning_and_new_pieces_are_used(old):
    new = grown(old, TEXT, number=6)
    assert new.vocabulary[: old.vocabulary_size] == old.vocabulary
    assert new.vocabulary_size == old.vocabulary_size + 6
    assert extends(new, old) and not extends(old, new)
    assert new.flags == old.flags and new.roles == old.roles
    used = {i for ids in new.encode_batch(TEXT) for i in ids}
    assert used >= set(range(old.vocabulary_size, new.vocabulary_size))
    for tokenizer in (old, new):
        words = tokenizer.decode(tokenizer.encode("transformers encoders"))
        assert words == "transformers encoders"
    assert len(new.encode("transformers")) < len(old.encode("transformers"))
    # Of what no new piece is in, nothing changes.
    assert new.encode("the mat, the cat") == old.encode("the mat, the cat")
    assert grown(old, TEXT, number=6).vocabulary == new.vocabulary


def test_the_most_used_pieces_are_taken(old):
    # Whole words come first here: each is in every line, some in it twice.
    (added,) = grown(old, TEXT, number=1).vocabulary[old.vocabulary_size :]
    assert added in {"transformers", "encoders"}
    # An odd word is no reason to grow by its pieces.
    odd = [*TEXT, "zyxwv zyxwv"]
    assert grown(old, odd, number=3).vocabulary == grown(old, TEXT, 3).vocabulary


def test_old_pieces_are_how_the_old_vocabulary_cuts(old):
    new = grown(old, TEXT, number=7)
    pieces = new.vocabulary[old.vocabulary_size :]
    found = old_pieces(old, new)
    assert len(found) == 7
    for piece, ids in zip(pieces, found, strict=True):
        if ids == [old.unknown_id]:
            continue
        parts = [part.removeprefix("##") for part in old.tokens(ids)]
        assert len(parts) > 1 and "".join(parts) == piece.removeprefix("##")
        if not piece.startswith("##"):
            assert old.encode(piece) == ids


def test_the_longest_piece_that_is_known_comes_first():
    old = WordPieceTokenizer([*SPECIAL_TOKENS, "a", "ab", "##b", "##bc", "##c", "##d"])
    new = WordPieceTokenizer([*old.vocabulary, "abc", "##bcd", "ax", "abcd"])
    cuts = [old.tokens(ids) for ids in old_pieces(old, new)]
    assert cuts == [["ab", "##c"], ["##bc", "##d"], ["[UNK]"], ["ab", "##c", "##d"]]


def test_letters_that_were_unknown_can_be_learned(old):
    assert old.encode("ωα") == [old.unknown_id]
    new = grown(old, ["αω ωα αω"] * 30, number=20)
    assert new.unknown_id not in new.encode("αω ωα")
    assert [old.unknown_id] in old_pieces(old, new)


def test_what_cannot_grow(trained, old):
    for kind, why in (("byte_bpe", "merge"), ("unigram", "probabilities")):
        with pytest.raises(ValueError, match=f"kind {kind} cannot grow: .*{why}"):
            grown(trained[kind], TEXT, 5)
        assert extends(trained[kind], trained[kind])
    with pytest.raises(ValueError, match="no piece that the vocabulary lacks"):
        grown(grown(old, TEXT, 10_000), TEXT, 5)
    with pytest.raises(ValueError, match="corpus is empty"):
        grown(old, [], 5)


def test_another_vocabulary_does_not_extend(old):
    other = WordPieceTokenizer([*old.vocabulary, "new"], lowercase=False)
    assert not extends(other, old)
    a, b = old.vocabulary[-2:]
    swapped = WordPieceTokenizer([*old.vocabulary[:-2], b, a, "new"], **old.flags)
    assert not extends(swapped, old)
    for one, two in itertools.permutations([old, other, swapped], 2):
        assert not extends(one, two)
