"""What a task is: examples with labels, the kind of its predictions, metrics."""

import dataclasses
import hashlib
import json
import re
from collections import Counter
from itertools import zip_longest
from pathlib import Path
from typing import ClassVar

import numpy as np

from keras_corrupt.files.whole import write_whole


@dataclasses.dataclass
class Split:
    """Examples of a task: for training, for development, or to be labelled.

    Attributes:
        examples: Raw examples, of the task's kind.
        labels: Their labels; `None` where they are not known.
        ids: What identifies each in files of predictions.
        skipped: Reason -> number of rows left out, and where the first one was.
    """

    #: The attributes with an entry for each example.
    COLUMNS: ClassVar = ("examples", "labels", "ids")

    examples: list
    labels: list | None = None
    ids: list | None = None
    skipped: dict = dataclasses.field(default_factory=dict)

    def __len__(self):
        return len(self.examples)

    @property
    def left_out(self):
        """A sentence about `skipped`, after a space; empty where nothing was."""
        return f" Left out: {describe_skipped(self.skipped)}." if self.skipped else ""

    def take(self, count):
        """Returns the first `count` examples."""
        return self.rows(range(min(count, len(self))))

    def rows(self, numbers):
        """Returns the examples with these numbers, counted from 0, in lists."""
        columns = {name: getattr(self, name) for name in self.COLUMNS}
        rows = {name: c and [c[i] for i in numbers] for name, c in columns.items()}
        return dataclasses.replace(self, **rows)

    def fingerprint(self):
        """Returns a hash of the columns: another one if any changes."""
        digest = hashlib.sha256()
        columns = [getattr(self, name) or () for name in self.COLUMNS]
        for row in zip_longest(*columns):
            digest.update(json.dumps(row, default=str).encode() + b"\n")
        return digest.hexdigest()[:16]


def check_name(name):
    """Raises a `ValueError` unless a folder can have a task's name."""
    if not 1 <= len(name.encode()) <= 100 or re.search(r"[/\\\0]|^\.\.?$", name):
        raise ValueError(
            f"`name` must be 1 to 100 bytes long, without a slash; got {name!r}."
        )


def check_splits(files):
    """Raises a `ValueError` unless files are for training and for development."""
    if "train" not in files or not any(split.startswith("dev") for split in files):
        raise ValueError(
            "`files` needs a 'train' and a 'dev' (or 'dev_...') split; got "
            f"{sorted(files)}."
        )


def describe_skipped(skipped):
    """Says how many rows a split lacks, and why.

    >>> describe_skipped({"empty text": (2, "line 7"), "empty label": (1, "line 9")})
    '2 with empty text (first: line 7), 1 with empty label (first: line 9)'
    """
    return ", ".join(
        f"{count:,} with {reason} (first: {where})"
        for reason, (count, where) in skipped.items()
    )


def describe_unseen(unseen):
    """Says which labels the model does not have, the most frequent ones first.

    >>> describe_unseen({"B-film": 1, "B-person": 7})
    "8 labels that train lacks, which count as wrong: 'B-person' (7), 'B-film' (1)"
    """
    most = sorted(unseen.items(), key=lambda item: (-item[1], item[0]))
    shown = [f"{label!r} ({count:,})" for label, count in most[:5]]
    shown += [f"{len(most) - 5:,} others"] * (len(most) > 5)
    return (
        f"{sum(unseen.values()):,} labels that train lacks, which count as wrong: "
        + ", ".join(shown)
    )


def hold_out(split, fraction):
    """Divides a `Split` in two, the same way every time.

    Both parts have each label in about the same share.

    Args:
        split: A `Split` with labels.
        fraction: The share of its examples that the second part gets.

    Returns:
        Two `Split`s. What was skipped is said of the first.
    """
    if not 0 < fraction < 1:
        raise ValueError(f"`dev_fraction` must be above 0 and below 1; got {fraction}.")
    if len(split) < 2:
        raise ValueError(
            "One example cannot be divided for training and evaluation: give `dev`."
            f"{split.left_out}"
        )
    count = min(max(1, round(fraction * len(split))), len(split) - 1)
    order = np.random.default_rng(0).permutation(len(split))
    by_label = sorted(order, key=lambda i: str(split.labels[i]))
    # One from the middle of each of `count` parts of equal size.
    chosen = {by_label[int((i + 0.5) * len(split) / count)] for i in range(count)}
    held_out = dataclasses.replace(split.rows(sorted(chosen)), skipped={})
    return split.rows([i for i in range(len(split)) if i not in chosen]), held_out


class Task:
    """Something to evaluate encoders on.

    Attributes:
        name: Its name in results.
        kind: The kind of its predictions, and of their inputs: README.md in this folder
            lists the kinds.
        splits: Name -> `Split`: `"train"`, one or more whose names begin with
            `"dev"`, and perhaps some that begin with `"test"`.
        model_arguments: What a model must know of the task, such as its labels: name
            of an argument -> value.
        main_metric: The metric that is reported, of `metrics`; more is better.
        model: Class of a model of its own; `None` for what fine-tuning has for the
            kind.
    """

    name: str
    kind: str
    splits: dict
    model_arguments: dict
    main_metric: str
    model: type | None = None

    def first(self, count):
        """Leaves the first examples to learn from, or all without a count."""
        if count:
            self.splits["train"] = self.splits["train"].take(count)
        return self

    def metrics(self, predictions, split):
        """Returns metric name -> value in percent.

        Args:
            predictions: What the model predicts for each example of the split.
            split: A `Split` with labels.
        """
        raise NotImplementedError

    def guesses(self, split):
        """Returns the best predictions for a split that don't look at its examples.

        They are made of the training labels alone, and tell when a run has learned
        nothing.
        """
        raise NotImplementedError

    def failure(self, predictions, split):
        """Says in what a fine-tuning run has failed, if it has.

        This one is for labels and scores: one prediction for all examples, or for all
        but one in a hundred where the split's own labels are not as uneven.

        Args:
            predictions: What the model predicts for each example of the split.
            split: A `Split` with labels.

        Returns:
            The end of a sentence, or `None` if the run has not failed.
        """
        predicted, labels = ([*map(str, x)] for x in (predictions, split.labels))
        (usual, count), *_ = Counter(predicted).most_common(1)
        uneven = max(Counter(labels).values()) > 0.99 * len(labels)
        most = len(predicted) - 1 if uneven else 0.99 * len(predicted)
        if count <= most or predicted == labels:
            return None
        return f"it predicts {usual!r} for {count:,} of {len(predicted):,} examples"

    def labels_of(self, split):
        """Returns all labels of a split in one list; an empty one if it has none."""
        return split.labels or []

    @property
    def unseen(self):
        """Split name -> label that the model does not have -> how often it occurs.

        Such a label cannot be predicted, so it counts as wrong.
        """
        arguments = self.model_arguments
        classes = {*(arguments.get("labels") or arguments.get("label_words") or ())}
        return {
            name: dict(Counter(x for x in self.labels_of(split) if x not in classes))
            for name, split in self.splits.items()
            if classes
        }

    @property
    def lacking(self):
        """Split name -> labels of the model that no example of the split has.

        Splits with labels have an entry, if labels are classes.
        """
        classes = self.model_arguments.get("labels")
        found = {
            name: {*self.labels_of(split)}
            for name, split in self.splits.items()
            if classes and split.labels
        }
        return {n: [x for x in classes if x not in there] for n, there in found.items()}

    def fine_tuning(self, size):
        """Returns settings of the task's own, which replace the encoder's paper's.

        Args:
            size: `"tiny"`, `"small"`, `"base"` or `"large"`.

        Returns:
            Names and values of `FineTuningSettings`.
        """
        return {}

    def published(self, size):
        """Returns system -> its published score, for encoders of a size.

        Args:
            size: `"small"`, `"base"` or `"large"`.
        """
        return {}

    def write_predictions(self, predictions, name, directory):
        """Writes predictions for the split `name`: a TSV file, `id` and `prediction`.

        A task of a benchmark overrides it, with the benchmark's own format.

        Returns:
            The path of the file.
        """
        path = Path(directory) / f"{self.name}-{name}.tsv"
        write_table(path, ("id", "prediction"), self.splits[name].ids, predictions)
        return path


def write_table(path, header, ids, predictions):
    """Writes a TSV file of predictions, whole or not at all.

    Args:
        path: Where to.
        header: The two columns' names.
        ids: What identifies each example.
        predictions: A string or number for each.
    """
    if len(ids) != len(predictions):
        raise ValueError(
            f"There are {len(ids)} examples, but {len(predictions)} predictions."
        )
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = [header, *zip(ids, predictions, strict=True)]
    write_whole(path, "".join(f"{a}\t{b}\n" for a, b in rows))
