from itertools import islice

import numpy as np
import pytest

from keras_corrupt.cross_view.text.batches import WordBatches, alternating
from keras_corrupt.cross_view.text.sentences import Sentences, unlabelled_sentences
from keras_corrupt.cross_view.text.vocabulary import WordVocabulary
from keras_corrupt.cross_view.text.word_vectors import first_words, read_word_vectors
from keras_corrupt.data import open_corpus
from keras_corrupt.data.corpus import CorpusError
from keras_corrupt.data.corpus_files import Omissions
from tests.cross_view.conftest import LETTERS, WORDS, sentences_of


def batches_of(count, labelled=True, seed=1, **arguments):
    sentences, tags = sentences_of(count, longest=40, **arguments)
    vocabulary = WordVocabulary(WORDS, LETTERS)
    labels = np.concatenate(tags) if labelled else None
    return WordBatches(Sentences(sentences), vocabulary, labels, 4, seed)


def test_each_pass_has_each_sentence_once_with_its_tags():
    sentences, tags = sentences_of(18, longest=40)
    batches = batches_of(18)
    orders = []
    for number in (0, 1):
        seen = []
        for i in range(number * len(batches), (number + 1) * len(batches)):
            rows = batches.rows(i)
            inputs, targets = batches.batch(i)
            assert len(inputs["word_ids"]) == 4
            for k, row in enumerate(rows):
                real = inputs["padding_mask"][k] > 0
                ids = [WORDS.index(word) + 2 for word in sentences[row]]
                assert inputs["word_ids"][k][real].tolist() == ids
                assert targets[k][real].tolist() == tags[row]
                assert (targets[k][~real] == -1).all()
            assert not inputs["padding_mask"][len(rows) :].any()
            seen += rows.tolist()
        assert sorted(seen) == list(range(18))
        orders.append(seen)
    assert orders[0] != orders[1]


def test_batches_alternate_and_go_on_anywhere():
    kinds = [batches_of(18), batches_of(11, labelled=False, seed=2)]
    whole = list(islice(alternating(kinds), 20))
    assert [int(x["labelled"][0]) for x, _ in whole] == [1, 0] * 10
    late = list(islice(alternating(kinds, 1, first=4), 9))
    assert [int(x["labelled"][0]) for x, _ in late] == [1, 1, 1, 1, 0, 1, 0, 1, 0]
    # Nothing is passed over.
    turns = [tags for x, tags in late if x["labelled"][0]]
    expected = [kinds[0].batch(turn)[1] for turn in range(1, 7)]
    for found, known in zip(turns, expected, strict=True):
        np.testing.assert_array_equal(found, known)
    assert all((np.array(tags) == -1).all() for _, tags in whole[1::2])
    again = list(islice(alternating([batches_of(18), kinds[1]], 7), 13))
    for (x, tags), (expected, expected_tags) in zip(again, whole[7:], strict=True):
        np.testing.assert_array_equal(tags, expected_tags)
        for name in expected:
            np.testing.assert_array_equal(x[name], expected[name])


def test_sentences_of_text(tmp_path):
    path = tmp_path / "wiki.txt"
    path.write_text(
        '= A heading =\nThe U.S. cat didn\'t sit (near "it"). A dog ran by 1,000.5!\n'
        "Too short.\n"
    )
    omissions = Omissions()
    assert list(unlabelled_sentences(open_corpus(str(path)), omissions=omissions)) == [
        'The U.S. cat did n\'t sit ( near " it " ) .'.split(),
        "A dog ran by 1,000.5 !".split(),
    ]
    assert omissions == {
        "lines that end without a stop": [1, "= A heading ="],
        "sentences that have not 4 to 100 words": [1, "Too short ."],
    }


def test_lines_of_words_are_taken_as_they_are(tmp_path):
    path = tmp_path / "words.txt"
    path.write_text("the cat did n't\na b\n`` it is ''\n" + "a " * 101)
    omissions = Omissions()
    corpus = open_corpus(str(path))
    found = list(unlabelled_sentences(corpus, in_words=True, omissions=omissions))
    assert found == [["the", "cat", "did", "n't"], ["a", "b"], ["``", "it", "is", "''"]]
    ((reason, (count, _)),) = omissions.items()
    assert (reason, count) == ("sentences that have not 1 to 100 words", 1)


@pytest.mark.parametrize(
    "content, message",
    [
        (b"Caf\xe9 is not the way it should be.", "UTF-8"),
        (b"= Heading =\n", "no sentence"),
    ],
)
def test_bad_text(tmp_path, content, message):
    (tmp_path / "bad.txt").write_bytes(content)
    with pytest.raises(CorpusError, match=message):
        list(unlabelled_sentences(open_corpus(str(tmp_path / "bad.txt"))))


def test_vocabulary_leaves_rare_words_out_and_knows_words_in_any_case():
    counts = {"The": 2, "the": 1, "cat": 2, "Cat": 1, "rare": 1, "dog": 2}
    vocabulary = WordVocabulary.of(counts, size=3)
    assert vocabulary.words == ["cat", "the", "dog"]
    word_ids, _ = vocabulary.encode(["CAT", "rare", "dog"])
    assert word_ids.tolist() == [2, 1, 4]
    numbers = WordVocabulary.of({"1,984": 1, "2,001": 1}, size=3)
    assert numbers.words == ["0,000"]
    assert numbers.encode(["3,14", "3,141"])[0].tolist() == [1, 2]
    assert WordVocabulary(["19", "20"], "").encode(["21"])[0].tolist() == [2]
    assert WordVocabulary.of(counts, size=1).words == ["cat"]
    more = ["dog", "fish", "cow"]
    assert WordVocabulary.of(counts, size=4, more=more).words[2:] == ["dog", "fish"]


def test_long_words_keep_their_end_mark():
    _, ids = WordVocabulary(["a"], "ab").encode(["ab" * 30, "b"])
    assert ids.shape == (2, 20) and ids[0].tolist() == [2, *[4, 5] * 9, 3]
    assert ids[1].tolist() == [2, 5, 3] + [0] * 17


def test_word_vectors(tmp_path):
    path = tmp_path / "glove.txt"
    path.write_text("the 1 2 3\na b 4 5 6\ncat 7 8 9\nthe 0 0 0\n12 1 1 1\n13 2 2 2\n")
    found = read_word_vectors(path, ["the", "a b", "dog", "00"], 3)
    assert {word: vector.tolist() for word, vector in found.items()} == {
        "the": [1, 2, 3],
        "a b": [4, 5, 6],
        "00": [1, 1, 1],
    }


def test_words_that_are_not_utf_8_are_left_out(tmp_path):
    path = tmp_path / "glove.txt"
    path.write_bytes(b"the 1 2 3\ncaf\xe9 1 2 3\n\xff 1 2 3\ncaf\xc3\xa9 4 5 6\n \n\n")
    with pytest.warns(match=r"glove.txt: 2 words are not UTF-8 \(the first in line 2"):
        found = read_word_vectors(path, ["the", "café"], 3)
    assert {word: vector.tolist() for word, vector in found.items()} == {
        "the": [1, 2, 3],
        "café": [4, 5, 6],
    }
    assert first_words(path, 1, size=3) == ["the"]


def test_first_words_of_vectors(tmp_path):
    path = tmp_path / "word2vec.txt"
    path.write_text("4 3\nthe 1 2 3\nParis 4 5 6\nthe 0 0 0\n4th 7 8 9\ndog 1 1 1\n")
    assert first_words(path, 2, size=3) == ["the", "paris"]
    assert first_words(path, 9, size=3) == ["the", "paris", "0th", "dog"]
    with pytest.raises(ValueError, match="has 3 numbers, not the 2"):
        first_words(path, 9, size=2)
    with pytest.raises(ValueError, match="not a file"):
        first_words(tmp_path / "none", 2, size=3)


@pytest.mark.parametrize(
    "text, message",
    [
        ("the 1 2\n", "line 1 has 2 numbers, not the 3"),
        ("the 1 2 3 4\n", "line 1 has 4 numbers, not the 3"),
        ("x 1 2 3\nthe 1 2\n", "line 2 has 2 numbers"),
        ("x 1 2 3\nthe 1 2 z\n", "line 2: could not convert"),
        ("x 1 2 3\nthe 1 nan 3\n", "line 2 .*not finite"),
        ("dog 1 2 3\n", "none of the 1 words"),
        (None, "not a file"),
    ],
)
def test_bad_word_vectors(tmp_path, text, message):
    path = tmp_path / "glove.txt"
    if text is not None:
        path.write_text(text)
    with pytest.raises(ValueError, match=message):
        read_word_vectors(path, ["the"], 3)
