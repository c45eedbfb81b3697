"""Pairs of texts that mean the same, to learn vectors from, and scored ones to judge.

The cosines of vectors are compared with the scores of pairs.
"""

import dataclasses

from keras_corrupt.tasks import metrics
from keras_corrupt.tasks.glue.glue import GlueTask
from keras_corrupt.tasks.tables import read_table, score_in, task_name
from keras_corrupt.tasks.task import Split, Task, hold_out

#: Task of GLUE -> the label of pairs that mean the same, or follow from each other.
GLUE_PAIRS = {"MNLI": "entailment", "QQP": "1", "MRPC": "1"}


class SentencePairs(Task):
    """How much alike two texts are in meaning.

    Args:
        name: The task's name.
        splits: As `Task.splits`. The examples of `"train"` are pairs of strings that
            mean the same, or such pairs with a hard negative as third string. Others
            are pairs with scores.
        metrics: Names of the metrics to report, the main one first.
        model_arguments: Arguments of `SentenceEncoder`.
    """

    kind = "sentence_similarity"

    def __init__(
        self, name, splits, metrics=("spearman", "pearson"), **model_arguments
    ):
        self.name = name
        self.splits = splits
        self.metric_names = metrics
        self.main_metric = metrics[0]
        self.model_arguments = model_arguments

    def metrics(self, predictions, split):
        return {
            name: metrics.METRICS[name](predictions, split.labels)
            for name in self.metric_names
        }

    def guesses(self, split):
        return [0.0] * len(split)

    def fine_tuning(self, size):
        # A larger batch has more negatives.
        return {"batch_size": 64, "epochs": 3}


def pairs_of_tables(
    train, columns, dev=None, score="score", dev_fraction=0.1, **options
):
    """Makes a task of files of one's own.

    Args:
        train: Path of the pairs to learn from.
        columns: A `Columns` of two texts, or of three.
        dev: Path of pairs with scores, in the same two columns of texts. `None` to
            hold some of `train` out: the model is to tell them, by the area under the
            curve, from first texts with the second text of another pair.
        score: The column of the scores.
        dev_fraction: The share of `train` to hold out where there is no `dev`.
        options: Arguments of `SentencePairs`, but for its splits and metrics.

    Returns:
        A `SentencePairs`.

    Raises:
        FileNotFoundError: A file is not there.
        ValueError: A file does not fit: see `read_table`.
    """
    name = options.pop("name", None) or task_name(train)
    training = read_table(train, columns, to_learn=True)
    if dev is not None:
        pair = dataclasses.replace(columns, label=score, third_text=None)
        splits = {"train": training, "dev": read_table(dev, pair, score_in())}
        return SentencePairs(name, splits, **options)
    training.labels = [1.0] * len(training)
    training, held_out = hold_out(training, dev_fraction)
    splits = {"train": training, "dev": with_strangers(held_out, training.examples)}
    if len(splits["dev"]) == len(held_out):
        raise ValueError(
            f"{train}: {len(held_out)} of {len(training) + len(held_out)} pairs are "
            "held out, which leaves nothing to tell them from: give `dev`, or a larger "
            "`dev_fraction`."
        )
    return SentencePairs(name, splits, metrics=("auc",), **options)


def with_strangers(split, others=()):
    """Adds each first text with the second text of another pair, and the label 0.

    This stranger is the next second text that no pair has together with the first text.

    Args:
        split: The `Split` of pairs.
        others: Further pairs.

    >>> split = with_strangers(Split([("a", "A"), ("b", "B")], [1.0, 1.0], ["0", "1"]))
    >>> split.examples, split.labels
    ([('a', 'A'), ('b', 'B'), ('a', 'B'), ('b', 'A')], [1.0, 1.0, 0.0, 0.0])
    """
    pairs = [(first, second) for first, second, *_ in split.examples]
    known = {frozenset(example[:2]) for example in (*split.examples, *others)}
    strangers, ids = [], []
    for place, (first, _) in enumerate(pairs):
        others_of = (
            pairs[(place + turn) % len(pairs)][1] for turn in range(1, len(pairs))
        )
        for second in others_of:
            if second != first and frozenset((first, second)) not in known:
                strangers.append((first, second))
                ids.append(f"{split.ids[place]} and another")
                break
    labels = split.labels + [0.0] * len(strangers)
    return Split(pairs + strangers, labels, split.ids + ids)


def pairs_of_glue(source, **model_arguments):
    """Makes a task that learns from GLUE's paraphrases and is judged by STS-B.

    The pairs come from `GLUE_PAIRS`; STS-B gives its development set alone.

    Args:
        source: As for `GlueTask`.
        model_arguments: Arguments of `SentenceEncoder`.

    Returns:
        A `SentencePairs`.
    """
    pairs = []
    for task, label in GLUE_PAIRS.items():
        split = GlueTask(task, source).splits["train"]
        labelled = zip(split.examples, split.labels, strict=True)
        pairs += [example for example, gold in labelled if gold == label]
    train = Split(pairs, ids=[str(i) for i in range(len(pairs))])
    dev = GlueTask("STS-B", source).splits["dev"]
    return SentencePairs("STS-B", {"train": train, "dev": dev}, **model_arguments)
