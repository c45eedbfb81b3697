"""The convolutional network that Cross-View Training of images has (thesis, 4.4)."""

import keras
from keras import ops

from keras_corrupt.cross_view.bilstm.encoder import RowDropout
from keras_corrupt.encoders.cost import DROPOUT_FLOPS, LAYER_NORM_FLOPS

#: Filters of the nine convolutions, and what their kernels' height and width are.
CHANNELS = (128, 128, 128, 256, 256, 256, 512, 256, 128)
KERNELS = (3, 3, 3, 3, 3, 3, 3, 1, 1)
#: Those that are followed by pooling and dropout, and the one without padding.
POOLED = (2, 5)
UNPADDED = 6


class BatchNorm(keras.layers.Layer):
    """Batch normalisation whose statistics change only when asked for.

    `keras.layers.BatchNormalization` updates them in every pass of training, of which
    an update of Cross-View Training has several.

    Args:
        momentum: Momentum of the moving averages of mean and variance.
        epsilon: A small number that is added to the variance.
    """

    def __init__(self, momentum=0.99, epsilon=1e-6, **kwargs):
        super().__init__(**kwargs)
        self.momentum = momentum
        self.epsilon = epsilon

    def build(self, input_shape):
        shape, options = (input_shape[-1],), {"autocast": False}
        self.scale = self.add_weight(shape, "ones", name="scale", **options)
        self.offset = self.add_weight(shape, "zeros", name="offset", **options)
        options["trainable"] = False
        self.mean = self.add_weight(shape, "zeros", name="mean", **options)
        self.variance = self.add_weight(shape, "ones", name="variance", **options)

    def call(self, x, by_batch=False, update=None):
        """Returns `x`, `[batch, height, width, channels]`, normalised.

        Args:
            x: The array.
            by_batch: Whether by its own mean and variance, not the moving ones.
            update: Bool scalar, whether these change; never if `None`.
        """
        mean, variance = self.mean, self.variance
        if by_batch:
            mean, variance = self.moments(x)
        if update is not None:
            moving = ops.cast(update, "float32") * (1.0 - self.momentum)
            for average, value in ((self.mean, mean), (self.variance, variance)):
                value = ops.stop_gradient(value)
                average.assign(average + moving * (value - average))
        x = ops.cast(x, "float32")
        x = ops.batch_normalization(
            x, mean, variance, -1, self.offset, self.scale, self.epsilon
        )
        return ops.cast(x, self.compute_dtype)

    def moments(self, x):
        """Returns mean and variance of each channel, float32."""
        return ops.moments(ops.cast(x, "float32"), axes=(0, 1, 2))


class ImageEncoder(keras.layers.Layer):
    """Nine convolutions (Miyato et al., 2018, appendix D: "Conv-Large").

    Three of 3 x 3, maximum of 2 x 2, dropout; the same again; one of 3 x 3 without
    padding; two of 1 x 1. Each is followed by batch normalisation and a leaky ReLU of
    slope 0.1. Images of 32 x 32 have 6 x 6 feature vectors, which see patches
    of 21 x 21 pixels (the corners) to 29 x 29 (the centre).

    Args:
        image_shape: Height, width and colours; 12 x 12 pixels at least.
        channels: Filters of the nine convolutions.

    Raises:
        ValueError: The sizes make no such network.

    Example:

    >>> encoder = ImageEncoder((32, 32, 3), channels=[4] * 9)
    >>> tuple(encoder(keras.ops.zeros((1, 32, 32, 3))).shape)
    (1, 6, 6, 4)
    """

    def __init__(self, image_shape=(32, 32, 3), channels=CHANNELS, **kwargs):
        super().__init__(**kwargs)
        check_sizes(image_shape, channels)
        self.image_shape = tuple(image_shape)
        self.channels = tuple(channels)
        self.convolutions = [
            keras.layers.Conv2D(
                filters,
                kernel,
                padding="valid" if i == UNPADDED else "same",
                use_bias=False,
                kernel_initializer="he_normal",
                dtype=self.dtype_policy,
                name=f"convolution_{i}",
            )
            for i, (filters, kernel) in enumerate(zip(channels, KERNELS, strict=True))
        ]
        self.norms = [
            BatchNorm(dtype=self.dtype_policy, name=f"norm_{i}")
            for i in range(len(channels))
        ]
        self.dropouts = [RowDropout(name=f"dropout_{i}") for i in POOLED]

    def build(self, input_shape=None):
        widths = (self.image_shape[-1], *self.channels)
        for width, convolution, norm in zip(
            widths, self.convolutions, self.norms, strict=False
        ):
            convolution.build((None, None, None, width))
            norm.build((None, None, None, convolution.filters))
        self.built = True

    def call(self, images, rates=None, by_batch=False, update=None):
        """Returns feature vectors, `[batch, rows, columns, channels[-1]]`.

        Args:
            images: Prepared ones, `[batch, *image_shape]`.
            rates: Each image's dropout rate, `[batch]`; `None` for no dropout.
            by_batch: See `BatchNorm`.
            update: See there.
        """
        return self.transform(
            images, lambda norm, x: norm(x, by_batch=by_batch, update=update), rates
        )

    def statistics(self, images):
        """Returns mean and variance of what each norm reads, by these images alone."""
        moments = []

        def normalise(norm, x):
            moments.extend(norm.moments(x))
            return norm(x, by_batch=True)

        self.transform(ops.cast(images, self.compute_dtype), normalise)
        return moments

    @property
    def moving_statistics(self):
        """The variables of `statistics`, in the same order."""
        return [v for norm in self.norms for v in (norm.mean, norm.variance)]

    def transform(self, x, normalise, rates=None):
        """Returns feature vectors of images; `normalise` is of a norm and its input."""
        dropouts = iter(self.dropouts)
        for i, (convolution, norm) in enumerate(
            zip(self.convolutions, self.norms, strict=True)
        ):
            x = ops.leaky_relu(normalise(norm, convolution(x)), 0.1)
            if i in POOLED:
                x = ops.max_pool(x, 2, strides=2)
                dropout = next(dropouts)
                x = x if rates is None else dropout(x, rates)
        return x

    @property
    def grid(self):
        """Rows and columns of the feature vectors."""
        return grid_of(self.image_shape)

    def flops(self, training=False):
        """Counts one image, forward; `encoders/cost.py` has the rules."""
        (height, width, inputs), total = self.image_shape, 0
        for i, convolution in enumerate(self.convolutions):
            if i == UNPADDED:
                height, width = self.grid
            filters = convolution.filters
            products = 2 * KERNELS[i] ** 2 * inputs
            # Batch normalisation, and leaky ReLU: a product and a maximum.
            total += height * width * filters * (products + LAYER_NORM_FLOPS + 2)
            if i in POOLED:
                height, width = height // 2, width // 2
                each = 3 + DROPOUT_FLOPS * training
                total += height * width * filters * each
            inputs = filters
        return total


def grid_of(image_shape):
    """Returns the rows and columns of feature vectors that images have.

    >>> grid_of((32, 32, 3)), grid_of((20, 28, 1))
    ((6, 6), (3, 5))
    """
    return tuple(size // 2 // 2 - 2 for size in image_shape[:2])


def check_sizes(image_shape, channels):
    """Raises a `ValueError` unless a network has these sizes."""
    whole = all(type(n) is int and n > 0 for n in (*image_shape, *channels))
    if not whole or len(channels) != len(KERNELS):
        raise ValueError(
            f"`channels` must be {len(KERNELS)} positive whole numbers, the filters of "
            f"each convolution; got {channels!r}."
        )
    if len(image_shape) != 3 or min(grid_of(image_shape)) < 1:
        raise ValueError(
            "`image_shape` must be height and width, 12 pixels or more, and colours; "
            f"got {list(image_shape)}."
        )


def encoder_parameters(image_shape, channels):
    """Counts the weights, those that are not trained included.

    >>> encoder_parameters((32, 32, 3), CHANNELS)
    3124608
    """
    inputs, total = image_shape[-1], 0
    for filters, kernel in zip(channels, KERNELS, strict=True):
        total += kernel**2 * inputs * filters + 4 * filters
        inputs = filters
    return total
