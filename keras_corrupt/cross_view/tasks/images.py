"""Images and their labels from files, and the task of classifying them."""

import glob
import gzip
import hashlib
import json
import lzma
import os
import zipfile
import zlib
from collections import Counter

import numpy as np

from keras_corrupt.files.whole import whole_file
from keras_corrupt.tasks.metrics import accuracy
from keras_corrupt.tasks.task import Split, Task, check_splits

#: Height, width and colours of CIFAR-10's images, and bytes of a record.
CIFAR_SHAPE = (32, 32, 3)
CIFAR_RECORD = 1 + 32 * 32 * 3

_OPENERS = {".bin": open, ".bin.gz": gzip.open, ".bin.xz": lzma.open}


class ImageSplit(Split):
    """A `Split` whose examples are one uint8 array, `[images, height, width, 3]`."""

    def fingerprint(self):
        """Returns a hash of images and labels: another one if any changes."""
        return image_fingerprint(self.examples, self.labels)


class ImageTask(Task):
    """Classifying images.

    Labels are the numbers from 0 on, as strings.

    Args:
        name: The task's name in results.
        files: Split name -> file, glob or list of such; see `Task.splits` and
            `read_images`. Labels of a split whose name begins with `"test"` may lack.
        num_classes: Number of classes.
        max_train: Labelled images to use, as many of each class as there are, the
            first ones; all if not given.

    Raises:
        FileNotFoundError: A file is not there.
        ValueError: A file or an argument is not as described.
    """

    kind = "image_classification"
    main_metric = "accuracy"

    def __init__(self, name, files, num_classes=10, max_train=None):
        check_splits(files)
        if not num_classes >= 2:
            raise ValueError(f"`num_classes` must be 2 or more; got {num_classes!r}.")
        self.name = name
        read = {
            split: read_images(paths, num_classes, split.startswith("test"))
            for split, paths in files.items()
        }
        shape = read["train"][0].shape[1:]
        for split, (images, _) in read.items():
            check_shape(images, shape, f"`files`: {split}")
        if max_train:
            images, labels = read["train"]
            rows = of_each_class(labels, max_train)
            read["train"] = images[rows], labels[rows]
        self.splits = {
            split: ImageSplit(images, None if labels is None else [*map(str, labels)])
            for split, (images, labels) in read.items()
        }
        counts = Counter(self.splits["train"].labels)
        if len(counts) < 2:
            raise ValueError(
                f"{files['train']} has images of the class {[*counts]} alone: there is "
                "nothing to learn."
            )
        self.most_frequent = counts.most_common(1)[0][0]
        self.model_arguments = {
            "labels": [str(label) for label in range(num_classes)],
            "image_shape": list(shape),
        }

    def metrics(self, predictions, split):
        """Returns the accuracy, in percent. See `Task.metrics`."""
        return {"accuracy": accuracy(predictions, split.labels)}

    def guesses(self, split):
        """Gives every image the label that most images of `"train"` have."""
        return [self.most_frequent] * len(split)

    def write_predictions(self, predictions, name, directory):
        """Writes a label a line, in the images' order. See `Task.write_predictions`."""
        path = os.path.join(directory, f"{name}.txt")
        with whole_file(path) as file:
            file.writelines(f"{label}\n" for label in predictions)
        return path


def read_images(paths, num_classes=None, may_lack_labels=False):
    """Reads images, and labels, from files.

    Files are of CIFAR-10's binary layout (`.bin`, also `.bin.gz` and `.bin.xz`): for
    each image a byte with its label, then 32 rows of 32 bytes of red, and the same of
    green and blue. Or they are NumPy's archives (`.npz`) of `images`, uint8 `[images,
    height, width]` or with colours as a last axis, and `labels`, int `[images]`.

    Args:
        paths: A file, a glob, or a list of such.
        num_classes: Labels are less than this; `None` not to read them.
        may_lack_labels: Whether an archive without labels will do.

    Returns:
        `(images, labels)`, uint8 `[images, height, width, colours]` and int64
        `[images]`; labels are `None` where they lack, or are not read.

    Raises:
        FileNotFoundError: A file is not there.
        ValueError: A file is not as described.
    """
    read = [_read(path) for path in _files(paths)]
    for path, images, labels in read:
        if not len(images):
            raise ValueError(f"{path} has no image.")
        check_shape(images, read[0][1].shape[1:], path)
        if num_classes is not None and labels is not None:
            _check_labels(path, labels, num_classes)
        elif num_classes is not None and not may_lack_labels:
            raise ValueError(f"{path} has no `labels`. Give a file with some.")
    images = np.concatenate([images for _, images, _ in read])
    labels = [labels for *_, labels in read]
    if num_classes is None or any(each is None for each in labels):
        return images, None
    return images, np.concatenate(labels).astype("int64")


def check_shape(images, shape, where):
    """Raises a `ValueError` unless images have a height, a width and colours."""
    if images.shape[1:] != tuple(shape):
        raise ValueError(
            f"{where} has images of {_size(images.shape[1:])}, where others are of "
            f"{_size(shape)}. Images of a run have one size: bring them to it first."
        )


def of_each_class(labels, count):
    """Returns the rows of the first images of each class, as many of one as of others.

    >>> of_each_class(np.array([0, 0, 0, 1, 0, 1]), 4).tolist()
    [0, 1, 3, 5]
    """
    rank = np.zeros(len(labels), "int64")
    for label in np.unique(labels):
        rows = np.flatnonzero(labels == label)
        rank[rows] = np.arange(len(rows))
    return np.sort(np.argsort(rank, kind="stable")[:count])


def image_fingerprint(images, labels=None):
    """Returns a hash of images, a uint8 array, and of their labels."""
    digest = hashlib.sha256(json.dumps([images.shape, labels]).encode())
    digest.update(np.ascontiguousarray(images))
    return digest.hexdigest()[:16]


def _size(shape):
    return " x ".join(map(str, shape))


def _files(paths):
    matches = []
    for path in [paths] if isinstance(paths, (str, os.PathLike)) else paths:
        path = os.fspath(path)
        files = [path] if os.path.exists(path) else sorted(glob.glob(path))
        if not any(map(os.path.isfile, files)):
            raise FileNotFoundError(f"{path} is not a file.")
        matches += files
    if not matches:
        raise ValueError("`paths` is empty: name a file of images.")
    return matches


def _read(path):
    """Returns the path, its images and its labels, or `None`."""
    try:
        if path.endswith(".npz"):
            return path, *_archive(path)
        for ending, opened in _OPENERS.items():
            if path.endswith(ending):
                with opened(path, "rb") as file:
                    return path, *_records(file.read())
    except (
        *(EOFError, gzip.BadGzipFile, zlib.error),
        *(lzma.LZMAError, zipfile.BadZipFile),
    ) as error:
        raise ValueError(f"{path} is damaged: {error}.") from error
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    raise ValueError(f"{path} must end in .npz, {', '.join(_OPENERS)}.")


def _records(content):
    if len(content) % CIFAR_RECORD:
        raise ValueError(
            f"its {len(content):,} bytes are no whole number of records of "
            f"{CIFAR_RECORD:,}, a label and 32 x 32 x 3. Is it truncated, or not in "
            "CIFAR-10's binary layout?"
        )
    rows = np.frombuffer(content, np.uint8).reshape(-1, CIFAR_RECORD)
    height, width, colours = CIFAR_SHAPE
    images = rows[:, 1:].reshape(-1, colours, height, width).transpose(0, 2, 3, 1)
    return np.ascontiguousarray(images), rows[:, 0]


def _archive(path):
    arrays = np.load(path, allow_pickle=False)
    if not isinstance(arrays, np.lib.npyio.NpzFile):
        raise ValueError("it is no archive of arrays, as np.savez writes it.")
    with arrays:
        if "images" not in arrays:
            raise ValueError(f"it has {arrays.files}, and no `images`.")
        images = arrays["images"]
        labels = arrays["labels"] if "labels" in arrays else None
    if images.dtype != np.uint8 or images.ndim not in (3, 4):
        raise ValueError(
            "`images` must be uint8 [images, height, width], or with colours as a last "
            f"axis; got {images.dtype} {list(images.shape)}."
        )
    if labels is not None and (
        labels.dtype.kind not in "iu" or labels.shape != images.shape[:1]
    ):
        raise ValueError(
            f"`labels` must be {len(images):,} whole numbers, one for each image; got "
            f"{labels.dtype} {list(labels.shape)}."
        )
    return images if images.ndim == 4 else images[..., None], labels


def _check_labels(path, labels, num_classes):
    wrong = np.flatnonzero((labels < 0) | (labels >= num_classes))
    if len(wrong):
        raise ValueError(
            f"{path}: image {wrong[0]} has the label {labels[wrong[0]]}; with "
            f"`num_classes={num_classes}` labels are 0 to {num_classes - 1}."
        )
