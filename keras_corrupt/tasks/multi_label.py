"""Texts or pairs of texts with several labels each, or none, in tables."""

import json

from keras_corrupt.tasks.tables import (
    BadRow,
    read_table,
    read_test,
    task_name,
)
from keras_corrupt.tasks.task import Task, hold_out


def labels_in(separator=",", labels=None):
    """Makes what reads the labels of a cell: names with a separator, or a JSON list.

    Args:
        separator: What stands between two labels.
        labels: The labels that may occur; any if not given.

    >>> read = labels_in("|")
    >>> read("sad | angry"), read('["sad"]'), read("")
    (['sad', 'angry'], ['sad'], [])
    """

    def read_labels(cell):
        if cell.startswith("["):
            try:
                names = json.loads(cell)
            except ValueError:
                raise BadRow("labels that are no list in JSON") from None
            if not all(type(name) in (str, int, float) for name in names):
                raise BadRow("a label that is neither a name nor a number")
            names = [str(name) for name in names]
        else:
            names = [name.strip() for name in cell.split(separator) if name.strip()]
        if unknown := [name for name in names if labels and name not in labels]:
            raise BadRow(f"the label {unknown[0]}, which is not among those given")
        return list(dict.fromkeys(names))

    return read_labels


class MultiLabelTask(Task):
    """A task in files of one's own whose texts have any number of labels.

    Args:
        train: Path of the training examples: see `read_table`. The label's column has
            names with a separator between them, or a list in JSON.
        columns: A `Columns`, the same for all files.
        dev: Path of the examples to evaluate on; `None` to hold some of `train` out.
        test: Path of examples to be labelled; they may have labels too.
        labels: The labels; `None` for those in `train`, in sorted order.
        separator: What stands between two labels of a cell.
        dev_fraction: The share of `train` to hold out where there is no `dev`.
        name: The task's name: see `TableTask`.
        balance: Whether a label's presence weighs in training as much as its absence.

    Raises:
        FileNotFoundError: A file is not there.
        ValueError: A file does not fit, or there are not two labels.
    """

    kind = "multi_label_classification"
    main_metric = "micro_f1"

    def __init__(
        self,
        train,
        columns,
        dev=None,
        test=None,
        labels=None,
        separator=",",
        dev_fraction=0.1,
        name=None,
        balance=False,
    ):
        self.name = name or task_name(train)
        strict, lenient = labels_in(separator, labels), labels_in(separator)
        training = read_table(train, columns, strict, lists=True)
        labels = labels or sorted({name for row in training.labels for name in row})
        if len(labels) < 2:
            raise ValueError(
                f"{train} has the labels {labels}: several labels a text need two at "
                f"least. Does {separator!r} stand between them (`separator`)?"
                f"{training.left_out}"
            )
        if dev is None:
            training, held_out = hold_out(training, dev_fraction)
        else:
            held_out = read_table(dev, columns, lenient, lists=True)
        self.splits = {"train": training, "dev": held_out}
        if test is not None:
            self.splits["test"] = read_test(test, columns, lenient, lists=True)
        self.labels = list(labels)
        are_pairs = columns.second_text is not None
        self.model_arguments = {"labels": self.labels, "pairs": are_pairs}
        if balance:
            self.model_arguments["label_weights"] = self.weights_of_presence()

    def weights_of_presence(self):
        """Returns for each label how many texts are without it for one that has it."""
        rows = self.splits["train"].labels
        counts = [sum(name in row for row in rows) for name in self.labels]
        return [(len(rows) - count) / max(count, 1) for count in counts]

    def metrics(self, predictions, split):
        """Returns micro F1, macro F1 and the share of texts with all labels right.

        Labels that the model does not have count as missed.
        """
        from sklearn.metrics import f1_score  # takes a second
        from sklearn.preprocessing import MultiLabelBinarizer

        if split.labels is None:
            raise ValueError("The examples of this split have no labels to compare to.")
        names = MultiLabelBinarizer().fit([self.labels, *split.labels])
        true, predicted = map(names.transform, (split.labels, predictions))

        def f1(average):
            score = f1_score(true, predicted, average=average, zero_division=0)
            return 100 * float(score)

        return {
            "micro_f1": f1("micro"),
            "macro_f1": f1("macro"),
            "exact_match": 100 * float((true == predicted).all(axis=1).mean()),
        }

    def guesses(self, split):
        """Returns, for all texts alike, the labels with the best micro F1 on `train`.

        These are the most frequent labels, as many as pay.
        """
        rows = self.splits["train"].labels
        counts = {name: sum(name in row for row in rows) for name in self.labels}
        ordered = sorted(self.labels, key=lambda name: -counts[name])

        def micro_f1(number):
            right = sum(counts[name] for name in ordered[:number])
            return 2 * right / (number * len(rows) + sum(counts.values()))

        best = max(range(1, len(ordered) + 1), key=micro_f1)
        return [ordered[:best]] * len(split)

    def labels_of(self, split):
        return [name for row in split.labels or [] for name in row]

    def write_predictions(self, predictions, name, directory):
        """Writes a TSV file with the header `id`, `prediction`, a list in JSON."""
        cells = [json.dumps(row, ensure_ascii=False) for row in predictions]
        return super().write_predictions(cells, name, directory)
