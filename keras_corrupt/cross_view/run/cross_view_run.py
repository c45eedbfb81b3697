"""A run of Cross-View Training: from labelled files, and others, to a preset.

output/preset          the model, with the average of the weights; on a pretrained
                       encoder a `TokenTagger`
output/predictions     what it predicts for every split but the training one
output/results.json    its metrics on these
output/metrics.csv, curves.png, checkpoints, tensorboard

A run of several tasks leaves the first three in output/TASK, for each task.
"""

import contextlib
import json

import keras
import numpy as np

from keras_corrupt.cross_view.images.config import ImageConfig
from keras_corrupt.cross_view.images.setup import ImageSetup
from keras_corrupt.cross_view.multi_task.config import CrossViewMultiTaskConfig
from keras_corrupt.cross_view.multi_task.setup import SeveralTasksSetup
from keras_corrupt.cross_view.run.sentences import SentenceSetup
from keras_corrupt.cross_view.text.batches import alternating
from keras_corrupt.devices.batches import fed
from keras_corrupt.files.whole import write_whole
from keras_corrupt.training import report
from keras_corrupt.training.callbacks import read_metrics
from keras_corrupt.training.run import Run, drive


def train(task, config, callbacks=()):
    """Trains a task's model, evaluates and saves it; continues what was begun.

    Args:
        task: A `TaggingTask`, `DependencyTask`, `TranslationTask` or `ImageTask`; or a
            list of two or more of the first two, which get one encoder. Examples of one
            task's evaluation are taken out of the others' training.
        config: A `CrossViewConfig`: of images an `ImageConfig`, of several tasks a
            `CrossViewMultiTaskConfig`.
        callbacks: Keras callbacks: see `keras_corrupt.training.pretrain`.

    Returns:
        The trained model, or `None` if the user stopped the run.

    Raises:
        ValueError: A setting or a file cannot work, or the output directory holds a
            run with other settings; nothing was changed.
        FileNotFoundError: A file is not there.
        NonFiniteLossError: The loss became infinite or not a number.
        CheckpointError: A checkpoint could not be written or read.
        OutOfMemoryError: An update needs more memory than there is.
        ImportError: The task needs a library that is not installed.
    """
    config.check()
    keras.utils.set_random_seed(config.seed)
    return drive(CrossViewRun(setup_of(task, config), callbacks))


def setup_of(task, config):
    """Returns the setup of a task, its files read and checked; see `SentenceSetup`."""
    if isinstance(config, ImageConfig):
        return ImageSetup(task, config)
    if isinstance(config, CrossViewMultiTaskConfig):
        return SeveralTasksSetup(task, config)
    return SentenceSetup(task, config)


class CrossViewRun(Run):
    """See `Run`.

    Args:
        setup: A `SentenceSetup`, or another with its methods.
        callbacks: See `train`.
    """

    def __init__(self, setup, callbacks):
        super().__init__(setup.config, callbacks)
        self.setup, self.uncompared = setup, setup.uncompared

    def read(self):
        return self.setup.fingerprints

    def build(self, checkpoints):
        model = self.setup.build(checkpoints)
        self.kinds = self.setup.batches(model)
        return model

    def announce(self):
        print(banner(self.setup, self.model, self.kinds), flush=True)

    def batches(self, step):
        return alternating(self.kinds, step, first=self.config.labelled_first)

    def validate(self, model):
        return validate(self.setup, model)

    def followed(self, phase, first_step):
        size = self.config.batch_size
        return {"tokens_per_step": round(size * self.setup.length(self.kinds))}

    def memory_message(self, checkpoints):
        return self.config.too_little_memory()

    def finish(self):
        self.setup.use_average(self.model)
        parts = self.setup.parts(self.model)
        for task, part in parts:
            folder = task.name if len(parts) > 1 else ""
            leave(self.output / folder, part, task, folder and f"{folder}, ")
        curves, folder = self.output / "curves.png", "TASK" if len(parts) > 1 else ""
        report.draw_curves(read_metrics(self.output / "metrics.csv"), curves, {})
        print(f"Curves: {curves}   Model: {self.output / folder / 'preset'}")


def validate(setup, model):
    """Evaluates the average of the weights.

    Returns:
        Dict of floats; names begin with `val_`. `val_loss` is the loss of known labels,
        of several tasks the mean.
    """
    metrics, losses, parts = {}, [], setup.parts(model)
    with averaged(model, setup.use_average):
        for task, part in parts:
            dev = next(split for n, split in task.splits.items() if n.startswith("dev"))
            loss, scores = evaluate(part, task, dev, setup.config.batch_size)
            losses.append(loss)
            prefix = f"val_{task.name}_" if len(parts) > 1 else "val_"
            metrics[prefix + ("loss" if len(parts) > 1 else "supervised_loss")] = loss
            for metric, value in scores.items():
                metrics[prefix + metric] = value / 100.0
    return {"val_loss": float(np.mean(losses)), **metrics}


def evaluate(model, task, split, batch_size):
    """Returns the mean loss of a split's labels, and the task's metrics."""
    labels = model.classes_of(split.labels)
    batches = model.batches(model.compact(split.examples), labels, batch_size)
    with fed(alternating([batches], count=len(batches))) as batches:
        losses = model.evaluate(batches, return_dict=True, verbose=0)
    metrics = task.metrics(model.predictions(split.examples, batch_size), split)
    return losses["supervised_loss"], metrics


@contextlib.contextmanager
def averaged(model, use_average):
    """Gives the model the average of its weights for a while."""
    weights = [np.array(variable) for variable in model.weights]
    use_average(model)
    try:
        yield
    finally:
        for variable, value in zip(model.weights, weights, strict=True):
            variable.assign(value)


def banner(setup, model, kinds):
    """Returns the lines that open a run."""
    config = setup.config
    parameters = {name: net.count_params() for name, net in model.networks.items()}
    parameters["auxiliary"] = sum(m.count_params() for m in model.auxiliary)
    flops = config.batch_size * model.update_flops(round(setup.length(kinds)))
    labels = f", {len(model.labels)} labels" if hasattr(model, "labels") else ""
    lines = {
        "model": f"{type(model).__name__} {config.preset}{labels}",
        "backend": keras.backend.backend(),
        "parameters": ", ".join(f"{name} {n:,}" for name, n in parameters.items()),
        **setup.described(model, kinds),
        "run": extent(config, flops),
        "output": config.output,
    }
    return "\n".join(f"{name + ':':12}{text}" for name, text in lines.items())


def extent(config, flops):
    """Returns what a run's banner says of its updates.

    Args:
        config: A `CrossViewConfig`.
        flops: FLOPs of an update, mean of both kinds of batches.
    """
    text = f"{config.steps:,} updates of {config.batch_size} {config.EXAMPLES}, "
    if config.unlabelled and config.labelled_first:
        text += f"the first {config.labelled_first:,} on labelled ones; "
        return text + f"{flops:.2e} FLOPs each from then on"
    return text + f"{flops:.2e} FLOPs each, {config.steps * flops:.2e} in all"


def leave(output, model, task, title=""):
    """Saves a preset, its predictions and metrics, and prints these, after a title."""
    (output / "predictions").mkdir(parents=True, exist_ok=True)
    model.save_to_preset(output / "preset")
    results = {}
    for name, split in task.splits.items():
        if name == "train":
            continue
        predictions = model.predictions(split.examples)
        task.write_predictions(predictions, name, output / "predictions")
        if split.labels is not None:
            guess = task.metrics(task.guesses(split), split)[task.main_metric]
            results[name] = {**task.metrics(predictions, split), "guess": guess}
            failure = task.failure(predictions, split)
            if failure:
                print(f"This run failed on {name}: {failure}.")
    write_whole(output / "results.json", json.dumps(results, indent=2) + "\n")
    for name, metrics in results.items():
        values = ", ".join(f"{metric} {value:.2f}" for metric, value in metrics.items())
        print(f"{title}{name}: {values}")
