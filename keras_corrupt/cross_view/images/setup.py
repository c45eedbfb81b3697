"""What a run on images learns."""

import keras
import numpy as np

from keras_corrupt.cross_view.images.classifier import CrossViewImageClassifier
from keras_corrupt.cross_view.presets import IMAGE_PRESETS
from keras_corrupt.cross_view.run.optimizer import compiled, use_average
from keras_corrupt.cross_view.run.sentences import fingerprint
from keras_corrupt.cross_view.tasks.images import (
    check_shape,
    image_fingerprint,
    read_images,
)
from keras_corrupt.cross_view.tasks.shapes import draw_shapes
from keras_corrupt.cross_view.views import check_views

#: Labelled batches of which the average's statistics are the mean.
MEASURED_BATCHES = 50


class ImageSetup:
    """See `SentenceSetup`.

    Args:
        task: An `ImageTask`.
        config: An `ImageConfig`.
    """

    def __init__(self, task, config):
        check_task(task, config)
        self.task, self.uncompared = task, config.FILES
        self.config = config = config.completed(pretrained=False)
        self.labelled = task.splits["train"]
        self.unlabelled = unlabelled_images(config, self.labelled.examples)
        splits = [task.splits[name].fingerprint() for name in sorted(task.splits)]
        self.fingerprints = {
            "images": fingerprint(image_fingerprint(self.unlabelled), *splits)
        }

    def build(self, checkpoints):
        config = self.config
        sizes = {"channels": list(config.channels)} if config.channels else {}
        model = CrossViewImageClassifier.from_preset(
            config.preset,
            **self.task.model_arguments,
            **sizes,
            **config.model_arguments(),
            name="image_classifier",
        )
        model = compiled(model, config, self.task.name)
        if not checkpoints.restore(model):
            images = [self.labelled.examples, self.unlabelled]
            model.preprocessing.fit(np.concatenate(images))
        return model

    def batches(self, model):
        size, seed = self.config.batch_size, self.config.seed
        moved = {"translate": self.config.translate, "flip": self.config.flip}
        labels = model.classes_of(self.labelled.labels)
        kinds = [model.batches(self.labelled.examples, labels, size, seed, **moved)]
        if len(self.unlabelled):
            kinds.append(model.batches(self.unlabelled, None, size, seed, **moved))
        self.use_average = UseAverage(model, kinds[0])
        return kinds

    def parts(self, model):
        return [(self.task, model)]

    def length(self, kinds):
        return 0  # tokens

    def described(self, model, kinds):
        config = self.config
        height, width, colours = model.encoder.image_shape
        seen = f"views {', '.join(model.views)}"
        if model.auxiliary:
            modules = " x ".join(map(str, model.encoder.grid))
            seen += f" ({modules} modules, perturbation {model.perturbation})"
        count = len(self.labelled) + len(self.unlabelled)
        numbers = height * width * colours
        prepared = f"{height} x {width}, {colours} colours, {config.preprocessing}"
        if config.preprocessing == "zca" and count < numbers:
            prepared += (
                f" fitted to {count:,} images, fewer than an image has numbers "
                f"({numbers:,}): others may look different; --preprocessing colours "
                "needs few"
            )
        labelled = f"{len(self.labelled):,} images"
        absent = np.setdiff1d(np.arange(len(model.labels)), kinds[0].labels)
        if len(absent):
            names = ", ".join(model.labels[index] for index in absent)
            labelled += f", none of class {names}: the model learns the other classes"
        return {
            "labelled": labelled,
            "unlabelled": f"{len(self.unlabelled):,} images, {seen}"
            if len(kinds) > 1
            else "none: the primary module learns alone",
            "images": prepared,
        }


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
        # Their seeds are not a recipe's own.
        images, _ = draw_shapes(min(config.max_unlabelled, 2_000), seed=2)
    else:
        images, _ = read_images(config.unlabelled)
    check_shape(images, shape, "`unlabelled`")
    return images[: config.max_unlabelled]


class Statistics(keras.Model):
    """Reads prepared images, returns what `ImageEncoder.statistics` does."""

    def __init__(self, encoder):
        super().__init__()
        self.encoder = encoder
        self.built = True

    def call(self, images):
        return self.encoder.statistics(images)


class UseAverage:
    """Gives a model the average of its weights, and its norms their statistics.

    The average of the weights makes other features than the weights of any update,
    so that the moving averages of these are not its own: they are measured, without
    dropout.

    Args:
        model: A `CrossViewImageClassifier`, compiled. Nothing is measured if its
            optimizer keeps no average: the moving averages are right.
        batches: `ImageBatches` for training, whose first ones are read.
    """

    def __init__(self, model, batches):
        self.batches = batches
        self.statistics = Statistics(model.encoder)
        self.statistics.compile(jit_compile=model.jit_compile)

    def __call__(self, model):
        use_average(model)
        if not model.optimizer.use_ema:
            return
        count = min(MEASURED_BATCHES, len(self.batches))
        statistics = [
            self.statistics.predict_on_batch(self.batches.batch(i)[0]["images"])
            for i in range(count)
        ]
        moving = model.encoder.moving_statistics
        for variable, *values in zip(moving, *statistics, strict=True):
            variable.assign(np.mean(values, axis=0))
