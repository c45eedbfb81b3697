"""The start of a run: new LSTMs, another run's LSTMs, or a pretrained Transformer.

Another run's encoder can stay as it is, so that a new task's module alone learns
(Clark's thesis, table 4.5).
"""

import contextlib

import numpy as np

from keras_corrupt.cross_view.parsing.parser import CrossViewParser
from keras_corrupt.cross_view.presets import PRESETS, word_size
from keras_corrupt.cross_view.tagging.tagger import CrossViewTagger
from keras_corrupt.cross_view.text.word_vectors import first_words, read_word_vectors
from keras_corrupt.downstream import TokenTagger
from keras_corrupt.presets import Preset

#: Models of whose presets another task takes encoder and vocabulary.
TRAINED = (CrossViewTagger, CrossViewParser)


def start_class(task, preset):
    """Returns the class of the model whose encoder is taken, `None` for a new one.

    Raises:
        ValueError: The task's model cannot have that encoder.
    """
    if preset in PRESETS:
        return None
    names = ", ".join(PRESETS)
    if task.kind != "translation":
        names += ", nor a tagger or parser of a run"
        with contextlib.suppress(ValueError):
            return Preset.open(preset, TRAINED).model_class
    if task.kind == "tagging":
        return TokenTagger
    raise ValueError(
        f"`preset` is of a network that reads words; {preset!r} is none of {names}."
    )


def start_of(model_class, task, config):
    """Returns the model whose encoder is taken, of what `start_class` returned."""
    if config.word_vectors:
        raise ValueError(
            f"`word_vectors` are for new networks that read words; preset="
            f"{config.preset} has its own vectors. Leave them out."
        )
    if model_class is TokenTagger:
        return TokenTagger.from_preset(
            config.preset,
            dropout=config.labelled_dropout,
            dtype=config.dtype,
            **task.model_arguments,
        )
    return model_class.from_preset(config.preset, views=(), dtype=config.dtype)


def words_with_vectors(config):
    """Returns the words of the vectors that a run is given, as many as it can know."""
    if not config.word_vectors:
        return []
    size = word_size(config.preset)
    return first_words(config.word_vectors, config.vocabulary_size, size)


def start_from_vectors(model, path):
    """Gives words their vectors of a file, those that it has."""
    table = model.encoder.embeddings.word.embeddings
    words = model.vocabulary.words
    vectors = read_word_vectors(path, words, table.shape[1])
    start = np.array(table)
    for row, word in enumerate(words, 2):
        start[row] = vectors.get(word, start[row])
    table.assign(start)
    print(f"{len(vectors):,} of {len(words):,} words start from given vectors.")
