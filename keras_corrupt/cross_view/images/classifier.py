"""Classifying images with Cross-View Training (Clark's thesis, 4.4)."""

import math

import keras
import numpy as np
from keras import ops

from keras_corrupt.cross_view.images.batches import ImageBatches
from keras_corrupt.cross_view.images.encoder import (
    CHANNELS,
    ImageEncoder,
    check_sizes,
    encoder_parameters,
)
from keras_corrupt.cross_view.images.preprocessing import Preprocessing
from keras_corrupt.cross_view.model import check_rates
from keras_corrupt.cross_view.noise import of_norm
from keras_corrupt.cross_view.preset_model import PresetModel
from keras_corrupt.cross_view.presets import IMAGE_PRESETS
from keras_corrupt.encoders.cost import dense_flops, dense_parameters

#: Noise that is added to the images that auxiliary modules see.
PERTURBATIONS = ("none", "random", "adversarial")


class RegionModules(keras.layers.Layer):
    """A softmax for each feature vector, with weights of its own (thesis, 4.4).

        p_j(y | x) = softmax(W_j H[j // columns, j mod columns] + b_j)

    Args:
        num_classes: Number of classes.
    """

    def __init__(self, num_classes, **kwargs):
        super().__init__(**kwargs)
        self.num_classes = num_classes

    def build(self, input_shape):
        _, rows, columns, width = input_shape
        shape = rows * columns, self.num_classes
        initializer = keras.initializers.RandomNormal(stddev=math.sqrt(2.0 / width))
        self.kernel = self.add_weight(
            (shape[0], width, shape[1]), initializer, name="kernel"
        )
        self.bias = self.add_weight(shape, "zeros", name="bias")

    def call(self, features):
        """Returns logits, `[batch, rows * columns, classes]`."""
        regions, width, _ = self.kernel.shape
        features = ops.reshape(features, (-1, regions, width))
        return ops.einsum("bri,ric->brc", features, self.kernel) + self.bias

    def flops(self, length):
        """Counts one image, forward; `encoders/cost.py` has the rules."""
        regions, width, classes = self.kernel.shape
        return regions * dense_flops(width, classes)


@keras.saving.register_keras_serializable(package="keras_corrupt")
class CrossViewImageClassifier(PresetModel):
    """Classifies images, and learns from some without labels what its regions agree on.

    It reads a dict of arrays: `images`, float32 `[batch, *image_shape]`, prepared as
    `preprocessing` does; `padding_mask`, `[batch]`, 0 for what fills a batch up; and
    `labelled`, see `CrossViewModel`. Targets are `[batch]`, logits `[batch, classes]`.

    The view `"regions"` has a module for each feature vector of `ImageEncoder`, which
    sees a patch of the image. With `"vat"` the primary module itself learns what it
    predicts of images with adversarial noise: the baseline.

    Batches are normalised by their own mean and variance in training, also where the
    primary module predicts targets. Labelled batches alone change moving averages.

    Args:
        labels: The names of all classes.
        image_shape: See `ImageEncoder`; so for `channels`.
        channels: See there.
        preprocessing: See `Preprocessing`; `fit` it before training.
        views: `"regions"`, `"vat"`, both, or none.
        perturbation: Noise that is added to images that the auxiliary modules see:
            `"none"`, `"random"` noise, or the `"adversarial"` one of VAT.
        vat_norm: The norm of noise of either kind, for an image.
        labelled_dropout: Dropout rate on labelled images.
        unlabelled_dropout: That on unlabelled ones.
        label_smoothing: See `CrossViewModel`.
        tokenizer: `None`; presets of other models have one.
        kwargs: Others of `CrossViewModel`.

    Example:

    >>> model = CrossViewImageClassifier.from_preset(
    ...     "tiny", labels=["cat", "dog"], image_shape=(16, 16, 3))
    >>> len(model.predictions(np.zeros((3, 16, 16, 3), "uint8")))
    3
    """

    #: The kind of task that it learns.
    kind = "image_classification"
    presets = IMAGE_PRESETS
    network_arguments = {}
    known_views = ("regions",)
    compact = staticmethod(np.asarray)
    tokenizer = None

    def __init__(
        self,
        labels,
        image_shape=(32, 32, 3),
        channels=CHANNELS,
        preprocessing="zca",
        views=("regions",),
        perturbation="adversarial",
        vat_norm=8.0,
        labelled_dropout=0.5,
        unlabelled_dropout=0.5,
        label_smoothing=0.0,
        tokenizer=None,
        **kwargs,
    ):
        super().__init__(labels, views, label_smoothing, vat_norm=vat_norm, **kwargs)
        check_rates(
            labelled_dropout=labelled_dropout, unlabelled_dropout=unlabelled_dropout
        )
        if perturbation not in PERTURBATIONS or "word_dropout" in views:
            raise ValueError(
                f"`perturbation` must be one of {', '.join(PERTURBATIONS)}, and "
                f"`views` of regions, vat; got {perturbation!r} and {views}."
            )
        self.perturbation = perturbation
        #: The kinds of noise that views see.
        self.noises = {perturbation} - {"none"} if "regions" in views else set()
        self.noises |= {"adversarial"} if "vat" in views else set()
        self.labelled_dropout = labelled_dropout
        self.unlabelled_dropout = unlabelled_dropout
        policy = {"dtype": self.dtype_policy}
        self.encoder = ImageEncoder(image_shape, channels, **policy, name="encoder")
        self.encoder.build()
        self.preprocessing = Preprocessing(
            image_shape, preprocessing, name="preprocessing"
        )
        self.preprocessing.build()
        self.primary = keras.layers.Dense(
            len(self.labels), kernel_initializer="he_normal", **policy, name="primary"
        )
        width = self.encoder.channels[-1]
        self.primary.build((None, width))
        self.auxiliary = [
            RegionModules(len(self.labels), **policy, name=view)
            for view in self.module_views
        ]
        for module in self.auxiliary:
            module.build((None, *self.encoder.grid, width))
        self.built = True

    # === What `CrossViewModel` asks for ===

    @property
    def num_modules(self):
        return math.prod(self.encoder.grid) * len(self.auxiliary)

    def words(self, inputs):
        return inputs["padding_mask"]

    def encode(self, inputs, training=False, noise=None):
        images = noisy(inputs["images"], noise)
        if not training:
            return self.encoder(images)
        labelled = inputs["labelled"] > 0
        rates = ops.where(labelled, self.labelled_dropout, self.unlabelled_dropout)
        return self.encoder(images, rates, by_batch=True, update=ops.any(labelled))

    def predict_from(self, encoded, training=False):
        return self.primary(ops.mean(encoded, axis=(1, 2)))

    def teach(self, inputs, noise=None):
        images = noisy(inputs["images"], noise)
        return self.predict_from(self.encoder(images, by_batch=True))

    def auxiliary_logits(self, inputs, encoded):
        (module,) = self.auxiliary
        return dict(enumerate(ops.unstack(module(encoded), axis=1)))

    def random_noise(self, inputs):
        shape = ops.shape(inputs["images"])
        return keras.random.normal(shape, seed=self.seed_generator)

    def learned(self, inputs, encoded):
        with self.teaching():
            targets = ops.softmax(ops.cast(self.teach(inputs), "float32"))
        view_logits, adversarial = [], None
        if "adversarial" in self.noises:
            noise = self.adversarial_noise(inputs, targets)
            adversarial = self.encode(inputs, True, noise)
        if self.auxiliary:
            if self.perturbation == "random":
                noise = of_norm(self.random_noise(inputs), self.vat_norm)
                encoded = self.encode(inputs, True, noise)
            elif self.perturbation == "adversarial":
                encoded = adversarial
            view_logits += self.auxiliary_logits(inputs, encoded).values()
        if "vat" in self.views:
            view_logits.append(self.predict_from(adversarial, True))
        return [targets, *(ops.cast(logits, "float32") for logits in view_logits)]

    def batches(self, images, labels=None, batch_size=128, seed=None, **moved):
        """Returns the `ImageBatches` of uint8 images; see there."""
        prepare = self.preprocessing.function()
        return ImageBatches(images, prepare, labels, batch_size, seed, **moved)

    def classes_of(self, labels):
        """Returns the class of each image, int `[images]`, -1 for a label unknown."""
        return super().classes_of([labels])

    def forward_flops(self, length, training=False):
        head = dense_flops(*self.primary.kernel.shape)
        return self.encoder.flops(training) + head

    @property
    def student_passes(self):
        """How many passes noise takes: one of a kind is for all that sees it."""
        return len(self.noises)

    def teaching_flops(self, length):
        return self.forward_flops(length) * (1 + 2 * ("adversarial" in self.noises))

    def predictions(self, images, batch_size=128):
        """Returns the label of each image, uint8 `[images, *image_shape]`."""
        images = np.asarray(images)
        shape = self.encoder.image_shape
        if images.dtype != np.uint8 or images.shape[1:] != shape:
            raise ValueError(
                f"`images` must be uint8 [images, {', '.join(map(str, shape))}]; got "
                f"{images.dtype} {list(images.shape)}."
            )
        batches = self.batches(images, batch_size=batch_size)
        return [self.labels[x.argmax()] for _, x in self.predicted(batches)]

    # === Presets ===

    @property
    def networks(self):
        """What presets hold."""
        return {
            "preprocessing": self.preprocessing,
            "encoder": self.encoder,
            "primary": self.primary,
        }

    @classmethod
    def parameters_of(cls, config):
        """Counts the saved weights of what a preset's config describes.

        Raises:
            ValueError: A size in it is none.
        """
        shape, channels = config["image_shape"], config["channels"]
        check_sizes(shape, channels)
        pixels = math.prod(shape) if config["preprocessing"] == "zca" else shape[-1]
        module = dense_parameters(channels[-1], len(config["labels"]))
        return encoder_parameters(shape, channels) + pixels + pixels**2 + module

    def get_config(self):
        return {
            "labels": self.labels,
            "image_shape": list(self.encoder.image_shape),
            "channels": list(self.encoder.channels),
            "preprocessing": self.preprocessing.method,
            "perturbation": self.perturbation,
            "labelled_dropout": self.labelled_dropout,
            "unlabelled_dropout": self.unlabelled_dropout,
            **self.training_config,
            "name": self.name,
            "dtype": self.dtype_policy.name,
        }


def noisy(images, noise):
    """Returns images, with noise if there is any."""
    return images if noise is None else ops.cast(images, "float32") + noise
