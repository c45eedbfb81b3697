"""A run of Cross-View Training on several tasks at once.

output/TASK     what a run on that task alone leaves: preset, predictions, results
output/metrics.csv, curves.png, checkpoints, tensorboard
"""

import copy
import dataclasses
from pathlib import Path

import keras
import numpy as np

from keras_corrupt.cross_view.multi_task.batches import RandomTasks, WithTasks
from keras_corrupt.cross_view.multi_task.model import (
    EVERY_TASK,
    CrossViewMultiTask,
)
from keras_corrupt.cross_view.presets import PRESETS, lstm_sizes
from keras_corrupt.cross_view.run import runner
from keras_corrupt.cross_view.run.optimizer import optimizer_of
from keras_corrupt.cross_view.run.start import start_from_vectors, words_with_vectors
from keras_corrupt.cross_view.text.batches import alternating
from keras_corrupt.cross_view.text.sentences import Sentences
from keras_corrupt.cross_view.text.vocabulary import WordVocabulary
from keras_corrupt.models.overrides import merge
from keras_corrupt.training import loop
from keras_corrupt.training.checkpoint import Checkpoints
from keras_corrupt.training.out_of_memory import explained_shortage
from keras_corrupt.training.run_directory import record_examples, run_directory
from keras_corrupt.training.runner import xla_pays

#: Kinds of tasks that are learned together. The thesis, too, leaves out translation.
KINDS = ("tagging", "dependency_parsing")


def train_together(tasks, config):
    """Trains one encoder for several tasks; continues what was begun.

    Examples of one task's evaluation are taken out of the others' training.

    Args:
        tasks: `TaggingTask`s and `DependencyTask`s, two or more.
        config: A `CrossViewMultiTaskConfig`.

    Returns:
        The trained `CrossViewMultiTask`, or `None` if the user stopped the run.

    Raises:
        ValueError: A setting or a file cannot work, or the output directory holds a
            run with other settings; nothing was changed.
        NonFiniteLossError: The loss became infinite or not a number.
        CheckpointError: A checkpoint could not be written or read.
        OutOfMemoryError: An update needs more memory than there is.
        ImportError: A task needs a library that is not installed.
    """
    config.check()
    check_tasks(tasks, config)
    config = config.completed(pretrained=False)
    keras.utils.set_random_seed(config.seed)
    output = Path(config.output)
    tasks, removed = without_evaluated(tasks)
    labelled = [Sentences(task.splits["train"].examples) for task in tasks]
    given_words = words_with_vectors(config)
    unlabelled = runner.unlabelled_of(config)
    settings = {**config.as_dict(), "backend": keras.backend.backend()}
    with (
        run_directory(output, settings, uncompared=config.FILES),
        explained_shortage(config.too_little_memory),
    ):
        counts = sum((part.counts() for part in labelled), unlabelled.counts())
        size = config.vocabulary_size
        vocabulary = WordVocabulary.of(counts, size, more=given_words)
        words = runner.fingerprint(vocabulary.words, vocabulary.characters)
        text = runner.text_fingerprint(unlabelled, tasks)
        fingerprints = {"vocabulary": words, "text": text}
        given = fingerprints | runner.vectors_fingerprint(config)
        record_examples(output, given, "This command")
        model = build(tasks, vocabulary, config)
        kinds = batches_of(tasks, labelled, unlabelled, model, config)
        print(banner(labelled, removed, unlabelled, kinds, model, config), flush=True)
        data = runner.fingerprint(fingerprints)
        finished = loop.train(
            model,
            lambda step: alternating(kinds, step, first=config.labelled_first),
            lambda model: validate(model, tasks, config.batch_size),
            Checkpoints(output / "checkpoints", data=data),
            output=output,
            steps=config.steps,
            interval=config.interval,
            tokens_per_step=round(config.batch_size * runner.mean_length(kinds)),
        )
        if not finished:
            return None
        runner.use_average(model)
        for task, part in zip(tasks, model.parts, strict=True):
            (output / task.name).mkdir(exist_ok=True)
            runner.leave(output / task.name, part, task, f"{task.name}, ")
        runner.draw(output)
        print(f"Curves: {output / 'curves.png'}   Models: {output}/TASK/preset")
        return model


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
        runner.check_task(task, alone)
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
    found, removed = [], []
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
        columns = {
            name: values and [values[i] for i in kept]
            for name, values in vars(train).items()
            if name in ("examples", "labels", "ids")
        }
        splits = {**task.splits, "train": dataclasses.replace(train, **columns)}
        found.append(copy.copy(task))
        found[-1].splits = splits
    return found, removed


def build(tasks, vocabulary, config):
    """Returns the model, compiled, its optimizer built."""
    parts, encoder = {}, {}
    for task in tasks:
        model_class, name = runner.MODELS[task.kind]
        views = {} if config.unlabelled else {"views": ()}
        smoothing = {}
        if task.kind == "tagging":
            smoothing = {"label_smoothing": config.label_smoothing}
        parts[task.name] = part = model_class.from_preset(
            config.preset,
            words=vocabulary.words,
            characters=vocabulary.characters,
            **task.model_arguments,
            **merge(lstm_sizes(config.lstm_size), encoder),
            **views,
            **smoothing,
            labelled_dropout=config.labelled_dropout,
            unlabelled_dropout=config.unlabelled_dropout,
            hard_targets=config.hard_targets,
            confidence=config.confidence,
            dtype=config.dtype,
            name=name,
        )
        part.modules_learn_labels = config.labelled_first > 0
        part.compile(jit_compile=xla_pays())
        encoder = {"encoder": part.encoder}
    if config.word_vectors:
        start_from_vectors(part, config.word_vectors)
    model = CrossViewMultiTask(parts, name="multi_task")
    optimizer = optimizer_of(config, model, "multi_task")
    model.compile(optimizer, jit_compile=xla_pays())
    optimizer.build(model.trainable_variables)
    return model


def batches_of(tasks, labelled, unlabelled, model, config):
    """Returns the batches of labelled and, if there are any, unlabelled sentences."""
    size, seed, steps = config.batch_size, config.seed, config.steps
    kinds = [
        part.batches(
            sentences, part.classes_of(task.splits["train"].labels), size, seed
        )
        for task, part, sentences in zip(tasks, model.parts, labelled, strict=True)
    ]
    found = [RandomTasks(kinds, steps, seed)]
    if len(unlabelled):
        numbers = np.full(steps, EVERY_TASK)
        if config.one_task_at_a_time:
            numbers = np.random.default_rng((seed, 2)).integers(len(tasks), size=steps)
        batches = model.parts[0].batches(unlabelled, None, size, seed)
        found.append(WithTasks(batches, numbers))
    return found


def validate(model, tasks, batch_size):
    """Evaluates the average of the weights on all tasks.

    Returns:
        Dict of floats; names begin with `val_`. `val_loss` is the mean of the losses
        of all tasks' known labels.
    """
    found, losses = {}, []
    with runner.averaged(model):
        for task, part in zip(tasks, model.parts, strict=True):
            dev = next(split for n, split in task.splits.items() if n.startswith("dev"))
            loss, metrics = runner.evaluate(part, task, dev, batch_size)
            losses.append(loss)
            found[f"val_{task.name}_loss"] = loss
            for metric, value in metrics.items():
                found[f"val_{task.name}_{metric}"] = value / 100.0
    return {"val_loss": float(np.mean(losses)), **found}


def banner(labelled, removed, unlabelled, kinds, model, config):
    """Returns the lines that open a run."""
    parameters = {name: net.count_params() for name, net in model.networks.items()}
    parameters["auxiliary"] = sum(m.count_params() for m in model.auxiliary)
    flops = config.batch_size * model.update_flops(round(runner.mean_length(kinds)))
    sentences = [
        f"{name} {len(part):,}"
        + f" ({count:,} of others' evaluation left out)" * bool(count)
        for name, part, count in zip(model.names, labelled, removed, strict=True)
    ]
    learned = "one task at a time" if config.one_task_at_a_time else "all tasks at once"
    lines = {
        "model": f"{type(model).__name__} {config.preset}",
        "backend": keras.backend.backend(),
        "parameters": ", ".join(f"{name} {n:,}" for name, n in parameters.items()),
        "labelled": ", ".join(sentences),
        "unlabelled": f"{len(unlabelled):,} sentences, {learned}{unlabelled.left_out}"
        if len(unlabelled)
        else "none: the primary modules learn alone",
        "vocabulary": model.parts[0].reads,
        "run": runner.extent(config, flops),
        "output": config.output,
    }
    return "\n".join(f"{name + ':':12}{text}" for name, text in lines.items())
