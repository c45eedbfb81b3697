"""What a task is: examples with labels, what is to be predicted, metrics."""

import dataclasses
from collections import Counter


@dataclasses.dataclass
class Split:
    """Examples of a task: for training, for development, or to be labelled.

    Attributes:
        examples: Raw examples, of the task's kind.
        labels: Their labels; `None` where they are not known.
        ids: What identifies each in files of predictions.
        skipped: Reason -> number of rows left out, and where the first one was.
    """

    examples: list
    labels: list | None = None
    ids: list | None = None
    skipped: dict = dataclasses.field(default_factory=dict)

    def __len__(self):
        return len(self.examples)

    def take(self, count):
        """Returns the first `count` examples."""
        labels, ids = (x and x[:count] for x in (self.labels, self.ids))
        return dataclasses.replace(
            self, examples=self.examples[:count], labels=labels, ids=ids
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


class Task:
    """Something to evaluate encoders on.

    Attributes:
        name: Its name in results.
        kind: What is predicted, and from what: README.md in this folder lists the
            kinds.
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

    def degenerate(self, predictions):
        """Whether predictions are all, or all but one in a hundred, the same.

        That is how a fine-tuning run that has failed shows.
        """
        (_, count), *_ = Counter(map(str, predictions)).most_common(1)
        return count > 0.99 * len(predictions)

    def published(self, size):
        """Returns system -> its published score, for encoders of a size.

        Args:
            size: `"small"`, `"base"` or `"large"`.
        """
        return {}

    def write_predictions(self, predictions, name, directory):
        """Writes predictions for the split `name` in the benchmark's own format.

        Returns:
            The path of the file.
        """
        raise NotImplementedError
