"""Tagging with Cross-View Training (Clark's thesis, 4.2.2)."""

import keras
from keras import ops
from scipy.special import softmax

from keras_corrupt.cross_view.bilstm.word_model import WordModel


def views_of(layers):
    """Returns what each module reads of `BiLSTMEncoder`, `[batch, length, ...]`.

    Only the first layer's directions are restricted: higher layers read both.
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

    Args are `WordModel`'s; `labels` are the names of all tags.

    Example:

    >>> tagger = CrossViewTagger.from_preset(
    ...     "tiny", words=["cats", "sleep"], characters="acelpst", labels=["N", "V"])
    >>> [len(tags) for tags in tagger.predictions([["Cats", "sleep"], ["Cats"]])]
    [2, 1]
    """

    usual_smoothing = 0.1

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.add_modules()

    def views_of(self, layers, inputs):
        return views_of(layers)

    def decoded(self, logits):
        return [self.labels[tag] for tag in logits.argmax(-1)]

    def written(self, prediction, logits):
        chances = softmax(logits, axis=-1).max(axis=-1)
        return {"tags": prediction, "probabilities": chances.tolist()}

    @classmethod
    def module_parameters(cls, width, hidden_size, num_labels):
        return width * hidden_size + (hidden_size + 1) * num_labels
