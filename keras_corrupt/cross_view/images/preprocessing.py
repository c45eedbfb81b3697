"""Images are prepared before a network reads them."""

import math

import keras
import numpy as np

#: Images that the covariance of pixels is taken of, at most.
MAX_FITTED = 50_000


class Preprocessing(keras.layers.Layer):
    """Whitens images, by what the images of a run have in common.

    With `"zca"` all pixels and colours become uncorrelated, with variance 1, and change
    no more than that takes, as Miyato et al. (2018) prepare CIFAR-10: x' = (x - mean)
    C^-1/2. C is the covariance as Ledoit and Wolf (2004) estimate it, shrunk towards a
    multiple of the identity the more, the fewer images there are. With `"colours"` each
    colour gets mean 0 and variance 1.

    Its weights are fitted, not trained, and saved with the model's.

    Args:
        image_shape: Height, width and colours.
        method: `"zca"` or `"colours"`.
    """

    def __init__(self, image_shape, method="zca", **kwargs):
        super().__init__(trainable=False, **kwargs)
        if method not in ("zca", "colours"):
            raise ValueError(
                f"`preprocessing` must be 'zca' or 'colours'; got {method!r}."
            )
        self.image_shape = tuple(image_shape)
        self.method = method

    def build(self, input_shape=None):
        zca = self.method == "zca"
        size = math.prod(self.image_shape) if zca else self.image_shape[-1]
        fixed = {"trainable": False, "autocast": False, "dtype": "float32"}
        self.mean = self.add_weight((size,), "zeros", name="mean", **fixed)
        self.matrix = self.add_weight((size, size), "identity", name="matrix", **fixed)
        self.built = True

    def fit(self, images):
        """Learns mean and covariance of images, uint8 `[images, *image_shape]`.

        Raises:
            ValueError: The images do not differ.
        """
        if len(images) > MAX_FITTED:
            images = images[np.linspace(0, len(images) - 1, MAX_FITTED).astype(int)]
        rows = self._rows(images)
        mean = rows.mean(axis=0, dtype="float64")
        if self.method == "zca":
            from sklearn.covariance import ledoit_wolf  # here, for it takes seconds

            covariance, _ = ledoit_wolf(rows)
        else:
            covariance = np.diag(rows.var(axis=0, dtype="float64"))
        variances, directions = np.linalg.eigh(covariance)
        if not variances.max() > 1e-5:
            raise ValueError("`images` are all alike: there is nothing to learn.")
        matrix = (directions / np.sqrt(np.maximum(variances, 1e-8))) @ directions.T
        self.mean.assign(mean.astype("float32"))
        self.matrix.assign(matrix.astype("float32"))

    def function(self):
        """Returns a NumPy function of uint8 images that returns float32 ones."""
        mean, matrix = np.array(self.mean), np.array(self.matrix)

        def prepare(images):
            return ((self._rows(images) - mean) @ matrix).reshape(images.shape)

        return prepare

    def _rows(self, images):
        width = self.mean.shape[0]
        return images.reshape(-1, width).astype("float32") / 255.0
