"""One encoder and a head for each of several tasks (Clark's thesis, 3.2.1)."""

import keras
from keras import ops

from keras_corrupt.devices.replicas import sum_over_replicas
from keras_corrupt.downstream.model import DownstreamModel
from keras_corrupt.downstream.multi_label_classifier import MultiLabelClassifier
from keras_corrupt.downstream.prompt_classifier import PromptClassifier
from keras_corrupt.downstream.sentence_encoder import SentenceEncoder
from keras_corrupt.multitask.mixed_batches import mixed_batches
from keras_corrupt.objectives.loss import added_losses, weighted_mean
from keras_corrupt.presets.registry import find_class
from keras_corrupt.tasks.task import check_name


@keras.saving.register_keras_serializable(package="keras_corrupt")
class MultiTaskModel(DownstreamModel):
    """Does several tasks with one encoder.

    Where methods of other models take or return a list for examples, its methods take
    or return a dict, with a list for each task's name. `parts` are its tasks' models,
    which have the same encoder: each predicts, and is saved, as a model of its own.

    Args:
        tasks: Name of a task -> `class`, the name of its `DownstreamModel`, and the
            arguments of this class, such as `labels`.
        all_heads: Whether each head reads all rows of a batch, and other tasks' rows
            are left out of its loss. That is faster for compiled steps (XLA, JAX),
            since shapes stay the same; `False`, on TensorFlow without XLA alone, lets a
            head read its own rows. The loss is the same.
        kwargs: Arguments of `DownstreamModel`.

    Raises:
        ValueError: No task, or one whose name or class cannot be.

    Example:

    >>> from keras_corrupt.tokenizers import SPECIAL_TOKENS, WordPieceTokenizer
    >>> tokenizer = WordPieceTokenizer([*SPECIAL_TOKENS, "good", "dog", "barks"])
    >>> model = MultiTaskModel.from_preset("tiny", tokenizer=tokenizer, tasks={
    ...     "mood": {"class": "TextClassifier", "labels": ["bad", "good"]},
    ...     "words": {"class": "TokenTagger", "labels": ["NOUN", "VERB"]}})
    >>> answers = model.predictions({"mood": ["good"], "words": [["dog", "barks"]]})
    >>> len(answers["mood"]), len(answers["words"][0])
    (1, 2)
    """

    head_arguments = ("tasks",)

    def __init__(self, encoder, tokenizer, tasks, all_heads=True, **kwargs):
        super().__init__(encoder, tokenizer, **kwargs)
        check_names(tasks)
        self.tasks = {name: dict(arguments) for name, arguments in tasks.items()}
        self.all_heads = all_heads
        self.parts = [
            self._part(i, name, **arguments)
            for i, (name, arguments) in enumerate(self.tasks.items())
        ]
        self.built = True

    def _part(self, index, name, **arguments):
        kind = find_class(arguments.pop("class", ""), DownstreamModel)
        alone = {
            PromptClassifier: "it needs more of a pretrained model than its encoder",
            SentenceEncoder: "it learns from batches of pairs",
            MultiLabelClassifier: "its threshold would be lost",
            MultiTaskModel: "it has tasks of its own",
        }
        for other, reason in alone.items():
            if issubclass(kind, other):
                raise ValueError(
                    f"The task {name} has a {kind.__name__}, which cannot be one of "
                    f"several: {reason}. Train it by itself."
                )
        common = {
            "max_length": self.max_length,
            "dropout": self.dropout,
            "pretrained_by": self.pretrained_by,
        }
        return kind(
            self.encoder,
            self._tokenizer,
            **{**common, **arguments},
            dtype=self.dtype_policy,
            name=f"task_{index}",  # a layer cannot have every task's name
        )

    def part(self, name):
        """Returns the model of a task.

        Raises:
            ValueError: There is no such task.
        """
        if name not in self.tasks:
            raise ValueError(f"Unknown task {name!r}; the model's are {[*self.tasks]}.")
        return self.parts[list(self.tasks).index(name)]

    @DownstreamModel.tokenizer.setter
    def tokenizer(self, tokenizer):
        self._tokenizer = tokenizer
        for part in self.parts:
            part.tokenizer = tokenizer

    @property
    def networks(self):
        heads = zip(self.tasks, self.parts, strict=True)
        return {
            "encoder": self.encoder,
            **{f"head_{name}": part.head for name, part in heads},
        }

    def take_head(self, start):
        """Takes the heads of the tasks that `start` has with the same description."""
        for name, part in zip(self.tasks, self.parts, strict=True):
            if name in getattr(start, "tasks", ()):
                part.take_head(start.part(name))

    # === Training ===

    def features(self, examples, labels=None):
        labels = dict.fromkeys(examples) if labels is None else labels
        return {
            name: self.part(name).features(rows, labels[name])
            for name, rows in examples.items()
        }

    def batches(self, features, batch_size, seed=0, **kwargs):
        """Returns `Batches` for `fit`: see `mixed_batches`."""
        for name in self.tasks:
            if not features.get(name):
                raise ValueError(f"`features` has none of the task {name}.")
        features = {name: features[name] for name in self.tasks}
        parts = dict(zip(self.tasks, self.parts, strict=True))
        return mixed_batches(parts, features, batch_size, seed, **kwargs)

    def head_outputs(self, hidden, inputs, training=False):
        outputs = {}
        for i, (name, part) in enumerate(zip(self.tasks, self.parts, strict=True)):
            own = (hidden, inputs)
            if not self.all_heads:
                own = _rows((hidden, inputs), inputs["task"], i)
            outputs[name] = part.head_outputs(*own, training)
        return outputs

    def compute_loss(
        self, x=None, y=None, y_pred=None, sample_weight=None, training=True
    ):
        """The mean of all sequences' losses, each its own task's.

        A task's part is its own loss of its rows (of a tagger the mean over words),
        times their share in the batch. With one task it is that task's loss.
        """
        task = x["task"]
        if sample_weight is None:
            sample_weight = ops.ones_like(task, dtype="float32")
        total = sum_over_replicas(ops.sum(sample_weight))
        loss = added_losses(self)
        for i, (name, part) in enumerate(zip(self.tasks, self.parts, strict=True)):
            weights = sample_weight * ops.cast(task == i, "float32")
            share = sum_over_replicas(ops.sum(weights)) / total
            inputs, targets = x, y[name]
            if not self.all_heads:
                inputs, targets, weights = _rows((x, targets, weights), task, i)
            losses = part.sequence_losses(y_pred[name], targets)
            weights = weights * part.sequence_weights(inputs)
            loss += share * weighted_mean(losses, weights)
        return loss

    # === Prediction ===

    def outputs(self, features, batch_size=64):
        return {
            name: self.part(name).outputs(rows, batch_size)
            for name, rows in features.items()
        }

    def decode(self, examples, features, outputs):
        return {
            name: self.part(name).decode(rows, features[name], outputs[name])
            for name, rows in examples.items()
        }

    def predictions(self, examples, batch_size=64):
        """Returns predictions.

        Args:
            examples: Name of a task -> raw examples.
            batch_size: Sequences to read at once.

        Returns:
            Name of the task -> a prediction for each example.
        """
        return {
            name: self.part(name).predictions(rows, batch_size)
            for name, rows in examples.items()
        }

    def answering(self, task=None):
        """Returns how the model of a task answers; see `DownstreamModel`."""
        if task is None:
            raise ValueError(
                "The model does several tasks: name the task to do, one of "
                f"{', '.join(self.tasks)}."
            )
        return self.part(task).answering()

    def get_config(self):
        return {
            **super().get_config(),
            "tasks": self.tasks,
            "all_heads": self.all_heads,
        }


def check_names(names):
    """Raises a `ValueError` unless tasks have names that can be folders beside others.

    >>> check_names(["RTE", "rte"])
    Traceback (most recent call last):
    ValueError: Two tasks have one name, 'rte' (but for capitals): rename one.
    """
    names = list(names)
    if not names:
        raise ValueError("`tasks` must be one task or more.")
    seen = set()
    for name in names:
        check_name(name)
        if name.lower() in seen:
            raise ValueError(
                f"Two tasks have one name, {name!r} (but for capitals): rename one."
            )
        seen.add(name.lower())


def _rows(tensors, task, index):
    """Returns the rows of one task of all tensors, `[batch, ...]`."""
    rows = ops.where(task == index)[0]
    return keras.tree.map_structure(lambda x: ops.take(x, rows, axis=0), tensors)
