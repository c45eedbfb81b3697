"""Batches of images, prepared and moved about."""

import functools

import numpy as np


class ImageBatches:
    """The batches of some images, pass after pass, each in an order of its own.

    Which batch is which depends on its number alone, so that a run can go on anywhere.
    For training all batches are whole, since an image is normalised by the others of
    its batch: one that begins in one pass ends in the next.

    Args:
        images: uint8 `[images, height, width, colours]`.
        prepare: Function of such images that returns what the model reads.
        labels: For each image the index of its label, or `None`.
        batch_size: Images in a batch.
        seed: Seed of the order and of how images are moved; `None` for the images' own
            order, in which the last batch is filled up with copies.
        translate: Images are moved by up to so many pixels in each direction; new
            pixels are 0.
        flip: Whether half of them are mirrored.
    """

    def __init__(
        self, images, prepare, labels, batch_size, seed=None, translate=0, flip=False
    ):
        self.images = images
        self.prepare = prepare
        self.labels = labels
        self.batch_size = batch_size
        self.seed = seed
        self.translate = translate
        self.flip = flip
        # An iterator of before may still be drawing, for another pass, in its thread.
        self.order_of = functools.lru_cache(maxsize=2)(self._order_of)

    def __len__(self):
        """Batches in a pass."""
        return -(-len(self.images) // self.batch_size)

    def _order_of(self, pass_number):
        rng = np.random.default_rng((self.seed, pass_number))
        return rng.permutation(len(self.images))

    def rows(self, number):
        """Returns the images of a batch, counted from 0 on."""
        places = number * self.batch_size + np.arange(self.batch_size)
        if self.seed is None:
            return places[places < len(self.images)]
        passes, places = np.divmod(places, len(self.images))
        return np.concatenate(
            [self.order_of(n)[places[passes == n]] for n in np.unique(passes).tolist()]
        )

    def batch(self, number):
        """Returns the inputs and targets of a batch.

        Returns:
            `(inputs, labels)`: see `CrossViewImageClassifier`.
        """
        rows = self.rows(number)
        real = (np.arange(self.batch_size) < len(rows)).astype("int32")
        rows = np.resize(rows, self.batch_size)
        images = self.prepare(self.images[rows])
        if self.seed is not None:
            images = self.moved(images, np.random.default_rng((self.seed, 1, number)))
        inputs = {
            "images": images,
            "padding_mask": real,
            "labelled": np.full(self.batch_size, self.labels is not None, "int32"),
        }
        labels = np.full(self.batch_size, -1, "int32")
        if self.labels is not None:
            labels[:] = np.where(real, self.labels[rows], -1)
        return inputs, labels

    def moved(self, images, rng):
        """Returns images translated and mirrored at random."""
        if self.translate:
            edge = self.translate
            height, width = images.shape[1:3]
            padded = np.pad(images, [(0, 0), (edge, edge), (edge, edge), (0, 0)])
            starts = rng.integers(0, 2 * edge + 1, (len(images), 2))
            images = np.stack(
                [
                    image[row : row + height, column : column + width]
                    for image, (row, column) in zip(padded, starts, strict=True)
                ]
            )
        if self.flip:
            mirrored = rng.random(len(images)) < 0.5
            images = np.where(mirrored[:, None, None, None], images[:, :, ::-1], images)
        return images
