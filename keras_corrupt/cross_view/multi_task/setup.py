"""What a run on several tasks at once learns."""

import copy
import dataclasses

import numpy as np

from keras_corrupt.cross_view.multi_task.batches import TaskBatches, drawn
from keras_corrupt.cross_view.multi_task.model import EVERY_TASK, CrossViewMultiTask
from keras_corrupt.cross_view.presets import PRESETS
from keras_corrupt.cross_view.run.optimizer import compiled
from keras_corrupt.cross_view.run.sentences import SentenceSetup, check_task, word_model
from keras_corrupt.cross_view.run.start import start_from_vectors
from keras_corrupt.training.compiling import compiles_with_xla

#: Kinds of tasks that are learned together. The thesis, too, leaves out translation.
KINDS = ("tagging", "dependency_parsing")


class SeveralTasksSetup(SentenceSetup):
    """See `SentenceSetup`.

    Args:
        tasks: `TaggingTask`s and `DependencyTask`s, two or more.
        config: A `CrossViewMultiTaskConfig`.
    """

    def __init__(self, tasks, config):
        check_tasks(tasks, config)
        self.config = config.completed(pretrained=False)
        self.uncompared = config.FILES
        tasks, self.removed = without_evaluated(tasks)
        self.read(tasks)

    def build(self, checkpoints):
        parts, arguments, config = {}, self.config.model_arguments(), self.config
        for task in self.tasks:
            if task.kind != "tagging":
                arguments["label_smoothing"] = 0.0
            part = word_model(task, self.start, config, **arguments)
            part.modules_learn_labels = config.labelled_first > 0
            part.compile(jit_compile=compiles_with_xla())
            parts[task.name] = part
            arguments = config.model_arguments() | {"encoder": part.encoder}
        if config.word_vectors:
            start_from_vectors(part, config.word_vectors)
        model = CrossViewMultiTask(parts, name="multi_task")
        return compiled(model, config, "multi_task")

    def batches(self, model):
        size, seed, steps = (
            getattr(self.config, name) for name in ("batch_size", "seed", "steps")
        )
        kinds = [
            part.batches(
                sentences, part.classes_of(task.splits["train"].labels), size, seed
            )
            for (task, part), sentences in zip(
                self.parts(model), self.labelled, strict=True
            )
        ]
        task_batches = [TaskBatches(kinds, drawn(steps, len(kinds), seed, 1))]
        if len(self.unlabelled):
            tasks = np.full(steps, EVERY_TASK)
            if self.config.one_task_at_a_time:
                tasks = drawn(steps, len(kinds), seed, 2)
            text = model.parts[0].batches(self.unlabelled, None, size, seed)
            task_batches.append(TaskBatches([text], tasks, np.zeros(steps, int)))
        return task_batches

    def parts(self, model):
        return [*zip(self.tasks, model.parts, strict=True)]

    def described(self, model, kinds):
        sentences = [
            f"{name} {len(part):,}"
            + f" ({count:,} of others' evaluation left out)" * bool(count)
            for name, part, count in zip(
                model.names, self.labelled, self.removed, strict=True
            )
        ]
        once = self.config.one_task_at_a_time
        learned = "one task at a time" if once else "all tasks at once"
        text = self.unlabelled
        return {
            "labelled": ", ".join(sentences),
            "unlabelled": f"{len(text):,} sentences, {learned}{text.omissions}"
            if len(text)
            else "none: the primary modules learn alone",
            "vocabulary": model.parts[0].reads,
        }


def check_tasks(tasks, config):
    """Raises an error if the tasks cannot be learned together."""
    names = [task.name for task in tasks]
    if len(set(names)) != len(names) or len(names) < 2:
        raise ValueError(
            f"Name two tasks or more, each differently; got {', '.join(names)}."
        )
    for task in tasks:
        if task.kind not in KINDS:
            raise ValueError(
                f"{task.name} is of the kind {task.kind}; together are learned "
                f"{' and '.join(KINDS)}."
            )
        alone = dataclasses.replace(config, unlabelled=())  # views are the tasks' own
        check_task(task, alone)
    if config.preset not in PRESETS:
        raise ValueError(
            f"`preset` must be one of {', '.join(PRESETS)}, networks that read words; "
            f"got {config.preset!r}."
        )


def without_evaluated(tasks):
    """Takes other tasks' development and test sentences out of each training split.

    Returns:
        The tasks, and for each how many were taken out.
    """
    reduced, removed = [], []
    for task in tasks:
        others = {
            tuple(words)
            for other in tasks
            if other is not task
            for name, split in other.splits.items()
            if name != "train"
            for words in split.examples
        }
        train = task.splits["train"]
        kept = [i for i, x in enumerate(train.examples) if tuple(x) not in others]
        if not kept:
            raise ValueError(
                f"All training sentences of {task.name} are other tasks' development "
                "or test sentences: nothing is left to learn from."
            )
        removed.append(len(train) - len(kept))
        reduced.append(copy.copy(task))
        reduced[-1].splits = {**task.splits, "train": train.rows(kept)}
    return reduced, removed
