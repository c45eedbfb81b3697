"""Tagging with Cross-View Training (Clark's thesis, 4.2.2)."""

import keras
from keras import ops

from keras_corrupt.cross_view.bilstm.word_model import WordModel
from keras_corrupt.cross_view.model import VIEWS


def views_of(layers):
    """Returns what each module reads, a dict of `[batch, length, ...]`.

    Only the first layer's directions are restricted: higher layers read both.

    Args:
        layers: What `BiLSTMEncoder` returns.
    """
    forward, backward = layers[0]
    return {
        "forward": forward,  # the word and those before it
        "backward": backward,  # the word and those after it
        "future": ops.pad(forward, [(0, 0), (1, 0), (0, 0)])[:, :-1],  # those before
        "past": ops.pad(backward, [(0, 0), (0, 1), (0, 0)])[:, 1:],  # those after
        "full": ops.concatenate([states for layer in layers for states in layer], -1),
    }


@keras.saving.register_keras_serializable(package="keras_corrupt")
class CrossViewTagger(WordModel):
    """Tags words, and learns from text without tags what its views agree on.

    Args:
        words: See `WordModel`; so for `characters` and what is not listed.
        characters: See there.
        labels: The names of all tags.
        views: See `CrossViewModel`.
        label_smoothing: See there.
        kwargs: Others of `WordModel`.

    Example:

    >>> tagger = CrossViewTagger.from_preset(
    ...     "tiny", words=["cats", "sleep"], characters="acelpst", labels=["N", "V"])
    >>> [len(tags) for tags in tagger.predictions([["Cats", "sleep"], ["Cats"]])]
    [2, 1]
    """

    def __init__(
        self, words, characters, labels, views=VIEWS, label_smoothing=0.1, **kwargs
    ):
        super().__init__(
            words,
            characters,
            labels,
            views=views,
            label_smoothing=label_smoothing,
            **kwargs,
        )
        self.add_modules()

    def views_of(self, layers, inputs):
        return views_of(layers)

    def decoded(self, logits):
        return [self.labels[tag] for tag in logits.argmax(-1)]

    @classmethod
    def module_parameters(cls, width, hidden_size, num_labels):
        return width * hidden_size + (hidden_size + 1) * num_labels
