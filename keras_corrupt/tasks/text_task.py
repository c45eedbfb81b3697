"""What tasks have in common that label or rate texts or pairs of texts."""

from keras_corrupt.tasks import metrics
from keras_corrupt.tasks.task import Task


class TextTask(Task):
    """A label or a score for a text or a pair of texts.

    Args:
        name: The task's name.
        splits: As `Task.splits`; examples are strings or pairs of strings.
        labels: The classes' names; `None` for scores.
        score_range: For scores, the least and the greatest.
        metrics: Names of the metrics to report, the main one first.
    """

    kind = "text_classification"

    def __init__(self, name, splits, labels=None, score_range=None, metrics=()):
        self.name = name
        self.splits = splits
        self.labels = labels
        self.model_arguments = {
            "labels": labels and list(labels),
            "score_range": score_range and list(score_range),
            "pairs": not isinstance(splits["train"].examples[0], str),
        }
        self.metric_names = metrics
        self.main_metric = metrics[0]
        train = set(splits["train"].labels)
        if len(train) < 2:
            kind = "scores" if labels is None else "labels"
            raise ValueError(
                f"All of the {len(splits['train'])} training examples of {name} have "
                f"one label, {train.pop()!r}: there must be two {kind} at least."
                f"{splits['train'].left_out}"
            )

    def metrics(self, predictions, split):
        if split.labels is None:
            raise ValueError("The examples of this split have no labels to compare to.")
        return {
            name: metrics.METRICS[name](predictions, split.labels)
            for name in self.metric_names
        }

    def guesses(self, split):
        guess = metrics.mean_score if self.labels is None else metrics.majority_label
        return [guess(self.splits["train"].labels)] * len(split)
