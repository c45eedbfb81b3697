"""TEAMS: ELECTRA augmented with multi-word selection."""

import keras
from keras import ops

from keras_corrupt.corruption import hardest_negatives, sample_negatives
from keras_corrupt.encoders import TransformerEncoder
from keras_corrupt.heads.multi_word_selection import MultiWordSelectionHead
from keras_corrupt.models.generator_discriminator import GeneratorDiscriminator
from keras_corrupt.models.networks import Discriminator, MaskedLMNetwork
from keras_corrupt.models.sizes import ENCODERS
from keras_corrupt.models.teams_fine_tuning import search_space, settings
from keras_corrupt.objectives.loss import check_weight
from keras_corrupt.objectives.masked_tokens import MaskedTokens
from keras_corrupt.objectives.multi_word_selection import MultiWordSelection, Selections
from keras_corrupt.objectives.replaced_tokens import Detections, ReplacedTokens

#: Sizes: Shen et al., 2021, table 5 (`tiny` is ours). The discriminators are ELECTRA's;
#: the generator has half as many layers, of the same width.
PRESETS = {
    name: {
        "discriminator": encoder,
        # In `tiny` not half of two layers, but both, so that half of the generator's
        # is one of them.
        "generator_layers": 2 if name == "tiny" else encoder["num_layers"] // 2,
        "mask_rate": 0.15,
    }
    for name, encoder in ENCODERS.items()
}


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
    `encoder` is the path of multi-word selection, `rtd_encoder` the path of replaced
    token detection.

    Args:
        encoder: A `TransformerEncoder`, or its constructor arguments.
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
            self.head(self.rtd_encoder.finish(detection)),
            self.selection_head(
                self.encoder.finish(selection), positions, candidate_ids
            ),
        )

    @property
    def own_layers(self):
        """The layers that replaced token detection has to itself."""
        return self.rtd_encoder.layers_[self.encoder.num_layers - self.task_layers :]

    def flops(self, length, num_masked=0, training=False):
        """Counts all but the selection head; common layers run once."""
        arguments = length, self.encoder.position_bias is not None, training
        own = sum(layer.flops(*arguments) for layer in self.own_layers)
        if self.own_layers:
            own += self.rtd_encoder.finish_flops(length)
        return own + super().flops(length, num_masked, training)

    def activation_bytes(self, batch_size, length, num_masked, number_bytes):
        sizes = batch_size, length, number_bytes
        own = sum(layer.activation_bytes(*sizes) for layer in self.own_layers)
        if self.own_layers:
            own += self.rtd_encoder.finish_bytes(*sizes)
        return own + self.encoder.activation_bytes(*sizes)


@keras.saving.register_keras_serializable(package="keras_corrupt")
class Teams(GeneratorDiscriminator):
    """Pretrains a discriminator that detects replaced tokens and selects originals.

    Shen et al., "Training ELECTRA Augmented with Multi-word Selection", 2021. As in
    ELECTRA, a generator fills masked positions with samples and the discriminator
    tells for every token whether it was replaced. At the masked positions it also
    selects the original token from a set with K others that the generator finds
    likely. Each task has upper layers of its own, and the generator's lower layers
    are the discriminator's.

    Inputs are as for `MaskedLM`.

    Args:
        discriminator: The discriminator's `TransformerEncoder`, or its constructor
            arguments.
        generator_layers: Number of layers of the generator, which is otherwise as the
            discriminator and shares its embeddings.
        mask_rate: Fraction of tokens to mask.
        num_negatives: K, the candidates beside the original token.
        candidates: `"sampled"` from the generator's distribution without replacement,
            or `"hardest"`, its likeliest tokens (figure 5).
        tied_layers: Which of the generator's layers are the discriminator's: the
            bottom `"half"`, `"none"` or `"all"` (table 4).
        task_layers: Layers that each task has to itself. With 0 its head is a
            feed-forward network alone (table 3).
        exported: The task whose layers `encoder` has: `"mws"` or `"rtd"` (table 3).
        rtd_weight: Weight of replaced token detection; 0 for multi-word selection
            only (table 2).
        mws_weight: Weight of multi-word selection; 0 for replaced token detection
            only.
        keep_rate: Fraction of the chosen positions that keep their token in the
            generator's input.
        temperature: By what the logits are divided before tokens are drawn from their
            softmax: above 1, the generator is a weaker one (thesis, 5.5).
        exclude_original: Whether the original token is never drawn (5.5).
        kwargs: Arguments of `Pretrainer`.

    Example:

    >>> import numpy as np
    >>> import keras_corrupt
    >>> model = keras_corrupt.models.Teams.from_preset("tiny")
    >>> ids = np.array([[101] + [7] * 30 + [102]], "int32")
    >>> outputs = model({"token_ids": ids, "segment_ids": 0 * ids,
    ...                  "padding_mask": 1 + 0 * ids})
    >>> tuple(outputs["mws"].logits.shape)  # five masked positions, six candidates
    (1, 5, 6)
    """

    presets = PRESETS
    network_arguments = {"discriminator": TransformerEncoder}
    fine_tuning = staticmethod(settings)
    fine_tuning_search = staticmethod(search_space)

    def __init__(
        self,
        discriminator,
        generator_layers,
        mask_rate=0.15,
        num_negatives=5,
        candidates="sampled",
        tied_layers="half",
        task_layers=1,
        exported="mws",
        rtd_weight=5.0,
        mws_weight=2.0,
        keep_rate=0.0,
        temperature=1.0,
        exclude_original=False,
        **kwargs,
    ):
        super().__init__(discriminator, mask_rate=mask_rate, **kwargs)
        for name, value, choices in (
            ("candidates", candidates, ("sampled", "hardest")),
            ("tied_layers", tied_layers, ("half", "none", "all")),
            ("exported", exported, ("mws", "rtd")),
        ):
            if value not in choices:
                raise ValueError(f"`{name}` must be one of {choices}; got {value!r}.")
        if num_negatives not in range(1, self.vocabulary_size):
            raise ValueError(
                "`num_negatives` must be a number from 1 to less than vocabulary_size="
                f"{self.vocabulary_size}; got {num_negatives!r}."
            )
        check_weight("rtd_weight", rtd_weight)
        check_weight("mws_weight", mws_weight)
        self.discriminator = MultiTaskDiscriminator(
            self.with_padding(discriminator),
            task_layers,
            dtype=self.dtype_policy,
            name="discriminator",
        )
        shared = self.discriminator.encoder
        tied = {"half": generator_layers // 2, "none": 0, "all": generator_layers}
        self.generator = MaskedLMNetwork(
            {
                **shared.architecture,
                "num_layers": generator_layers,
                "tied_to": shared,
                "tied_parts": EMBEDDING_PARTS,
                "tied_layers": tied[tied_layers],
            },
            dtype=self.dtype_policy,
            name="generator",
        )
        self.corrupter = self.masked_lm_corrupter(
            keep_rate, temperature, exclude_original
        )
        self.generator_layers = generator_layers
        self.num_negatives = num_negatives
        self.candidates = candidates
        self.tied_layers = tied_layers
        self.task_layers = task_layers
        self.exported = exported
        self.learn_by(
            mlm=MaskedTokens(network="generator"),
            rtd=ReplacedTokens(weight=rtd_weight),
            mws=MultiWordSelection(num_negatives + 1, weight=mws_weight),
        )

    @property
    def encoder(self):
        if self.exported == "mws":
            return self.discriminator.encoder
        return self.discriminator.rtd_encoder

    def call(self, inputs, training=False):
        inputs = self.text_inputs(inputs, training)
        corrupted, predictions = self.corrupter.corrupt(inputs, training)
        candidate_ids = self.candidate_ids(predictions)
        rtd_logits, mws_logits = self.discriminator.both_tasks(
            {**inputs, "token_ids": corrupted.token_ids},
            corrupted.masking.positions,
            candidate_ids,
            training=training,
        )
        detections = Detections(rtd_logits, corrupted.replaced, inputs["padding_mask"])
        return {
            "corrupted": corrupted,
            "mlm": predictions,
            "rtd": detections,
            "mws": Selections(candidate_ids, mws_logits),
        }

    def candidate_ids(self, predictions):
        """Returns S_t, the original token first: int32 `[batch, masked, candidates]`.

        Args:
            predictions: The generator's `Predictions`.
        """
        logits, target_ids = predictions.logits, predictions.target_ids
        if self.candidates == "sampled":
            negatives = sample_negatives(
                logits, target_ids, self.num_negatives, self.seed_generator
            )
        else:
            negatives = hardest_negatives(logits, target_ids, self.num_negatives)
        return ops.concatenate([target_ids[..., None], negatives], axis=-1)

    # === What a step costs ===

    def forward_flops(self, length):
        sizes = self.masker.num_masked(length), self.num_negatives + 1
        selection = self.discriminator.selection_head.flops(*sizes)
        return selection + super().forward_flops(length)

    def get_config(self):
        return {
            **super().get_config(),
            **self.corrupter.options,
            "generator_layers": self.generator_layers,
            "num_negatives": self.num_negatives,
            "candidates": self.candidates,
            "tied_layers": self.tied_layers,
            "task_layers": self.task_layers,
            "exported": self.exported,
            "rtd_weight": self.objectives["rtd"].weight,
            "mws_weight": self.objectives["mws"].weight,
        }
