"""BERT's Transformer encoder: post-layer-norm, optionally factorised embeddings."""

import keras
from keras import ops

from keras_corrupt.encoders.dense import Dense
from keras_corrupt.encoders.embeddings import TextEmbeddings, initializer
from keras_corrupt.encoders.masks import MASKS
from keras_corrupt.encoders.position_bias import RelativePositionBias
from keras_corrupt.encoders.text_model import TextModel
from keras_corrupt.encoders.transformer_layer import REMAT, TransformerLayer


@keras.saving.register_keras_serializable(package="keras_corrupt")
class TransformerEncoder(TextModel):
    """A Transformer over token ids.

    With `embedding_size` unlike `hidden_size` a linear layer maps the embeddings to
    the hidden size, as ELECTRA-Small and every small generator do.

    The weights exist once the constructor returns. `embed`, `attention_mask`,
    `attention_bias` and `layers_` are there for objectives that run only some of the
    layers.

    Args:
        vocabulary_size: Number of token ids.
        num_layers: Number of Transformer layers.
        hidden_size: Width of the layers.
        intermediate_size: Width inside the feed-forward networks.
        num_heads: Number of attention heads; divides `hidden_size`.
        embedding_size: Width of the embeddings; `hidden_size` if not given.
        max_length: Number of positions, the longest sequence it can read.
        num_segments: Number of segment ids.
        dropout: Dropout rate of the embeddings and of the sub-layers.
        attention_dropout: Dropout rate of the attention probabilities.
        initializer_range: Standard deviation of the initial weights.
        approximate_gelu: Whether the activation is gelu's tanh approximation, as in
            KerasHub, and not gelu itself, as in the released ELECTRA and in Hugging
            Face.
        remat: What a training step computes again in its backward pass, to keep less
            for it (Chen et al., 2016): `"none"`; `"attention"`, all of a layer but
            its products with weights, which costs some percent more operations; or
            the whole `"layer"`, a third more. The fused kernels, which keep little,
            take no notice of it.
        attention: What a position sees: `"bidirectional"`, all tokens;
            `"left_to_right"`, itself and the tokens before it, or `"right_to_left"`,
            itself and those after it, as the two towers of Electric's generator do
            (Clark's thesis, 5.1.5).
        relative_positions: `None`, or `num_buckets` and `max_distance` of a
            `RelativePositionBias`, beside the absolute positions, and `rounds_up`, if
            it does.
        layer_norm_epsilon: Added to the variance by which a vector is normalised:
            1e-12 in BERT and ELECTRA, 1e-5 in what PyTorch's default made.
        tied_to: Another encoder, some of whose parts are used instead of new ones:
            the variables are the same ones, not copies.
        tied_parts: Which: parts of `TextEmbeddings`; `projection`, from the embedding
            size to the hidden size; `position_bias`.
        tied_layers: How many of its layers, counted from the bottom.
        disentangled: Whether tied tables are sums of the other's, which gradients do
            not reach, and of differences (DeBERTaV3's sharing).
        padding_id: The token id that is padding where inputs have no `padding_mask`.

    Example:

    >>> import numpy as np
    >>> from keras_corrupt.encoders import TransformerEncoder
    >>> encoder = TransformerEncoder(
    ...     vocabulary_size=100, num_layers=2, hidden_size=16,
    ...     intermediate_size=32, num_heads=2, max_length=8)
    >>> ids = np.array([[2, 7, 9, 3, 0]], "int32")
    >>> hidden = encoder({"token_ids": ids, "segment_ids": 0 * ids,
    ...                   "padding_mask": (ids != 0).astype("int32")})
    >>> tuple(hidden.shape)
    (1, 5, 16)
    """

    def __init__(
        self,
        vocabulary_size,
        num_layers,
        hidden_size,
        intermediate_size,
        num_heads,
        embedding_size=None,
        max_length=512,
        num_segments=2,
        dropout=0.1,
        attention_dropout=0.1,
        initializer_range=0.02,
        approximate_gelu=False,
        remat="none",
        attention="bidirectional",
        relative_positions=None,
        layer_norm_epsilon=1e-12,
        tied_to=None,
        tied_parts=("token", "position"),
        tied_layers=0,
        disentangled=False,
        padding_id=0,
        **kwargs,
    ):
        super().__init__(**kwargs)
        if hidden_size % num_heads:
            raise ValueError(
                f"`num_heads` must divide `hidden_size`; got num_heads={num_heads}, "
                f"hidden_size={hidden_size}."
            )
        if attention not in MASKS:
            raise ValueError(
                f"`attention` must be one of {sorted(MASKS)}; got {attention!r}."
            )
        if remat not in REMAT:
            raise ValueError(f"`remat` must be one of {REMAT}; got {remat!r}.")
        if isinstance(layer_norm_epsilon, str) or not 0 < layer_norm_epsilon < 1:
            raise ValueError(
                "`layer_norm_epsilon` must be greater than 0 and less than 1; got "
                f"{layer_norm_epsilon!r}."
            )
        rates = {"dropout": dropout, "attention_dropout": attention_dropout}
        for name, rate in rates.items():
            if isinstance(rate, str) or not 0 <= rate < 1:
                raise ValueError(
                    f"`{name}` must be at least 0 and less than 1; got {rate!r}."
                )
        available = min(num_layers, tied_to.num_layers) if tied_to is not None else 0
        if not 0 <= tied_layers <= available:
            raise ValueError(
                f"`tied_layers` must be from 0 to {available}, the layers that this "
                f"encoder and `tied_to` both have; got {tied_layers}."
            )
        if tied_layers and tied_to.hidden_size != hidden_size:
            raise ValueError(
                "`tied_layers` are of one width; got encoders of hidden_size="
                f"{hidden_size} and {tied_to.hidden_size}."
            )
        embedding_size = embedding_size or hidden_size

        # === Layers ===
        self.embeddings = TextEmbeddings(
            vocabulary_size,
            embedding_size,
            max_length,
            num_segments,
            dropout,
            initializer_range,
            tied_to=tied_to.embeddings if tied_to is not None else None,
            tied_parts=tied_parts,
            disentangled=disentangled,
            layer_norm_epsilon=layer_norm_epsilon,
            dtype=self.dtype_policy,
            name="embeddings",
        )
        self.embedding_projection = None
        if tied_to is not None and "projection" in tied_parts:
            self.embedding_projection = tied_to.embedding_projection
        elif embedding_size != hidden_size:
            self.embedding_projection = Dense(
                hidden_size,
                kernel_initializer=initializer(initializer_range),
                dtype=self.dtype_policy,
                name="embedding_projection",
            )
        self.position_bias = None
        if tied_to is not None and "position_bias" in tied_parts:
            theirs = tied_to.relative_positions, tied_to.num_heads
            if theirs != (relative_positions, num_heads):
                raise ValueError(
                    '`tied_parts` has "position_bias", so `relative_positions` and '
                    f"`num_heads` must be those of `tied_to`, {theirs}; got "
                    f"{(relative_positions, num_heads)}."
                )
            self.position_bias = tied_to.position_bias
        elif relative_positions is not None:
            self.position_bias = RelativePositionBias(
                **relative_positions,
                num_heads=num_heads,
                initializer_range=initializer_range,
                dtype=self.dtype_policy,
                name="position_bias",
            )
        tied = tied_to.layers_[:tied_layers] if tied_layers else []
        self.layers_ = tied + [
            TransformerLayer(
                hidden_size,
                intermediate_size,
                num_heads,
                dropout,
                attention_dropout,
                initializer_range,
                approximate_gelu,
                remat,
                layer_norm_epsilon,
                dtype=self.dtype_policy,
                name=f"layer_{i}",
            )
            for i in range(tied_layers, num_layers)
        ]

        # === Config ===
        self.vocabulary_size = vocabulary_size
        self.num_layers = num_layers
        self.hidden_size = hidden_size
        self.intermediate_size = intermediate_size
        self.num_heads = num_heads
        self.embedding_size = embedding_size
        self.max_length = max_length
        self.num_segments = num_segments
        self.dropout = dropout
        self.attention_dropout = attention_dropout
        self.initializer_range = initializer_range
        self.approximate_gelu = approximate_gelu
        self.remat = remat
        self.attention = attention
        self.relative_positions = relative_positions
        self.layer_norm_epsilon = layer_norm_epsilon
        self.padding_id = padding_id

        self.build((None, None))

    def build(self, input_shape=None):
        self.embeddings.build((None, None))
        projection = self.embedding_projection
        if projection is not None and not projection.built:
            projection.build((None, None, self.embedding_size))
        if self.position_bias is not None and not self.position_bias.built:
            self.position_bias.build()
        for layer in self.layers_:
            if not layer.built:
                layer.build((None, None, self.hidden_size))
        self.built = True

    def compute_output_shape(self, input_shape):
        shape = input_shape
        if isinstance(shape, dict):
            shape = shape["token_ids"]
        return (*shape, self.hidden_size)

    def call(self, inputs, training=False):
        """Encodes a batch.

        Args:
            inputs: A dict of int32 `[batch, length]` arrays: `token_ids`,
                `segment_ids`, `padding_mask` (1 for tokens, 0 for padding). Also
                `token_ids` alone, or what else `text_inputs` reads.
            training: Whether dropout is active.

        Returns:
            `[batch, length, hidden_size]`, the last layer's output.
        """
        inputs = self.text_inputs(inputs)
        return self.transform(self.embed(inputs, training), inputs, training)

    def embed(self, inputs, training=False):
        """Returns the first layer's input, `[batch, length, hidden_size]`."""
        length = inputs["token_ids"].shape[1]
        if isinstance(length, int) and length > self.max_length:
            raise ValueError(
                f"The encoder has `max_length={self.max_length}` positions, but "
                f"`token_ids` has length {length}. Cut the sequences, or make an "
                "encoder with a larger `max_length`."
            )
        x = self.embeddings(
            inputs["token_ids"], inputs["segment_ids"], training=training
        )
        if self.embedding_projection is not None:
            x = self.embedding_projection(x)
        return x

    def transform(self, x, inputs, training=False, attention=None):
        """Runs the layers.

        Args:
            x: `[batch, length, hidden_size]`, what `embed` returned.
            inputs: What `text_inputs` returned.
            training: Whether dropout is active.
            attention: A key of `MASKS`; the encoder's own if not given.

        Returns:
            `[batch, length, hidden_size]`, the last layer's output.
        """
        mask = self.attention_mask(inputs, attention)
        bias = self.attention_bias(inputs)
        for layer in self.layers_:
            x = layer(x, mask, bias, training=training)
        return x

    def attention_mask(self, inputs, attention=None):
        """Returns the mask of every layer, broadcastable as `SelfAttention` has it."""
        return MASKS[attention or self.attention](inputs["padding_mask"])

    def attention_bias(self, inputs):
        """Returns the bias of every layer's attention logits, or `None`."""
        if self.position_bias is None:
            return None
        return self.position_bias(length=ops.shape(inputs["token_ids"])[1])

    # === What it costs ===

    def flops(self, length, training=False):
        """Counts embeddings and layers, by the rules of `encoders/cost.py`.

        Args:
            length: Int. Tokens in the sequence.
            training: Bool. Whether dropout runs.

        Returns:
            Int. FLOPs of one sequence, forward.

        Raises:
            ValueError: `length` is outside the encoder's range.
        """
        if not 1 <= length <= self.max_length:
            raise ValueError(
                f"`length` must be from 1 to the encoder's `max_length`, "
                f"{self.max_length}. Received: length={length}. "
                "Shorten the sequences or raise `max_length`."
            )
        total = self.embeddings.flops(length, training)
        if self.embedding_projection is not None:
            total += length * self.embedding_projection.flops()
        has_bias = self.position_bias is not None
        return total + sum(x.flops(length, has_bias, training) for x in self.layers_)

    def activation_bytes(self, batch_size, length, number_bytes):
        """Counts what a training step needs at its peak, weights aside.

        Args:
            batch_size: Int. Sequences.
            length: Int. Tokens of a sequence.
            number_bytes: Int. Bytes of a number: 4, or 2 in mixed precision.

        Returns:
            Int. Bytes.
        """
        sizes = batch_size, length, number_bytes
        total = self.embeddings.activation_bytes(batch_size, length)
        total += sum(layer.activation_bytes(*sizes) for layer in self.layers_)
        total += max((x.backward_bytes(*sizes) for x in self.layers_), default=0)
        if self.position_bias is not None:
            total += self.position_bias.activation_bytes(length)
        return total

    # === Config ===

    @property
    def has_dropout(self):
        """Whether training draws any dropout."""
        return bool(self.dropout or self.attention_dropout)

    @property
    def architecture(self):
        """The constructor arguments that say what the encoder computes, a dict."""
        return {
            "vocabulary_size": self.vocabulary_size,
            "num_layers": self.num_layers,
            "hidden_size": self.hidden_size,
            "intermediate_size": self.intermediate_size,
            "num_heads": self.num_heads,
            "embedding_size": self.embedding_size,
            "max_length": self.max_length,
            "num_segments": self.num_segments,
            "dropout": self.dropout,
            "attention_dropout": self.attention_dropout,
            "initializer_range": self.initializer_range,
            "approximate_gelu": self.approximate_gelu,
            "remat": self.remat,
            "attention": self.attention,
            "relative_positions": self.relative_positions,
            "layer_norm_epsilon": self.layer_norm_epsilon,
            "padding_id": self.padding_id,
        }

    def get_config(self):
        self.refuse_quantized()
        identity = {"name": self.name, "dtype": self.dtype_policy.name}
        return {**self.architecture, **identity}
