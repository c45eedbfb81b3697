"""A Transformer encoder: BERT's, or one with ModernBERT's parts in place of BERT's."""

import inspect

import keras
from keras import ops

from keras_corrupt.encoders.checks import check_architecture, check_tied
from keras_corrupt.encoders.cost import norm_flops
from keras_corrupt.encoders.dense import Dense
from keras_corrupt.encoders.embeddings import TextEmbeddings, initializer, layer_norm
from keras_corrupt.encoders.masks import MASKS, within_texts
from keras_corrupt.encoders.position_bias import RelativePositionBias
from keras_corrupt.encoders.pre_norm_layer import PreNormTransformerLayer
from keras_corrupt.encoders.text_model import TEXT_IDS, TextModel
from keras_corrupt.encoders.transformer_layer import TransformerLayer

#: `norm` -> class of a layer.
LAYERS = {"post": TransformerLayer, "pre": PreNormTransformerLayer}
#: Arguments of the constructor that say what the encoder shares, not what it is.
TIES = "tied_to", "tied_parts", "tied_layers", "disentangled"


@keras.saving.register_keras_serializable(package="keras_corrupt")
class TransformerEncoder(TextModel):
    """A Transformer over token ids.

    With `embedding_size` unlike `hidden_size` a linear layer maps the embeddings to
    the hidden size, as ELECTRA-Small and every small generator do.

    The defaults are BERT's. ModernBERT (Warner et al., 2024) has
    `positions="rotary"`, `norm="pre"`, `feed_forward="geglu"`, `use_bias=False`,
    `local_window=128` and `num_segments=0`.

    The weights exist once the constructor returns. `embed`, `attention_mask`,
    `attention_bias`, `layers_` and `finish` are there for objectives that run only
    some of the layers.

    Args:
        vocabulary_size: Number of token ids.
        num_layers: Number of Transformer layers.
        hidden_size: Width of the layers.
        intermediate_size: Width inside the feed-forward networks.
        num_heads: Number of attention heads; divides `hidden_size`.
        embedding_size: Width of the embeddings; `hidden_size` if not given.
        max_length: Number of positions, the longest sequence it can read.
        num_segments: Number of segment ids; 0 if they play no part.
        dropout: Dropout rate of the embeddings and of the sub-layers.
        attention_dropout: Dropout rate of the attention probabilities. For kernels that
            need no array of `[length, length]`, see `docs/devices.md`.
        initializer_range: Standard deviation of the initial weights.
        approximate_gelu: Whether the activation is gelu's tanh approximation, as in
            KerasHub, and not gelu itself, as in the released ELECTRA and in Hugging
            Face.
        remat: What a training step computes again in its backward pass, to keep less
            for it (Chen et al., 2016): `"none"`; `"attention"`, all of a layer but
            its products with weights, which costs some percent more operations; or
            the whole `"layer"`, a third more. The CPU kernels, which keep little,
            take no notice of it.
        attention: What a position sees: `"bidirectional"`, all tokens;
            `"left_to_right"`, itself and the tokens before it, or `"right_to_left"`,
            itself and those after it, as the two towers of Electric's generator do
            (Clark's thesis, 5.1.5).
        relative_positions: `None`, or `num_buckets` and `max_distance` of a
            `RelativePositionBias`, beside the `positions`, and `rounds_up`, if it does.
        layer_norm_epsilon: Added to the variance by which a vector is normalised:
            1e-12 in BERT and ELECTRA, 1e-5 in what PyTorch's default made.
        positions: `"learned"`, a table that is added to the embeddings, or `"rotary"`,
            `RotaryPositions` in every layer and no table.
        rotary_theta: Base of rotary positions: 10000 in their paper, 160000 in
            ModernBERT.
        local_rotary_theta: Base of rotary positions in layers with a window.
        norm: `"post"`, the sums of each sub-layer's input and output are normalised, or
            `"pre"`, what sub-layers read, and the last layer's output. The first layer
            then reads the embeddings, which are normalised already.
        feed_forward: `"gelu"`, or a gated linear unit, `"geglu"` or `"swiglu"`
            (Shazeer, 2020), whose inner matrix is twice as wide.
        use_bias: Whether dense layers and layer norms have biases. Heads always do.
        local_window: `None`, or an even number of tokens: half of them to either side
            are all that a token sees in some of the layers.
        global_every: With a window, layers 0, `global_every`, 2 `global_every`, ... see
            all tokens.
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
        positions="learned",
        rotary_theta=160_000.0,
        local_rotary_theta=10_000.0,
        norm="post",
        feed_forward="gelu",
        use_bias=True,
        local_window=None,
        global_every=3,
        tied_to=None,
        tied_parts=("token", "position"),
        tied_layers=0,
        disentangled=False,
        padding_id=0,
        **kwargs,
    ):
        super().__init__(**kwargs)

        # === Config ===
        self.vocabulary_size = vocabulary_size
        self.num_layers = num_layers
        self.hidden_size = hidden_size
        self.intermediate_size = intermediate_size
        self.num_heads = num_heads
        self.embedding_size = embedding_size or hidden_size
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
        self.positions = positions
        self.rotary_theta = rotary_theta
        self.local_rotary_theta = local_rotary_theta
        self.norm = norm
        self.feed_forward = feed_forward
        self.use_bias = use_bias
        self.local_window = local_window
        self.global_every = global_every
        self.padding_id = padding_id
        check_architecture(self.architecture)
        check_tied(self.architecture, tied_to, tied_parts, tied_layers)

        # === Layers ===
        self.embeddings = TextEmbeddings(
            vocabulary_size,
            self.embedding_size,
            max_length,
            num_segments,
            dropout,
            initializer_range,
            tied_to=tied_to.embeddings if tied_to is not None else None,
            tied_parts=tied_parts,
            disentangled=disentangled,
            layer_norm_epsilon=layer_norm_epsilon,
            has_positions=positions == "learned",
            use_bias=use_bias,
            dtype=self.dtype_policy,
            name="embeddings",
        )
        self.embedding_projection = None
        if tied_to is not None and "projection" in tied_parts:
            self.embedding_projection = tied_to.embedding_projection
        elif self.embedding_size != hidden_size:
            self.embedding_projection = Dense(
                hidden_size,
                use_bias=use_bias,
                kernel_initializer=initializer(initializer_range),
                dtype=self.dtype_policy,
                name="embedding_projection",
            )
        self.position_bias = None
        if tied_to is not None and "position_bias" in tied_parts:
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
        self.layers_ = tied + [self._layer(i) for i in range(tied_layers, num_layers)]
        self.final_norm = None
        if tied_layers and tied_layers == num_layers == tied_to.num_layers:
            self.final_norm = tied_to.final_norm  # It belongs to the top layer.
        elif norm == "pre":
            self.final_norm = layer_norm(
                "final_norm", layer_norm_epsilon, use_bias, self.dtype_policy
            )

        self.build((None, None))

    def _layer(self, number):
        """Returns a new layer; the number tells what the layer sees."""
        is_local = self.local_window is not None and number % self.global_every > 0
        theta = self.local_rotary_theta if is_local else self.rotary_theta
        return LAYERS[self.norm](
            self.hidden_size,
            self.intermediate_size,
            self.num_heads,
            self.dropout,
            self.attention_dropout,
            self.initializer_range,
            self.approximate_gelu,
            self.remat,
            self.layer_norm_epsilon,
            self.feed_forward,
            self.use_bias,
            rotary_theta=theta if self.positions == "rotary" else None,
            window=self.local_window if is_local else None,
            has_attention_norm=self.norm == "post" or number > 0,
            dtype=self.dtype_policy,
            name=f"layer_{number}",
        )

    def build(self, input_shape=None):
        self.embeddings.build((None, None))
        projection = self.embedding_projection
        if projection is not None and not projection.built:
            projection.build((None, None, self.embedding_size))
        if self.position_bias is not None and not self.position_bias.built:
            self.position_bias.build()
        for layer in (*self.layers_, self.final_norm):
            if layer is not None and not layer.built:
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
                `token_ids` alone, or what else `text_inputs` reads. With `text_ids`
                a row holds several texts, and each is encoded as if it stood alone.
            training: Whether dropout is active.

        Returns:
            `[batch, length, hidden_size]`.
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
        ids = inputs["token_ids"], inputs["segment_ids"], inputs.get(TEXT_IDS)
        x = self.embeddings(*ids, training=training)
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
            `[batch, length, hidden_size]`, the encoder's output.
        """
        mask = self.attention_mask(inputs, attention)
        bias = self.attention_bias(inputs)
        for layer in self.layers_:
            x = layer(x, mask, bias, training=training)
        return self.finish(x)

    def finish(self, x):
        """Returns the encoder's output, of the last layer's."""
        return x if self.final_norm is None else self.final_norm(x)

    def attention_mask(self, inputs, attention=None):
        """Returns the mask of every layer, broadcastable as `SelfAttention` has it."""
        mask = MASKS[attention or self.attention](inputs["padding_mask"])
        texts = inputs.get(TEXT_IDS)
        return mask if texts is None else within_texts(mask, texts)

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
                f"`length` must be from 1 to max_length={self.max_length}; got "
                f"length={length}. Shorten the sequences or raise `max_length`."
            )
        total = self.embeddings.flops(length, training)
        if self.embedding_projection is not None:
            total += length * self.embedding_projection.flops()
        total += self.finish_flops(length)
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
        total += self.finish_bytes(*sizes)
        total += max((x.backward_bytes(*sizes) for x in self.layers_), default=0)
        if self.position_bias is not None:
            total += self.position_bias.activation_bytes(length)
        return total

    def finish_flops(self, length):
        """Counts `finish` for one sequence, forward."""
        norms = [] if self.final_norm is None else [self.final_norm]
        return length * self.hidden_size * sum(map(norm_flops, norms))

    def finish_bytes(self, batch_size, length, number_bytes):
        """Counts what `finish` keeps: its output, and the normalised input."""
        arrays = 0 if self.final_norm is None else 2
        return arrays * batch_size * length * self.hidden_size * number_bytes

    # === Config ===

    @property
    def has_dropout(self):
        """Whether training draws any dropout."""
        return bool(self.dropout or self.attention_dropout)

    @property
    def architecture(self):
        """The constructor arguments that say what the encoder computes, a dict."""
        names = inspect.signature(TransformerEncoder).parameters
        return {n: getattr(self, n) for n in names if n not in (*TIES, "kwargs")}

    def get_config(self):
        self.refuse_quantized()
        return self.architecture | {"name": self.name, "dtype": self.dtype_policy.name}
