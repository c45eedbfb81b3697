"""TEAMS's discriminator: two tasks on top of common layers."""

from keras_corrupt.encoders import TransformerEncoder
from keras_corrupt.models.replaced_token_detection.generator_discriminator import (
    Discriminator,
)
from keras_corrupt.models.teams.selection_head import MultiWordSelectionHead

#: All parts of an encoder but its layers: what TEAMS's encoders share.
EMBEDDING_PARTS = (
    "token",
    "position",
    "segment",
    "norm",
    "projection",
    "position_bias",
)


class MultiTaskDiscriminator(Discriminator):
    """Two encoders that part below their top layers, each with a task's head.

    The upper layers are the tasks' attention heads (Shen et al., 2021, 3.2):
    `encoder` is the path of multi-word selection, `rtd_encoder` that of replaced
    token detection.

    Args:
        encoder: Constructor arguments of `TransformerEncoder`.
        task_layers: Number of upper layers that each task has to itself.
    """

    def __init__(self, encoder, task_layers, **kwargs):
        super().__init__(encoder, **kwargs)
        num_layers = self.encoder.num_layers
        if task_layers not in range(num_layers + 1):
            raise ValueError(
                f"`task_layers` must be from 0 to {num_layers}, the discriminator's "
                f"layers; got {task_layers!r}."
            )
        self.rtd_encoder = TransformerEncoder(
            **self.encoder.architecture,
            tied_to=self.encoder,
            tied_parts=EMBEDDING_PARTS,
            tied_layers=num_layers - task_layers,
            dtype=self.dtype_policy,
            name="rtd_encoder",
        )
        self.selection_head = MultiWordSelectionHead(
            self.encoder, dtype=self.dtype_policy, name="selection_head"
        )
        self.task_layers = task_layers

    def call(self, inputs, training=False):
        """Returns float32 `[batch, length]`, the logits of "replaced"."""
        return self.head(self.rtd_encoder(inputs, training=training))

    def both_tasks(self, inputs, positions, candidate_ids, training=False):
        """Runs the common layers once, then both tasks' layers and heads.

        Args:
            inputs: The encoder's inputs.
            positions: int32 `[batch, masked]`.
            candidate_ids: int32 `[batch, masked, candidates]`.
            training: Whether dropout is active.

        Returns:
            float32 logits of "replaced", `[batch, length]`, and of the candidates,
            `[batch, masked, candidates]`.
        """
        mask = self.encoder.attention_mask(inputs)
        bias = self.encoder.attention_bias(inputs)
        x = self.encoder.embed(inputs, training=training)
        common = self.encoder.num_layers - self.task_layers
        for layer in self.encoder.layers_[:common]:
            x = layer(x, mask, bias, training=training)
        selection, detection = x, x
        for layer in self.encoder.layers_[common:]:
            selection = layer(selection, mask, bias, training=training)
        for layer in self.rtd_encoder.layers_[common:]:
            detection = layer(detection, mask, bias, training=training)
        return (
            self.head(detection),
            self.selection_head(selection, positions, candidate_ids),
        )

    # === What it costs: both tasks, whose common layers run once ===

    @property
    def own_layers(self):
        """The layers that replaced token detection has to itself."""
        return self.rtd_encoder.layers_[self.encoder.num_layers - self.task_layers :]

    def flops(self, length, num_masked=0, training=False):
        """Counts all but the selection head."""
        arguments = length, self.encoder.position_bias is not None, training
        own = sum(layer.flops(*arguments) for layer in self.own_layers)
        return own + super().flops(length, num_masked, training)

    def activation_bytes(self, batch_size, length, num_masked, number_bytes):
        sizes = batch_size, length, number_bytes
        own = sum(layer.activation_bytes(*sizes) for layer in self.own_layers)
        return own + self.encoder.activation_bytes(*sizes)
