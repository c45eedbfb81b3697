"""Two Transformers, one for each direction, and a softmax on what both say."""

import keras

from keras_corrupt.encoders import TransformerEncoder
from keras_corrupt.heads import VocabularyHead
from keras_corrupt.kernels import FusedSteps
from keras_corrupt.models.two_tower.objective import states_around

#: What the towers share: all of their embeddings. A projection to another hidden size,
#: if there is one, is each tower's own.
EMBEDDING_PARTS = ("token", "position", "segment", "norm")


class TwoTowerNetwork(FusedSteps, keras.Model):
    """Gives each position a distribution over the vocabulary, from all other tokens.

    Clark's thesis, 5.1.5. `call` gives the states that `head`, a `VocabularyHead`,
    reads.

    Args:
        encoder: Constructor arguments of `TransformerEncoder`, of each tower. Its
            `attention` plays no part: the towers have one direction each.
    """

    def __init__(self, encoder, **kwargs):
        super().__init__(**kwargs)

        def tower(direction, **tied):
            return TransformerEncoder(
                **{**encoder, **tied, "attention": direction},
                dtype=self.dtype_policy,
                name=direction,
            )

        self.left_to_right = tower("left_to_right")
        self.right_to_left = tower(
            "right_to_left", tied_to=self.left_to_right, tied_parts=EMBEDDING_PARTS
        )
        self.head = VocabularyHead(
            self.left_to_right,
            hidden_size=2 * self.left_to_right.hidden_size,
            dtype=self.dtype_policy,
            name="head",
        )
        self.built = True

    def build(self, input_shape=None):
        self.built = True

    def compute_output_shape(self, input_shape):
        *shape, hidden = self.left_to_right.compute_output_shape(input_shape)
        return (*shape, 2 * hidden)

    def call(self, inputs, training=False):
        """Reads a text in both directions.

        Args:
            inputs: The encoder's inputs, a dict of all three arrays.
            training: Whether dropout is active.

        Returns:
            `[batch, length, 2 * hidden]`: the left-to-right state before each position
            and the right-to-left state after it. It has not seen the token there.
        """
        return states_around(
            self.left_to_right(inputs, training=training),
            self.right_to_left(inputs, training=training),
            inputs["padding_mask"],
        )

    # === What it costs ===

    def flops(self, length, num_sampled=0, training=False):
        """Counts one sequence, forward.

        The towers share embedding tables, but each pays for its own look-ups. The head
        runs at every position, and once more at the `num_sampled` where samples are
        drawn.
        """
        towers = 2 * self.left_to_right.flops(length, training)
        return towers + self.head.flops(length + num_sampled)

    def activation_bytes(self, batch_size, length, num_sampled, number_bytes):
        """Counts what a training step needs at its peak."""
        sizes = batch_size, length, number_bytes
        towers = 2 * self.left_to_right.activation_bytes(*sizes)
        return towers + self.head.chunk_bytes(batch_size, length)

    # === Config ===

    @property
    def architecture(self):
        """The constructor arguments that say what each tower computes, a dict."""
        sizes = self.left_to_right.architecture
        return {name: sizes[name] for name in sizes if name != "attention"}
