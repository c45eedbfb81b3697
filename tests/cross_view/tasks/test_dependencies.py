import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_corrupt.cross_view.tasks.dependencies import (
    DependencyTask,
    read_dependencies,
    word_in_cycle,
)

CONLLU = """\
# sent_id = 1
# text = Don't go .
1-2\tDon't\t_\t_\t_\t_\t_\t_\t_\t_
1\tDo\tdo\tAUX\tVB\t_\t3\taux\t3:aux\t_
2\tn't\tnot\tPART\tRB\t_\t3\tadvmod:neg\t_\tSpaceAfter=No
3\tgo\tgo\tVERB\tVB\t_\t0\troot\t_\t_
3.1\tgone\tgo\tVERB\tVB\t_\t_\t_\t_\t_
4\t.\t.\tPUNCT\t.\t_\t3\tpunct\t_\t_

# sent_id = 2
1\t#\t#\tSYM\tSYM\t_\t0\troot\t_\t_
2\t10 000\t10 000\tNUM\tCD\t_\t1\tnummod\t_\t_
"""
TREES = [
    [(3, "aux"), (3, "advmod"), (0, "root"), (3, "punct")],
    [(0, "root"), (1, "nummod")],
]


def written(tmp_path, text, name="f.conllu"):
    path = tmp_path / name
    path.write_bytes(text.encode("utf-8"))
    return str(path)


def row(number, form="w", head="0", relation="root", tag="X"):
    return f"{number}\t{form}\t_\t{tag}\t_\t_\t{head}\t{relation}\t_\t_\n"


def make_task(tmp_path, train=CONLLU, dev=CONLLU, **arguments):
    files = {
        "train": written(tmp_path, train, "train"),
        "dev": written(tmp_path, dev, "dev"),
    }
    return DependencyTask("toy", files, **arguments)


class TestReading:
    def test_conllu(self, tmp_path):
        split = read_dependencies(written(tmp_path, CONLLU))
        assert split.examples == [["Do", "n't", "go", "."], ["#", "10 000"]]
        assert split.labels == TREES
        assert split.counted == [[True] * 4, [True] * 2]
        split = read_dependencies(written(tmp_path, CONLLU), False, subtypes=True)
        assert split.labels[0][1] == (3, "advmod:neg")
        assert split.counted == [[True, True, True, False], [True] * 2]

    def test_penn_treebank_tags_tell_punctuation(self, tmp_path):
        tags = ["``", "NN", "''", ":", ",", ".", "-LRB-", "CC"]
        rows = [row(i, head=str(i - 1), tag=t) for i, t in enumerate(tags, 1)]
        split = read_dependencies(written(tmp_path, "".join(rows)), punctuation=False)
        assert [
            t for t, counts in zip(tags, split.counted[0], strict=True) if counts
        ] == [
            "NN",
            "-LRB-",
            "CC",
        ]

    def test_a_test_file_may_lack_trees(self, tmp_path):
        text = row(1, head="_", relation="_", tag="_")
        path = written(tmp_path, text)
        split = read_dependencies(path, punctuation=False, may_lack_trees=True)
        assert split.labels is None and split.examples == [["w"]]
        with pytest.raises(ValueError, match="f.conllu:1 has the head '_'"):
            read_dependencies(path)
        path = written(tmp_path, row(1) + "\n" + text)
        with pytest.raises(ValueError, match="f.conllu:3 has the head '_'"):
            read_dependencies(path, may_lack_trees=True)

    @pytest.mark.parametrize(
        "text, message",
        [
            (row(1, head="2") + row(2, head="1"), ":1 is in a cycle"),
            (row(1) + row(2, head="3") + row(3, head="2"), ":2 is in a cycle"),
            (row(1) + row(2, head="2"), ":2 is in a cycle"),
            (
                "# c\n" + row(1) + row(2, head="1") + row(3),
                ":4 is a second root.*line 2",
            ),
            (row(1) + row(2, head="3"), ":2 has the head '3'.*1 to 2, or 0"),
            (row(1) + row(2, head="-1"), ":2 has the head '-1'"),
            (row(1) + row(2, head="x"), ":2 has the head 'x'"),
            (row(1) + row(2, head="²"), ":2 has the head '²'"),
            (row(1) + row(2, head="9" * 5000), ":2 has the head '999"),
            (row(1, form=""), ":1 has a word without characters"),
            (row(1, form="\u00a0 "), ":1 has a word without characters"),
            (row(1, relation="_"), ":1 has a word without a relation"),
            (row(1, relation=":x"), ":1 has a word without a relation"),
            (row(1) + row(3, head="1"), ":2 has the id '3' where 2 comes next"),
            (row(1) + "\n\n" + row(2), ":4 has the id '2' where 1 comes next"),
            ("1 w _ _ _ _ 0 root _ _\n", ":1 has 1 columns"),
            ("w\tO\n", ":1 has 2 columns"),
            ("# sent_id = 1\n\n", " has no sentence"),
        ],
    )
    def test_errors_name_file_and_line(self, tmp_path, text, message):
        with pytest.raises(ValueError, match=f"f.conllu{message}"):
            read_dependencies(written(tmp_path, text))

    def test_other_errors(self, tmp_path):
        with pytest.raises(FileNotFoundError, match="is not a file"):
            read_dependencies(tmp_path / "missing")
        (tmp_path / "latin").write_bytes("é".encode("latin-1"))
        with pytest.raises(ValueError, match="UTF-8"):
            read_dependencies(tmp_path / "latin")
        path = written(tmp_path, row(1, tag="_"))
        with pytest.raises(ValueError, match="no tags in its 4th column"):
            read_dependencies(path, punctuation=False)

    @settings(max_examples=200, deadline=None)
    @given(st.lists(st.integers(0, 8), min_size=1, max_size=8))
    def test_a_cycle_is_found_wherever_there_is_one(self, heads):
        heads = [min(head, len(heads)) for head in heads]

        def reaches_the_root(word):
            for _ in heads:
                word = heads[word - 1] if word else 0
            return word == 0

        lost = {w for w in range(1, len(heads) + 1) if not reaches_the_root(w)}
        found = word_in_cycle(heads)
        assert (found is None) == (not lost)
        if lost:
            ways = [found]
            for _ in heads:
                ways.append(heads[ways[-1] - 1])
            assert found in ways[1:]


class TestTask:
    def test_what_it_learns(self, tmp_path):
        dev = CONLLU.replace("nummod", "dep")
        task = make_task(tmp_path, dev=dev)
        labels = ["advmod", "aux", "nummod", "punct", "root"]
        assert task.model_arguments == {"labels": labels}
        assert task.unseen == {"train": {}, "dev": {"dep": 1}}
        with pytest.raises(ValueError, match="'train' and a 'dev'"):
            DependencyTask("t", {"train": written(tmp_path, CONLLU)})

    def test_fewer_sentences(self, tmp_path):
        split = make_task(tmp_path).splits["train"]
        first = split.take(1)
        assert len(first) == len(first.counted) == len(first.lines) == 1
        assert first.labels == TREES[:1]
        other = dataclasses.replace(first, counted=[[False] * len(first.examples[0])])
        same = dataclasses.replace(first, labels=[[list(e) for e in TREES[0]]])
        assert first.fingerprint() == same.fingerprint()
        prints = {part.fingerprint() for part in (first, other, split)}
        assert len(prints) == 3 and split.rows([0]).fingerprint() in prints

    def test_scores_by_hand(self, tmp_path):
        found = [
            [(3, "aux"), (1, "advmod"), (0, "dep"), (1, "punct")],
            [(0, "root"), (1, "nummod")],
        ]
        for punctuation, las, uas in [(True, 3 / 6, 4 / 6), (False, 3 / 5, 4 / 5)]:
            task = make_task(tmp_path, punctuation=punctuation)
            metrics = task.metrics(found, task.splits["dev"])
            assert metrics == pytest.approx({"las": 100 * las, "uas": 100 * uas})
        with pytest.raises(ValueError, match="1 heads for the 4 words"):
            task.metrics([[(0, "root")], TREES[1]], task.splits["dev"])

    def test_a_guess_is_a_chain(self, tmp_path):
        task = make_task(tmp_path)
        # Two edges to the left, one word apart: punct and nummod; one to the right.
        chain = [(0, "root"), (1, "punct"), (2, "punct"), (3, "punct")]
        assert task.guesses(task.splits["dev"])[0] == chain
        to_the_right = row(1, head="2", relation="det") + row(2)
        task = make_task(tmp_path, train=to_the_right)
        assert task.guesses(task.splits["dev"])[1] == [(2, "det"), (0, "root")]

    def test_failure(self, tmp_path):
        task = make_task(tmp_path)
        dev = task.splits["dev"]
        assert task.failure(TREES, dev) is None
        same = [[(head, "aux") for head, _ in tree] for tree in TREES]
        assert task.failure(same, dev) == "it gives every word the relation 'aux'"
        wrong = [[(head, "aux" * (head > 0)) for head, _ in t] for t in TREES]
        wrong[0][0] = (2, "x")
        assert (
            task.failure(wrong, dev) == "no word that counts gets its head and relation"
        )
        assert task.failure(task.guesses(dev), dev) is None

    def test_predictions_are_the_files_lines(self, tmp_path):
        task = make_task(tmp_path)
        found = [[(0, "root"), (1, "x"), (2, "y"), (3, "z")], [(2, "x"), (0, "root")]]
        path = task.write_predictions(found, "dev", tmp_path)
        with open(path, encoding="utf-8") as file:
            lines = file.read().splitlines()
        assert lines[:5] == [
            "# sent_id = 1",
            "# text = Don't go .",
            "1-2\tDon't\t_\t_\t_\t_\t_\t_\t_\t_",
            "1\tDo\tdo\tAUX\tVB\t_\t0\troot\t_\t_",
            "2\tn't\tnot\tPART\tRB\t_\t1\tx\t_\tSpaceAfter=No",
        ]
        assert read_dependencies(path).labels == found
        assert not [p for p in tmp_path.iterdir() if p.suffix == ".partial"]


def random_tree(rng, size, relations):
    """A tree with one root, whose words stand in any order."""
    order = rng.permutation(size) + 1
    tree = [None] * size
    for i, word in enumerate(order):
        head = int(rng.choice(order[:i])) if i else 0
        tree[word - 1] = head, str(rng.choice(relations)) if i else "root"
    return tree


@pytest.mark.parametrize("seed", range(3))
def test_scores_are_those_of_the_conll_evaluation(tmp_path, seed):
    udeval = pytest.importorskip("udtools.udeval")
    rng = np.random.default_rng(seed)
    relations = ["nsubj", "nsubj:pass", "obj", "obl", "obl:tmod", "punct"]
    text, found = "", []
    for number in range(20):
        size = int(rng.integers(2, 9))
        tree = random_tree(rng, size, relations)
        text += f"# sent_id = {number}\n1-2\tim\t_\t_\t_\t_\t_\t_\t_\t_\n"
        for i, (head, relation) in enumerate(tree, 1):
            text += row(i, "in dem an der".split()[i % 4], str(head), relation)
        text += f"{size}.1\tleer\t_\t_\t_\t_\t_\t_\t_\t_\n\n"
        other = random_tree(rng, size, [r.partition(":")[0] for r in relations])
        found.append(tree if number % 3 == 0 else other)
    task = make_task(tmp_path, text, text)
    found = [[(h, r.partition(":")[0]) for h, r in tree] for tree in found]
    path = task.write_predictions(found, "dev", tmp_path)
    files = [udeval.load_conllu_file(p) for p in (str(tmp_path / "dev"), path)]
    reference = udeval.evaluate(*files)
    metrics = task.metrics(found, task.splits["dev"])
    assert 30 < metrics["las"] < metrics["uas"] < 90
    for name, value in metrics.items():
        assert value == pytest.approx(100 * reference[name.upper()].f1)
