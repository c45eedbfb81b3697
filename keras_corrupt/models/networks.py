"""An encoder, or two of them, with the head that an objective reads."""

import functools

import keras

from keras_corrupt.devices.guests import invites_guests
from keras_corrupt.encoders import TransformerEncoder
from keras_corrupt.heads import ReplacedTokenHead, VocabularyHead
from keras_corrupt.heads.sequence import SequenceHead
from keras_corrupt.models.generator_sizes import complete_generator
from keras_corrupt.objectives.cloze import states_around

#: What the towers share: all of their embeddings. A projection to another hidden size,
#: if there is one, is each tower's own.
EMBEDDING_PARTS = ("token", "position", "segment", "norm")


def made_encoder(encoder, dtype):
    """Returns an encoder as it is, or makes one.

    Args:
        encoder: A `TransformerEncoder`, or a dict of its constructor arguments.
        dtype: The dtype policy of an encoder that is made.
    """
    if isinstance(encoder, TransformerEncoder):
        return encoder
    return TransformerEncoder(**encoder, dtype=dtype, name="encoder")


def sizes_of(encoder):
    """Returns the constructor arguments of an encoder: a dict, or what has them."""
    return getattr(encoder, "architecture", encoder)


@invites_guests
class MaskedLMNetwork(keras.Model):
    """An encoder with BERT's head: logits over the vocabulary at chosen positions.

    Args:
        encoder: A `TransformerEncoder`, or its constructor arguments.
    """

    def __init__(self, encoder, **kwargs):
        super().__init__(**kwargs)
        self.encoder = made_encoder(encoder, self.dtype_policy)
        self.head = VocabularyHead(self.encoder, dtype=self.dtype_policy, name="head")
        self.built = True

    def build(self, inputs_shape=None, positions_shape=None):
        self.built = True

    def compute_output_shape(self, inputs_shape, positions_shape=(None, None)):
        return (*positions_shape, self.encoder.vocabulary_size)

    def call(self, inputs, positions, training=False):
        """Predicts the tokens at `positions`.

        Args:
            inputs: The encoder's inputs.
            positions: int32 `[batch, masked]`.
            training: Whether dropout is active.

        Returns:
            float32 logits, `[batch, masked, vocabulary]`.
        """
        return self.head(self.encoder(inputs, training=training), positions)

    def flops(self, length, num_masked, training=False):
        """Counts one sequence, forward, with `num_masked` positions predicted."""
        return self.encoder.flops(length, training) + self.head.flops(num_masked)

    def activation_bytes(self, batch_size, length, num_masked, number_bytes):
        """Counts what a training step needs at its peak, the logits included."""
        logits = self.head.activation_bytes(batch_size * num_masked, number_bytes)
        return logits + self.encoder.activation_bytes(batch_size, length, number_bytes)


@invites_guests
class Discriminator(keras.Model):
    """An encoder with a binary classifier at every position.

    Args:
        encoder: A `TransformerEncoder`, or its constructor arguments.
    """

    #: Class of the head, made of the encoder that it reads.
    head_class = ReplacedTokenHead

    def __init__(self, encoder, **kwargs):
        super().__init__(**kwargs)
        self.encoder = made_encoder(encoder, self.dtype_policy)
        self.head = self.head_class(self.encoder, dtype=self.dtype_policy, name="head")
        # Not by `build`, which would keep a subclass from adding layers.
        self.built = True

    def build(self, input_shape=None):
        self.built = True

    def compute_output_shape(self, input_shape):
        return self.encoder.compute_output_shape(input_shape)[:-1]

    def call(self, inputs, training=False):
        """Returns float32 `[batch, length]`, the logits of "replaced"."""
        return self.head(self.encoder(inputs, training=training))

    def flops(self, length, num_masked=0, training=False):
        """Counts one sequence, forward; masked positions cost no more."""
        return self.encoder.flops(length, training) + self.head.flops(length)

    def activation_bytes(self, batch_size, length, num_masked, number_bytes):
        """Counts what a training step needs at its peak."""
        return self.encoder.activation_bytes(batch_size, length, number_bytes)


class CorrectiveDiscriminator(Discriminator):
    """A discriminator with a softmax over the vocabulary.

    Neither head has a hidden layer: the probability of copying is a sigmoid of one
    product (Meng et al., 2021, 3.3), and the vocabulary's softmax reads the encoder's
    output as it is (appendix D: this is more stable).

    Args:
        encoder: A `TransformerEncoder`, or its constructor arguments.
        corrects: Whether there is a softmax.
        sequence_transform: Whether there is a `SequenceHead`.
    """

    head_class = staticmethod(functools.partial(ReplacedTokenHead, transform=False))

    def __init__(self, encoder, corrects=True, sequence_transform=False, **kwargs):
        super().__init__(encoder, **kwargs)
        self.vocabulary_head = self.sequence_head = None
        if corrects:
            self.vocabulary_head = VocabularyHead(
                self.encoder,
                transform=False,
                dtype=self.dtype_policy,
                name="vocabulary_head",
            )
        if sequence_transform:
            self.sequence_head = SequenceHead(
                self.encoder, dtype=self.dtype_policy, name="sequence_head"
            )

    def flops(self, length, num_masked=0, training=False):
        total = super().flops(length, num_masked, training)
        if self.vocabulary_head is not None:
            total += self.vocabulary_head.flops(num_masked)
        return total

    def activation_bytes(self, batch_size, length, num_masked, number_bytes):
        total = super().activation_bytes(batch_size, length, num_masked, number_bytes)
        if self.vocabulary_head is not None:
            positions = batch_size * num_masked
            total += self.vocabulary_head.activation_bytes(positions, number_bytes)
        return total


@invites_guests
class TwoTowerNetwork(keras.Model):
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

    @property
    def architecture(self):
        """The constructor arguments that say what each tower computes, a dict."""
        sizes = self.left_to_right.architecture
        return {name: sizes[name] for name in sizes if name != "attention"}


def masked_lm_generator(encoder, sizes, dtype, tied_parts=("token", "position")):
    """Makes the masked language model that runs before another network.

    It shares token and position embeddings as in ELECTRA (Clark's thesis, 5.3.1), or
    other ones.

    Args:
        encoder: The other network's `TransformerEncoder`.
        sizes: Dict. Constructor arguments of its own encoder, where they differ.
        dtype: The network's dtype policy.
        tied_parts: The embeddings that it shares: see `TransformerEncoder`.

    Returns:
        A `MaskedLMNetwork`.

    Raises:
        ValueError: It is given embeddings of its own.
    """
    own = {**_sharing(encoder, sizes), "tied_parts": tied_parts}
    return MaskedLMNetwork(own, dtype=dtype, name="generator")


def two_tower_generator(encoder, sizes, dtype):
    """Makes the two-tower generator that runs before a discriminator.

    It shares token and position embeddings as in ELECTRA (Clark's thesis, 5.3.1).

    Args:
        encoder: The discriminator's `TransformerEncoder`.
        sizes: Dict. Constructor arguments of each tower, where they differ.
        dtype: The network's dtype policy.

    Returns:
        A `TwoTowerNetwork`.

    Raises:
        ValueError: It is given embeddings of its own.
    """
    return TwoTowerNetwork(_sharing(encoder, sizes), dtype=dtype, name="generator")


def _sharing(encoder, sizes):
    """Returns arguments of an encoder that shares another one's embeddings."""
    sizes = {"discriminator": encoder.architecture, "generator": sizes}
    return {**complete_generator(sizes), "tied_to": encoder}
