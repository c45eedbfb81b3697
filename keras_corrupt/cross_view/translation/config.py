"""The settings of a run of translation."""

import dataclasses
from typing import Literal

import tyro

from keras_corrupt.cross_view.run.config import CrossViewConfig
from keras_corrupt.cross_view.views import TRANSLATION_VIEWS


@dataclasses.dataclass(frozen=True)
class TranslationConfig(CrossViewConfig):
    """The settings of a translator, where the thesis's values differ."""

    in_words: bool = False
    """Whether spaces alone separate words, in all files, whose lines are sentences.
    Otherwise plain text is divided, sentences by rules for English."""
    views: tuple[Literal[(*TRANSLATION_VIEWS, "word_dropout")], ...] = TRANSLATION_VIEWS
    """What the auxiliary decoders see: the sentence by attention whose weights are
    dropped, a translation without its last word, or all. With `word_dropout` alone the
    primary decoder learns from itself: the thesis's baseline (4.3.2)."""
    beam_size: int = 10
    """Translations that beam search keeps, to learn from and in the end."""
    cross_view_weight: float = 0.1
    """What the loss on what has no translation, a sum over all modules, counts beside
    that on translations. 1 is the thesis's, whose runs are many times longer."""
    length_penalty: float = 0.6
    """How much beam search corrects for a translation's length. The thesis names no
    correction, which is 0: then likely translations are short ones, and the model
    learns to be brief. Wu et al. (2016) use 0.2."""
    attention_dropout: float = 0.5
    """The rate at which attention weights are dropped; the thesis names none."""
    label_smoothing: float = 0.0
    """Label smoothing of the known translations' words."""
    target_smoothing: float = 0.1
    """Label smoothing of the words of translations that are found, and learned from."""
    vat_norm: tyro.conf.Suppress[float] = 0.5  # without effect: vat is no view here
    hard_targets: tyro.conf.Suppress[bool] = True  # the translations that are found
    confidence: float = 0.0
    """The least probability of a word of a translation that is found, the geometric
    mean over its words, for the translation to be learned from."""
    lstm_size: tyro.conf.Suppress[int | None] = None  # the decoder's are its own
    freeze_encoder: tyro.conf.Suppress[bool] = False

    #: A translator that knows little finds translations with another meaning.
    LABELLED_SHARE = 0.5
    OF_MODEL = (
        "beam_size",
        "length_penalty",
        "attention_dropout",
        "target_smoothing",
    )
