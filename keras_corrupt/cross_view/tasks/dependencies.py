"""Dependency trees in CoNLL-U files, and the task of parsing like them."""

import dataclasses
import os
import re
from collections import Counter
from itertools import chain

from keras_corrupt.files.text import text_lines
from keras_corrupt.files.whole import whole_file
from keras_corrupt.tasks.task import Split, Task, check_splits

# Columns of CoNLL-U.
_ID, _FORM, _UPOS, _HEAD, _DEPREL, _DEPS = 0, 1, 3, 6, 7, 8
# Multi-word tokens and empty nodes, which are no words of the tree.
_NO_WORD = re.compile(r"[0-9]+[-.][0-9]+")

#: Tags of words that are not counted without punctuation: Universal Dependencies' tag,
#: and the tags that the Penn Treebank's evaluation leaves out.
PUNCTUATION = frozenset({"PUNCT", "``", "''", ":", ",", "."})


@dataclasses.dataclass
class ParsedSplit(Split):
    """A split of a `DependencyTask`: labels are lists of (head, relation).

    Heads are words counted from 1, or 0 for the root.

    Attributes:
        counted: For each word of each sentence whether metrics count it.
        lines: For each sentence its lines in the file.
    """

    COLUMNS = (*Split.COLUMNS, "counted", "lines")

    counted: list = dataclasses.field(default_factory=list)
    lines: list = dataclasses.field(default_factory=list)


class DependencyTask(Task):
    """Parsing the words of CoNLL-U files.

    Measured by the attachment scores of the CoNLL evaluation, in percent of words:
    UAS, those with the right head, and LAS, those with the right head and relation. A
    relation that only other splits than `"train"` have cannot be learned: it counts as
    wrong (`unseen`).

    Args:
        name: The task's name in results.
        files: Split name -> path; see `Task.splits` and `read_dependencies`. For a
            split whose name begins with `"test"`, a file without trees will do.
        punctuation: Whether metrics count punctuation, as they do for Universal
            Dependencies, not for the Penn Treebank.
        subtypes: Whether relations are read with their subtypes (`nsubj:pass`), which
            CoNLL's evaluation leaves out.

    Raises:
        FileNotFoundError: A file is not there.
        ValueError: A file or an argument is not as described.
    """

    kind = "dependency_parsing"
    main_metric = "las"

    def __init__(self, name, files, punctuation=True, subtypes=False):
        check_splits(files)
        self.name = name
        self.splits = {
            split: read_dependencies(
                path, punctuation, subtypes, split.startswith("test")
            )
            for split, path in files.items()
        }
        self.model_arguments = {
            "labels": sorted(set(self.labels_of(self.splits["train"])))
        }

    def metrics(self, predictions, split):
        """Returns UAS and LAS, in percent of the words that count; see `Task.metrics`.

        Args:
            predictions: For each sentence a list of each word's (head, relation).
            split: A `ParsedSplit` with labels.
        """
        total = heads = edges = 0
        columns = split.examples, split.labels, predictions, split.counted
        for words, gold, predicted, counted in zip(*columns, strict=True):
            if len(words) != len(predicted):
                raise ValueError(
                    f"`predictions` has {len(predicted)} heads for the {len(words)} "
                    f"words {words!r}; give one for each."
                )
            pairs = zip(gold, predicted, strict=True)
            pairs = [
                pair for pair, counts in zip(pairs, counted, strict=True) if counts
            ]
            total += len(pairs)
            heads += sum(a[0] == b[0] for a, b in pairs)
            edges += sum(tuple(a) == tuple(b) for a, b in pairs)
        total = max(total, 1)
        return {"las": 100.0 * edges / total, "uas": 100.0 * heads / total}

    def guesses(self, split):
        """Makes chains: each word depends on the one before it, or on the one after.

        Whatever is more frequent in `"train"`, as is each edge's relation.
        """
        relations = {offset: Counter() for offset in ("root", -1, 1)}
        for tree in self.splits["train"].labels:
            for i, (head, relation) in enumerate(tree, 1):
                offset = head - i if head else "root"
                if offset in relations:
                    relations[offset][relation] += 1
        step = max((-1, 1), key=lambda offset: relations[offset].total())
        most = {
            offset: counts.most_common(1)[0][0] if counts else ""
            for offset, counts in relations.items()
        }
        trees = []
        for words in split.examples:
            tree = [(i + step, most[step]) for i in range(1, len(words) + 1)]
            tree[0 if step < 0 else -1] = (0, most["root"])
            trees.append(tree)
        return trees

    def failure(self, predictions, split):
        """Says whether all relations are the same one, or none is right.

        See `Task.failure`.
        """
        if predictions == split.labels:
            return None
        relations = {relation for tree in predictions for _, relation in tree}
        if len(relations) == 1:
            return f"it gives every word the relation {relations.pop()!r}"
        if not self.metrics(predictions, split)["las"]:
            return "no word that counts gets its head and relation"
        return None

    def labels_of(self, split):
        return [relation for tree in split.labels or [] for _, relation in tree]

    def write_predictions(self, predictions, name, directory):
        """Writes CoNLL-U: the split's own lines, with predicted heads and relations.

        Empty nodes and enhanced dependencies, which are not predicted, are left out.
        See `Task.write_predictions`.
        """
        path = os.path.join(directory, f"{name}.conllu")
        with whole_file(path) as file:
            for lines, tree in zip(self.splits[name].lines, predictions, strict=True):
                edges = iter(tree)
                for line in lines:
                    row = line.split("\t")
                    if line.startswith("#") or "-" in row[_ID]:
                        file.write(line + "\n")
                    elif "." not in row[_ID]:
                        head, relation = next(edges)
                        row[_HEAD], row[_DEPREL], row[_DEPS] = str(head), relation, "_"
                        file.write("\t".join(row) + "\n")
                file.write("\n")
        return path


def read_dependencies(path, punctuation=True, subtypes=False, may_lack_trees=False):
    """Reads words and trees from a CoNLL-U file.

    Multi-word tokens (`1-2`) and empty nodes (`3.1`) are passed over.

    Args:
        path: A file; see `text_lines`.
        punctuation: Whether words that are tagged as punctuation count in metrics.
        subtypes: Whether relations keep what follows a colon.
        may_lack_trees: Whether a file will do that has no head at all.

    Returns:
        A `ParsedSplit`; labels are `None` where the file has no trees.

    Raises:
        FileNotFoundError: The file is not there.
        ValueError: It is no such file, or a sentence has no tree; names the line.
    """
    examples, labels, counted, kept, tagged = [], [], [], [], False
    sentences = list(_sentences(path))
    if not sentences:
        raise ValueError(f"{path} has no sentence.")
    lacks_trees = may_lack_trees and all(
        row[_HEAD] == "_" for _, rows in sentences for _, row in rows
    )
    for lines, rows in sentences:
        examples.append([row[_FORM] for _, row in rows])
        if not lacks_trees:
            labels.append(_tree(path, rows, subtypes))
        tags = [row[_UPOS] for _, row in rows]
        tagged = tagged or any(tag not in ("_", "") for tag in tags)
        counted.append([punctuation or tag not in PUNCTUATION for tag in tags])
        kept.append(lines)
    if not (punctuation or tagged or lacks_trees):
        raise ValueError(
            f"{path} has no tags in its 4th column (UPOS), so that `punctuation=False` "
            "cannot tell what to leave out. Tag the words, or count all of them."
        )
    return ParsedSplit(
        examples, None if lacks_trees else labels, counted=counted, lines=kept
    )


def _sentences(path):
    """Yields each sentence's lines, and the `(line number, columns)` of its words."""
    lines, rows = [], []
    for number, line in chain(text_lines(path), [(0, "")]):
        if line.strip():
            lines.append(line)
            if not line.startswith("#"):
                row = line.split("\t")
                _check_row(row, len(rows) + 1, f"{path}:{number}")
                if not _NO_WORD.fullmatch(row[_ID]):
                    rows.append((number, row))
            continue
        if rows:
            yield lines, rows
        lines, rows = [], []


def _check_row(row, expected, where):
    if len(row) != 10:
        raise ValueError(
            f"{where} has {len(row)} columns with tabs between them; CoNLL-U has 10."
        )
    if _NO_WORD.fullmatch(row[_ID]):
        return
    if row[_ID] != str(expected):
        raise ValueError(
            f"{where} has the id {row[_ID]!r} where {expected} comes next. Words of a "
            "sentence are numbered from 1 on, with an empty line after the last one."
        )
    if not row[_FORM].strip():
        raise ValueError(f"{where} has a word without characters.")


def _tree(path, rows, subtypes):
    """Returns each word's (head, relation)."""
    tree = []
    for number, row in rows:
        head = row[_HEAD]
        if not re.fullmatch("[0-9]{1,9}", head) or int(head) > len(rows):
            raise ValueError(
                f"{path}:{number} has the head {head!r}; it must be one of the "
                f"sentence's words, 1 to {len(rows)}, or 0 for the root."
            )
        relation = row[_DEPREL] if subtypes else row[_DEPREL].partition(":")[0]
        if relation in ("", "_"):
            raise ValueError(f"{path}:{number} has a word without a relation.")
        tree.append((int(head), relation))
    heads = [head for head, _ in tree]
    roots = [number for (number, _), head in zip(rows, heads, strict=True) if not head]
    if len(roots) > 1:
        raise ValueError(
            f"{path}:{roots[1]} is a second root of its sentence; the first is in line "
            f"{roots[0]}. A tree has one."
        )
    word = word_in_cycle(heads)
    if word:
        raise ValueError(
            f"{path}:{rows[word - 1][0]} is in a cycle: the word depends on itself, "
            "through its heads, and not on a root."
        )
    return tree


def word_in_cycle(heads):
    """Returns the number of a word that depends on itself, or `None`.

    Args:
        heads: For each word its head, counted from 1, or 0 for the root.

    >>> word_in_cycle([2, 0, 2]), word_in_cycle([2, 0, 4, 3])
    (None, 3)
    """
    seen = [0] * (len(heads) + 1)  # 0, the root, ends every way
    for start in range(1, len(heads) + 1):
        word = start
        while word and not seen[word]:
            seen[word] = start
            word = heads[word - 1]
        if word and seen[word] == start:
            return word
    return None
