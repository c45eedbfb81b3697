"""Cross-View Training of an image classifier.

    python recipes/cvt_images.py --train 'cifar-10-batches-bin/data_batch_*.bin' \\
        --max_train 4000 --dev cifar-10-batches-bin/test_batch.bin \\
        --unlabelled 'cifar-10-batches-bin/data_batch_*.bin'

Files are of CIFAR-10's binary layout (`.bin`, `.bin.gz`, `.bin.xz`), or archives of
NumPy (`.npz`): `images`, uint8 `[images, height, width, colours]`, and `labels`, from
0 on. Labels of `--unlabelled` are not read. Without `--unlabelled` the same network
learns from the labelled images alone, the baseline. Without files of its own the
command classifies shapes that it draws, and `--unlabelled shapes` draws more.

Clark's thesis, 4.4: table 4.6 has the error rates on CIFAR-10 with 4,000 labels, test
images, mean of 5 runs, without augmentation and with it (`--translate 2`): supervised
23.61 and 19.61; `--views vat` 13.29 and 10.90; with `--perturbation none` 14.63 and
12.44, `random` 13.80 and 11.10, `adversarial` 12.01 and 10.11.
"""

import dataclasses

from keras_corrupt.cross_view import ImageConfig, main
from keras_corrupt.cross_view.tasks.images import ImageTask


@dataclasses.dataclass(frozen=True)
class Config(ImageConfig):
    train: tuple[str, ...] = ()
    """Files or globs of the labelled images."""
    dev: tuple[str, ...] = ()
    """Files of the images to evaluate on."""
    test: tuple[str, ...] = ()
    """Files of images to classify, if any."""
    max_train: int | None = None
    """Labelled images to use, as many of each class, from the first on; all if not
    given."""
    num_classes: int = 10
    """Number of classes; labels are less."""


def task(config):
    if not config.train:
        return made_task()
    return ImageTask("images", config.files(), config.num_classes, config.max_train)


def made_task():
    """Makes a task of drawn discs, squares, crosses and rings."""
    import tempfile

    import numpy as np

    from keras_corrupt.cross_view.tasks.shapes import SHAPES, draw_shapes

    with tempfile.TemporaryDirectory() as directory:
        files = {}
        for seed, (split, count) in enumerate([("train", 80), ("dev", 200)]):
            images, labels = draw_shapes(count, seed=seed)
            files[split] = f"{directory}/{split}.npz"
            np.savez(files[split], images=images, labels=labels)
        return ImageTask("shapes", files, len(SHAPES))


def config():
    return Config(output="runs/cvt_images")


if __name__ == "__main__":
    main(config(), task, __doc__)
