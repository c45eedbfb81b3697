"""Dependency parsing with Cross-View Training (Clark's thesis, 4.2.3)."""

import keras
import numpy as np
from keras import ops

from keras_corrupt.cross_view.bilstm.word_model import WordModel
from keras_corrupt.cross_view.parsing.trees import best_heads
from keras_corrupt.cross_view.views import VIEW_PAIRS
from keras_corrupt.encoders.cost import dense_flops, dense_parameters

#: The score of a head that is none.
IMPOSSIBLE = -1e9


class BiaffineModule(keras.layers.Layer):
    """Scores edges: ReLU(W_head z1 + b_head) (W_r + W) ReLU(W_dep z2 + b_dep).

    Args:
        hidden_size: Width of the hidden layers.
        num_relations: Number of relations r, each of which has a matrix W_r.
    """

    def __init__(self, hidden_size, num_relations, **kwargs):
        super().__init__(**kwargs)
        self.num_relations = num_relations
        self.head, self.dependent = (
            keras.layers.Dense(hidden_size, "relu", dtype=self.dtype_policy, name=name)
            for name in ("head", "dependent")
        )

    def build(self, width):
        size = self.head.units
        for layer in (self.head, self.dependent):
            layer.build((None, None, width))
        #: What stands for the root where a word has states.
        self.root = self.add_weight((width,), "glorot_uniform", name="root")
        self.shared = self.add_weight((size, size), "glorot_uniform", name="shared")
        shape = self.num_relations, size, size
        self.by_relation = self.add_weight(shape, "glorot_uniform", name="by_relation")

    def call(self, states):
        """Scores all heads and relations of each word.

        Args:
            states: The states that candidate heads and dependents have, `[batch,
                length, width]` each, and where there are words, `[batch, length]`.

        Returns:
            float32 `[batch, length, (length + 1) * relations]`: all relations of the
            root, then all relations of each word as the head. Padding is `IMPOSSIBLE`
            as one.
        """
        heads, dependents, words = states
        batch, length, width = ops.shape(heads)
        root = ops.broadcast_to(ops.cast(self.root, heads.dtype), (batch, 1, width))
        heads = self.head(ops.concatenate([root, heads], axis=1))
        weights = ops.cast(self.by_relation + self.shared, heads.dtype)
        dependents = ops.einsum("btj,rij->btri", self.dependent(dependents), weights)
        scores = ops.einsum("bui,btri->btur", heads, dependents)
        possible = ops.pad(ops.cast(words, "bool"), [(0, 0), (1, 0)], "constant", True)
        scores = ops.where(
            possible[:, None, :, None], ops.cast(scores, "float32"), IMPOSSIBLE
        )
        return ops.reshape(scores, (batch, length, -1))

    def flops(self, length):
        """Counts one sentence, forward; `encoders/cost.py` has the rules."""
        width, size = self.head.kernel.shape
        hidden = (2 * length + 1) * (dense_flops(width, size) + size)  # ReLU
        edges = length * self.num_relations * 2 * size * (size + length + 1)
        return hidden + edges


@keras.saving.register_keras_serializable(package="keras_corrupt")
class CrossViewParser(WordModel):
    """Parses sentences, and learns from text without trees what its views agree on.

    It reads words alone, no parts of speech. A word's class is its head and relation
    together: `head * len(labels) + relation`, where the head is a word counted from 1,
    or 0 for the root. The prediction is the best tree with one word at the root.

    Args are `WordModel`'s: `labels` are the names of all relations, the first
    part of each view's name is how much is seen of heads, the second of dependents, and
    `label_smoothing` is for taggers.

    Example:

    >>> parser = CrossViewParser.from_preset(
    ...     "tiny", words=["cats", "sleep"], characters="acelpst", labels=["nsubj"])
    >>> parser.predictions([["Cats"]])
    [[(0, 'nsubj')]]
    """

    known_views = VIEW_PAIRS

    def __init__(self, *args, vat_norm=1.0, **kwargs):
        super().__init__(*args, vat_norm=vat_norm, **kwargs)
        if self.label_smoothing:
            raise ValueError(
                "`label_smoothing` must be 0 for a parser, whose classes differ from "
                f"word to word; got {self.label_smoothing!r}."
            )
        self.add_modules()

    def module(self, name, width, hidden_size):
        module = BiaffineModule(
            hidden_size, len(self.labels), dtype=self.dtype_policy, name=name
        )
        module.build(width)
        return module

    def views_of(self, layers, inputs):
        (forward, backward), words = layers[0], inputs["padding_mask"]
        joined = ops.concatenate([states for layer in layers for states in layer], -1)
        return {
            "forward_forward": (forward, forward, words),
            "forward_backward": (forward, backward, words),
            "backward_forward": (backward, forward, words),
            "backward_backward": (backward, backward, words),
            "full": (joined, joined, words),
        }

    def num_classes(self, inputs):
        return (ops.shape(inputs["padding_mask"])[1] + 1) * len(self.labels)

    def classes_of(self, labels):
        relations = [[relation for _, relation in tree] for tree in labels]
        classes = super().classes_of(relations)
        heads = np.array([head for tree in labels for head, _ in tree])
        return np.where(classes < 0, -1, heads * len(self.labels) + classes)

    def decoded(self, logits):
        words, classes = logits.shape
        scores = logits.reshape(words, classes // len(self.labels), len(self.labels))
        scores = scores[:, : words + 1]
        heads = best_heads(scores.max(axis=-1))
        return [
            (head, self.labels[relations[head].argmax()])
            for head, relations in zip(heads, scores, strict=True)
        ]

    def written(self, prediction, logits):
        return {
            "heads": [int(head) for head, _ in prediction],
            "relations": [relation for _, relation in prediction],
        }

    @classmethod
    def module_parameters(cls, width, hidden_size, num_labels):
        edges = (num_labels + 1) * hidden_size**2
        return 2 * dense_parameters(width, hidden_size) + edges + width
