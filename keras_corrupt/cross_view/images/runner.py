"""A run of Cross-View Training on images: `runner.py` says what it leaves."""

import contextlib
from pathlib import Path

import keras
import numpy as np

from keras_corrupt.cross_view.images.classifier import CrossViewImageClassifier
from keras_corrupt.cross_view.model import check_views
from keras_corrupt.cross_view.presets import IMAGE_PRESETS
from keras_corrupt.cross_view.run import runner
from keras_corrupt.cross_view.run.optimizer import optimizer_of
from keras_corrupt.cross_view.tasks.images import (
    check_shape,
    image_fingerprint,
    read_images,
)
from keras_corrupt.cross_view.tasks.shapes import draw_shapes
from keras_corrupt.cross_view.text.batches import alternating
from keras_corrupt.training import loop
from keras_corrupt.training.checkpoint import Checkpoints
from keras_corrupt.training.out_of_memory import explained_shortage
from keras_corrupt.training.run_directory import record_examples, run_directory
from keras_corrupt.training.runner import xla_pays

#: Labelled batches of which the average's statistics are the mean.
MEASURED_BATCHES = 50


def train_images(task, config):
    """Trains an image classifier, evaluates and saves it; continues what was begun.

    Args:
        task: An `ImageTask`.
        config: An `ImageConfig`.

    Returns:
        The trained `CrossViewImageClassifier`, or `None` if the user stopped the run.

    Raises:
        ValueError: A setting or a file cannot work, or the output directory holds a
            run with other settings; nothing was changed.
        FileNotFoundError: A file is not there.
        NonFiniteLossError: The loss became infinite or not a number.
        CheckpointError: A checkpoint could not be written or read.
        OutOfMemoryError: An update needs more memory than there is.
    """
    config.check()
    check_task(task, config)
    keras.utils.set_random_seed(config.seed)
    output = Path(config.output)
    labelled = task.splits["train"]
    unlabelled = unlabelled_images(config, labelled.examples)
    settings = {**config.as_dict(), "backend": keras.backend.backend()}
    with (
        run_directory(output, settings, uncompared=config.FILES),
        explained_shortage(config.too_little_memory),
    ):
        splits = [task.splits[name].fingerprint() for name in sorted(task.splits)]
        fingerprints = {"images": [image_fingerprint(unlabelled), *splits]}
        record_examples(output, fingerprints, "This command")
        model = build(task, config)
        data = runner.fingerprint(fingerprints)
        checkpoints = Checkpoints(output / "checkpoints", data=data)
        if not checkpoints.restore(model):
            model.preprocessing.fit(np.concatenate([labelled.examples, unlabelled]))
        kinds = batches_of(task, unlabelled, model, config)
        measure = Measure(model, kinds[0])
        print(banner(kinds, model, config), flush=True)
        dev = next(name for name in task.splits if name.startswith("dev"))
        finished = loop.train(
            model,
            lambda step: alternating(kinds, step, first=config.labelled_first),
            lambda model: validate(model, task, dev, config.batch_size, measure),
            checkpoints,
            output=output,
            steps=config.steps,
            interval=config.interval,
        )
        if not finished:
            return None
        runner.use_average(model)
        measure()
        runner.finish(output, model, task)
        return model


def check_task(task, config):
    """Raises an error if the task cannot be learned so."""
    if task.kind != CrossViewImageClassifier.kind:
        raise ValueError(
            f"`task` must be of the kind {CrossViewImageClassifier.kind}; got "
            f"{task.kind!r}."
        )
    if config.preset not in IMAGE_PRESETS:
        raise ValueError(
            f"Unknown preset {config.preset!r}: networks for images are of the sizes "
            f"{', '.join(IMAGE_PRESETS)}."
        )
    height, width, _ = task.model_arguments["image_shape"]
    if config.translate >= min(height, width):
        raise ValueError(
            f"`translate` must be less than the images' size, {height} x {width}; got "
            f"{config.translate}."
        )
    if config.unlabelled:
        check_views(config.views, CrossViewImageClassifier.known_views)


def unlabelled_images(config, labelled):
    """Returns uint8 images without labels, as many as the run uses, if any."""
    shape = labelled.shape[1:]
    if not config.unlabelled:
        return np.zeros((0, *shape), "uint8")
    if config.unlabelled == ("shapes",):
        # Of other seeds than a recipe's own.
        images, _ = draw_shapes(min(config.max_unlabelled, 2_000), seed=2)
    else:
        images, _ = read_images(config.unlabelled)
    check_shape(images, shape, "`unlabelled`")
    return images[: config.max_unlabelled]


def build(task, config):
    """Returns the model, compiled, its optimizer built."""
    sizes = {"channels": list(config.channels)} if config.channels else {}
    model = CrossViewImageClassifier.from_preset(
        config.preset,
        **task.model_arguments,
        **sizes,
        preprocessing=config.preprocessing,
        views=config.views if config.unlabelled else (),
        perturbation=config.perturbation,
        vat_norm=config.vat_norm,
        labelled_dropout=config.labelled_dropout,
        unlabelled_dropout=config.unlabelled_dropout,
        label_smoothing=config.label_smoothing,
        cross_view_weight=config.cross_view_weight,
        hard_targets=config.hard_targets,
        confidence=config.confidence,
        name="image_classifier",
    )
    model.modules_learn_labels = config.labelled_first > 0
    if config.mean_teacher:
        model.learn_from_average(config.mean_teacher)
    optimizer = optimizer_of(config, model, task.name)
    model.compile(optimizer, jit_compile=xla_pays())
    optimizer.build(model.trainable_variables)
    return model


def batches_of(task, unlabelled, model, config):
    """Returns the batches of labelled and, if there are any, unlabelled images."""
    train, size, seed = task.splits["train"], config.batch_size, config.seed
    moved = {"translate": config.translate, "flip": config.flip}
    labels = model.classes_of(train.labels)
    kinds = [model.batches(train.examples, labels, size, seed, **moved)]
    if len(unlabelled):
        kinds.append(model.batches(unlabelled, None, size, seed, **moved))
    return kinds


class Statistics(keras.Model):
    """Reads prepared images, returns what `ImageEncoder.statistics` does."""

    def __init__(self, encoder):
        super().__init__()
        self.encoder = encoder
        self.built = True

    def call(self, images):
        return self.encoder.statistics(images)


class Measure:
    """Gives a model's norms the statistics that its weights have, without dropout.

    The average of the weights makes other features than the weights of any update,
    so that the moving averages of these are not its own.

    Args:
        model: A `CrossViewImageClassifier`, compiled. Nothing is measured if its
            optimizer keeps no average: the moving averages are right.
        batches: `ImageBatches` for training, whose first ones are read.
    """

    def __init__(self, model, batches):
        self.model = model
        self.batches = batches
        self.statistics = Statistics(model.encoder)
        self.statistics.compile(jit_compile=model.jit_compile)

    def __call__(self):
        if not self.model.optimizer.use_ema:
            return
        count = min(MEASURED_BATCHES, len(self.batches))
        found = [
            self.statistics.predict_on_batch(self.batches.batch(i)[0]["images"])
            for i in range(count)
        ]
        moving = self.model.encoder.moving_statistics
        for variable, *values in zip(moving, *found, strict=True):
            variable.assign(np.mean(values, axis=0))


@contextlib.contextmanager
def averaged(model, measure):
    """Gives the model the average of its weights for a while, with its statistics."""
    moving = model.encoder.moving_statistics
    values = [np.array(variable) for variable in moving]
    with runner.averaged(model):
        measure()
        try:
            yield
        finally:
            for variable, value in zip(moving, values, strict=True):
                variable.assign(value)


def validate(model, task, name, batch_size, measure):
    """Evaluates the average of the weights on a split: see `runner.validate`."""
    split = task.splits[name]
    labels = model.classes_of(split.labels)
    batches = model.batches(split.examples, labels, batch_size)
    with averaged(model, measure):
        losses = model.evaluate(
            alternating([batches], count=len(batches)), return_dict=True, verbose=0
        )
        metrics = task.metrics(model.predictions(split.examples, batch_size), split)
    loss = losses["supervised_loss"]
    return {
        "val_loss": loss,
        "val_supervised_loss": loss,
        **{f"val_{metric}": value / 100.0 for metric, value in metrics.items()},
    }


def banner(kinds, model, config):
    """Returns the lines that open a run."""
    height, width, colours = model.encoder.image_shape
    parameters = {name: net.count_params() for name, net in model.networks.items()}
    parameters["auxiliary"] = sum(m.count_params() for m in model.auxiliary)
    flops = model.update_flops(config.batch_size)
    modules = " x ".join(map(str, model.encoder.grid))
    seen = f"views {', '.join(model.views)}"
    if model.auxiliary:
        seen += f" ({modules} modules, perturbation {model.perturbation})"
    count, numbers = sum(len(k.images) for k in kinds), height * width * colours
    prepared = f"{height} x {width}, {colours} colours, {config.preprocessing}"
    if config.preprocessing == "zca" and count < numbers:
        prepared += (
            f" fitted to {count:,} images, fewer than an image has numbers "
            f"({numbers:,}): others may look different; --preprocessing colours needs "
            "few"
        )
    labelled = f"{len(kinds[0].images):,} images"
    absent = np.setdiff1d(np.arange(len(model.labels)), kinds[0].labels)
    if len(absent):
        names = ", ".join(model.labels[index] for index in absent)
        labelled += f", none of class {names}: the model learns the other classes"
    lines = {
        "model": f"{type(model).__name__} {config.preset}, {len(model.labels)} labels",
        "backend": keras.backend.backend(),
        "parameters": ", ".join(f"{name} {n:,}" for name, n in parameters.items()),
        "labelled": labelled,
        "unlabelled": f"{len(kinds[1].images):,} images, {seen}"
        if len(kinds) > 1
        else "none: the primary module learns alone",
        "images": prepared,
        "run": runner.extent(config, flops),
        "output": config.output,
    }
    return "\n".join(f"{name + ':':12}{text}" for name, text in lines.items())
