"""What a run on images is."""

import dataclasses
from typing import Literal

import tyro

from keras_corrupt.cross_view.run.config import CrossViewConfig


@dataclasses.dataclass(frozen=True)
class ImageConfig(CrossViewConfig):
    """The settings of an image classifier (Clark's thesis, 4.4).

    The thesis has its network, and says that its code is adapted from Miyato et al.'s.
    Settings that it does not name come from their paper (2018) and code.
    """

    EXAMPLES = "images"
    OF_MODEL = ("preprocessing", "perturbation", "labelled_dropout")

    preset: str = "base"
    """Size of the network: tiny or base."""
    channels: tuple[int, ...] = ()
    """Filters of the nine convolutions, if not the preset's."""
    unlabelled: tuple[str, ...] = ()
    """Images without labels, or with labels that are not read: files or globs as
    --train has, or `shapes`. Without any, the primary module learns alone: the
    supervised baseline."""
    max_unlabelled: int = 1_000_000
    """Unlabelled images to use, at most; a million of 32 x 32 take 3 GB of memory."""
    preprocessing: Literal["zca", "colours"] = "zca"
    """Whitening of all pixels, which takes minutes for 32 x 32 of them; or of colours
    alone."""
    translate: int = 0
    """Move images in training by up to so many pixels: 2 in CIFAR-10+."""
    flip: bool = False
    """Mirror half of the images in training."""
    views: tuple[Literal["regions", "vat"], ...] = ("regions",)
    """`regions`: an auxiliary module for each feature vector. With `vat` alone the
    primary module learns from itself: the baseline."""
    perturbation: Literal["none", "random", "adversarial"] = "adversarial"
    """Noise that is added to the images that auxiliary modules see."""
    vat_norm: float = 8.0
    """The norm of the noise that is added to an image, of either kind."""
    steps: int = 96_000
    """Updates, labelled and unlabelled ones."""
    batch_size: int = 128
    """Images in an update."""
    optimizer: Literal["adam", "sgd"] = "adam"
    """Adam, whose rate falls linearly in the last third of a run; or SGD."""
    learning_rate: float = 0.001
    """Learning rate of the first update."""
    clip_norm: float = 0.0
    """Largest global norm of the gradient; 0 for no limit."""
    ema: float = 0.998
    """Momentum of the average of the weights that is the result; 0 for none. What
    batch normalisation needs is measured for the average anew."""
    labelled_dropout: float = 0.5
    """Dropout rate after each pooling on labelled images."""
    unlabelled_dropout: float = 0.5
    """That on unlabelled ones."""
    label_smoothing: float = 0.0
    """Label smoothing of the known labels."""
    cross_view_weight: float = 0.03
    """What the loss on images without labels, a sum over all modules, counts beside
    the loss on labels: about their mean. 1, the thesis's, needs its many updates."""
    seed: int = 0
    """Seed of initial weights, order of images, dropout and noise."""
    # Settings of text alone.
    in_words: tyro.conf.Suppress[bool] = False
    on_bad_bytes: tyro.conf.Suppress[str] = "error"
    on_bad_rows: tyro.conf.Suppress[str] = "error"
    text_column: tyro.conf.Suppress[str] = "text"
    word_dropout: tyro.conf.Suppress[float] = 0.1
    vocabulary_size: tyro.conf.Suppress[int] = 50_000
    word_vectors: tyro.conf.Suppress[str | None] = None
    lstm_size: tyro.conf.Suppress[int | None] = None
    freeze_encoder: tyro.conf.Suppress[bool] = False
    dtype: tyro.conf.Suppress[str] = "float32"
