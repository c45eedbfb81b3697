import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_corrupt.tasks.conll import TaggingTask, read_conll
from keras_corrupt.tasks.tagging_schemes import spans
from keras_corrupt.tasks.task import Split

CHUNKS = """\
-DOCSTART- -X- O

Rain NN B-NP
falls VBZ B-VP
# # O

It PRP B-NP
stops VBZ B-VP
"""

CONLLU = """\
# sent_id = 1
# text = Don't go .
1-2\tDon't\t_\t_\t_\t_\t_\t_\t_\t_
1\tDo\tdo\tAUX\tVB\t_\t3\taux\t_\t_
2\tn't\tnot\tPART\tRB\t_\t3\tadvmod\t_\t_
3\tgo\tgo\tVERB\tVB\t_\t0\troot\t_\t_
3.1\tgone\tgo\tVERB\tVB\t_\t_\t_\t_\t_
4\t.\t.\tPUNCT\t.\t_\t3\tpunct\t_\t_

# sent_id = 2
1\t#\t#\tSYM\tSYM\t_\t0\troot\t_\t_
2\t10 000\t10 000\tNUM\tCD\t_\t1\tnummod\t_\t_

"""


def written(tmp_path, text, name="f.txt"):
    path = tmp_path / name
    path.write_bytes(text.encode("utf-8"))
    return str(path)


class TestReading:
    def test_columns_by_spaces(self, tmp_path):
        split = read_conll(written(tmp_path, CHUNKS))
        assert split.examples == [["Rain", "falls", "#"], ["It", "stops"]]
        assert split.labels == [["B-NP", "B-VP", "O"], ["B-NP", "B-VP"]]
        assert split.skipped == {}
        parts = read_conll(written(tmp_path, CHUNKS), tag_column=1, scheme="plain")
        assert parts.labels == [["NN", "VBZ", "#"], ["PRP", "VBZ"]]
        aligned = written(tmp_path, CHUNKS.replace(" ", "   "))
        again = read_conll(aligned, tag_column=1, scheme="plain")
        assert (again.examples, again.labels) == (parts.examples, parts.labels)

    def test_odd_white_space(self, tmp_path):
        text = (
            "\ufeff#tag\tO\r\nNew\u00a0York\tB-LOC\r\n\t\r\n"
            "a\u2028b\tO\r\nc\x85d\tO\r\n   \r\n\r\ne\tO"
        )
        split = read_conll(written(tmp_path, text))
        assert split.examples == [
            ["#tag", "New\u00a0York"],
            ["a\u2028b", "c\x85d"],
            ["e"],
        ]
        assert split.labels == [["O", "B-LOC"], ["O", "O"], ["O"]]

    def test_comments_of_column_files(self, tmp_path):
        text = "# id 7 domain=x\na O\n\n# sent_id = 3\nb O\n# O\n\n# O\nc O\n"
        split = read_conll(written(tmp_path, text))
        assert split.examples == [["a"], ["b", "#"], ["#", "c"]]

    def test_documents_of_conll_2012(self, tmp_path):
        text = (
            "#begin document (nw/a/0001); part 000\n"
            "nw/a/0001 0 0 Tom NNP (A\nnw/a/0001 0 1 sees VBZ *\n\n#end document\n"
            "#begin document (nw/a/0002); part 000\n"
            "nw/a/0002 0 0 # SYM * -\n#end document\nnw/a/0003 0 0 Ann NNP *\n"
        )
        split = read_conll(written(tmp_path, text), 3, 4, "plain")
        assert split.examples == [["Tom", "sees"], ["#"], ["Ann"]]
        assert split.labels == [["NNP", "VBZ"], ["SYM"], ["NNP"]]
        assert split.skipped == {}

    @pytest.mark.parametrize(
        "comment",
        [
            "#\thttp://example.org/a\t[2009-10-17]",  # GermEval 2014
            "###MEDLINE:95369245",  # JNLPBA 2004
            "# global.columns = ID FORM LEMMA",  # CoNLL-U Plus
            "# newdoc id = a",
            "# hipe2022:document_id = NZZ-1798",  # HIPE 2022
            "#FORMAT=WebAnno TSV 3.2",
            "# a note of four",
        ],
    )
    def test_comments_of_shared_tasks(self, tmp_path, comment):
        rows = "1\tTom\tB-PER\tO\n2\t#\tO\tO\n"
        path = written(tmp_path, f"{comment}\n{rows}\n{comment}\n{comment}\n{rows}")
        split = read_conll(path, 1, 2)
        assert split.examples == [["Tom", "#"]] * 2
        assert split.labels == [["B-PER", "O"]] * 2
        assert split.skipped == {}

    @pytest.mark.parametrize("space", [" ", "\t"])
    def test_hashtags_are_words(self, tmp_path, space):
        rows = ["#a=b O", "#tag B-X", "#begin O", "", "# O", "", "#tag O", "x O"]
        text = "\n".join(rows).replace(" ", space)
        split = read_conll(written(tmp_path, text))
        assert split.examples == [["#a=b", "#tag", "#begin"], ["#"], ["#tag", "x"]]
        alone = read_conll(written(tmp_path, f"#tag{space}O\n"))
        assert alone.examples == [["#tag"]]

    def test_conllu(self, tmp_path):
        path = written(tmp_path, CONLLU)
        split = read_conll(path, scheme="plain")
        assert split.examples == [["Do", "n't", "go", "."], ["#", "10 000"]]
        assert split.labels == [["AUX", "PART", "VERB", "PUNCT"], ["SYM", "NUM"]]
        split = read_conll(path, tag_column=4, scheme="plain")
        assert split.labels[0] == ["VB", "RB", "VB", "."]
        split = read_conll(path, word_column=2, tag_column=7, scheme="plain")
        assert split.examples[0] == ["do", "not", "go", "."]
        assert split.labels[0] == ["aux", "advmod", "root", "punct"]

    def test_schemes(self, tmp_path):
        path = written(tmp_path, "a I-X\nb I-X\nc B-X\nd O\ne I-Y\n")
        assert read_conll(path).labels == [["B-X", "I-X", "B-X", "O", "B-Y"]]
        bioes = read_conll(path, scheme="bioes").labels
        assert bioes == [["B-X", "E-X", "S-X", "O", "S-Y"]]
        plain = read_conll(path, scheme="plain").labels
        assert plain == [["I-X", "I-X", "B-X", "O", "I-Y"]]

    def test_sentences_with_incomplete_rows_are_counted(self, tmp_path):
        text = "a O\nb O\n\nc\nd\n\ne O\n\nf O\ng\n"
        path = written(tmp_path, text)
        split = read_conll(path)
        assert split.examples == [["a", "b"], ["e"]]
        assert list(split.skipped.values()) == [(2, f"{path}:4")]
        path = written(tmp_path, "a\tO\n\tO\n\nb\t\n\nc\tO\n")
        split = read_conll(path)
        assert split.examples == [["c"]]
        assert list(split.skipped.values()) == [(2, f"{path}:2")]

    def test_a_row_without_its_tag_does_not_get_another_column(self, tmp_path):
        text = "EU NNP B-NP B-ORG\nrejects VBZ B-VP O\n\nPeter NNP B-NP B-PER\n"
        path = written(tmp_path, f"{text}Blackburn NNP I-NP\n\nNew York NNP B-NP O\n")
        split = read_conll(path)
        assert split.labels == [["B-ORG", "O"]]
        assert list(split.skipped.values()) == [(2, f"{path}:5")]

    def test_words_alone(self, tmp_path):
        path = written(tmp_path, "a\nb\n\nc\n")
        split = read_conll(path, tags="optional")
        assert split == Split([["a", "b"], ["c"]])
        with pytest.raises(ValueError, match="same.*1 columns"):
            read_conll(path)

    def test_errors(self, tmp_path):
        path = written(tmp_path, CHUNKS)
        with pytest.raises(ValueError, match="3 columns.*tag_column=3"):
            read_conll(path, tag_column=3)
        with pytest.raises(ValueError, match="same"):
            read_conll(path, word_column=2)
        with pytest.raises(ValueError, match="'bilou'"):
            read_conll(path, scheme="bilou")
        with pytest.raises(ValueError, match="f.txt:3 has the tag 'NN'.*plain"):
            read_conll(path, tag_column=1)
        with pytest.raises(ValueError, match="no sentence"):
            read_conll(written(tmp_path, "\n \n-DOCSTART- O\n"))
        with pytest.raises(ValueError, match="every sentence.*line 1"):
            read_conll(written(tmp_path, "a\nb O\n"))
        os.mkfifo(tmp_path / "pipe")
        for name in ("missing", "pipe", ".", "x" * 300):
            with pytest.raises(FileNotFoundError, match=" is not a file"):
                read_conll(tmp_path / name)
        (tmp_path / "latin").write_bytes("é O\n".encode("latin-1"))
        with pytest.raises(ValueError, match="UTF-8"):
            read_conll(tmp_path / "latin")


TRAIN = "a B-X\nb I-X\nc O\nd O\ne O\n\nf B-Y\ng O\n"
DEV = "a B-X\nb I-X\nc O\n\nd B-Z\ne B-X\n"


@pytest.fixture
def task(tmp_path):
    files = {
        "train": written(tmp_path, TRAIN, "train"),
        "dev": written(tmp_path, DEV, "dev"),
        "test": written(tmp_path, "h\ni\n", "test"),
    }
    return TaggingTask("toy", files)


class TestTask:
    def test_what_it_learns(self, task):
        labels = ["B-X", "B-Y", "I-X", "O"]
        assert task.model_arguments == {"labels": labels}
        assert task.main_metric == "f1"
        assert task.unseen == {"train": {}, "dev": {"B-Z": 1}, "test": {}}
        assert task.splits["test"] == Split([["h", "i"]])

    def test_a_fingerprint_is_of_all_that_a_split_holds(self, task):
        split = task.splits["dev"]
        words, tags = split.examples, split.labels
        same = Split([list(x) for x in words], [list(x) for x in tags])
        assert split.fingerprint() == same.fingerprint() == "e6cbac767ef38f1d"
        others = [
            Split(words[::-1], tags[::-1]),
            Split(words, tags[::-1]),
            Split(words, tags, ids=["0", "1"]),
            Split(words),
            Split([["ab", "", "c"], *words[1:]], tags),
        ]
        hashes = {other.fingerprint() for other in (split, *others)}
        assert len(hashes) == 1 + len(others)

    def test_metrics_by_hand(self, task):
        # Gold: X(0-2); Z(0), X(1). Found: X(0-2), Y(2); X(0-2).
        predictions = [["B-X", "I-X", "B-Y"], ["B-X", "I-X"]]
        found = task.metrics(predictions, task.splits["dev"])
        precision, recall = 1 / 3, 1 / 3
        f1 = 2 * precision * recall / (precision + recall)
        expected = {"accuracy": 2 / 5, "f1": f1, "precision": 1 / 3, "recall": 1 / 3}
        assert found == pytest.approx({k: 100 * v for k, v in expected.items()})

    def test_no_span_found(self, task):
        split = task.splits["dev"]
        found = task.metrics(task.guesses(split), split)
        assert task.guesses(split) == [["O"] * 3, ["O"] * 2]
        assert found == {"accuracy": 20.0, "f1": 0.0, "precision": 0.0, "recall": 0.0}

    @settings(max_examples=50, deadline=None)
    @given(st.integers(0, 2**32), st.sampled_from(["bio", "bioes"]))
    def test_f1_counts_equal_spans(self, seed, scheme):
        rng = np.random.default_rng(seed)
        letters = "BI" if scheme == "bio" else "BIES"
        tags = ["O", *(f"{x}-{y}" for x in letters for y in "AB")]
        gold, found = (
            [[str(t) for t in rng.choice(tags, n)] for n in (1, 4, 9)] for _ in range(2)
        )
        in_gold, in_found = (
            {(i, *span) for i, sentence in enumerate(s) for span in spans(sentence)}
            for s in (gold, found)
        )
        right, sizes = len(in_gold & in_found), len(in_gold) + len(in_found)
        task = TaggingTask.__new__(TaggingTask)
        task.scheme = scheme
        values = task.metrics(found, Split([["w"] * len(s) for s in gold], gold))
        assert values["f1"] == pytest.approx(200 * right / sizes if sizes else 0)

    def test_plain_tags(self, tmp_path):
        path = written(tmp_path, CONLLU)
        task = TaggingTask("pos", {"train": path, "dev": path}, scheme="plain")
        assert task.main_metric == "accuracy"
        predictions = [["AUX", "PART", "NOUN", "PUNCT"], ["SYM", "SYM"]]
        found = task.metrics(predictions, task.splits["dev"])
        assert found == {"accuracy": pytest.approx(100 * 4 / 6)}

    def test_predictions_are_read_back(self, task, tmp_path):
        predictions = [["B-X", "I-X", "O"], ["O", "B-X"]]
        path = task.write_predictions(predictions, "dev", tmp_path)
        with open(path, encoding="utf-8") as file:
            assert file.readline() == "a\tB-X\tB-X\n"
        split = read_conll(path)
        assert (split.examples, split.labels) == (
            task.splits["dev"].examples,
            predictions,
        )
        assert read_conll(path, tag_column=1).labels == task.splits["dev"].labels
        path = task.write_predictions([["O", "B-Y"]], "test", tmp_path)
        with open(path, encoding="utf-8") as file:
            assert file.read() == "h\tO\ni\tB-Y\n\n"
        assert not [p for p in tmp_path.iterdir() if p.suffix == ".partial"]

    def test_errors(self, task, tmp_path):
        with pytest.raises(ValueError, match="'train' and a 'dev'"):
            TaggingTask("t", {"train": written(tmp_path, TRAIN)})
        path = written(tmp_path, "a O\nb O\n")
        with pytest.raises(ValueError, match="nothing to learn"):
            TaggingTask("t", {"train": path, "dev": path})
        with pytest.raises(ValueError, match="2 tags for the 3 words"):
            task.metrics([["O"] * 2, ["O"] * 2], task.splits["dev"])
