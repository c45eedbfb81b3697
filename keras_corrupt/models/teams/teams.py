"""TEAMS: ELECTRA augmented with multi-word selection."""

import keras
from keras import ops

from keras_corrupt.corruption import hardest_negatives, sample_negatives
from keras_corrupt.models.loss import check_weight
from keras_corrupt.models.masked_lm.masked_lm import MaskedLMNetwork
from keras_corrupt.models.replaced_token_detection.generator_discriminator import (
    ReplacedTokenDetection,
)
from keras_corrupt.models.teams import objective
from keras_corrupt.models.teams.fine_tuning import search_space, settings
from keras_corrupt.models.teams.heads import EMBEDDING_PARTS, MultiTaskDiscriminator
from keras_corrupt.models.teams.presets import PRESETS


@keras.saving.register_keras_serializable(package="keras_corrupt")
class Teams(ReplacedTokenDetection):
    """Pretrains a discriminator that detects replaced tokens and selects originals.

    Shen et al., "Training ELECTRA Augmented with Multi-word Selection", 2021. As in
    ELECTRA, a generator fills masked positions with samples and the discriminator
    tells for every token whether it was replaced. At the masked positions it also
    selects the original token from a set with K others that the generator finds
    likely. Each task has upper layers of its own, and the generator's lower layers
    are the discriminator's.

    Inputs are as for `MaskedLM`.

    Args:
        discriminator: Constructor arguments of the discriminator's
            `TransformerEncoder`.
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
        kwargs: Those of `ReplacedTokenDetection`.

    Example:

    >>> import numpy as np
    >>> import keras_corrupt
    >>> model = keras_corrupt.models.Teams.from_preset("tiny")
    >>> ids = np.array([[101] + [7] * 30 + [102]], "int32")
    >>> outputs = model({"token_ids": ids, "segment_ids": 0 * ids,
    ...                  "padding_mask": 1 + 0 * ids})
    >>> tuple(outputs["mws_logits"].shape)  # five masked positions, six candidates
    (1, 5, 6)
    """

    presets = PRESETS
    loss_weights = {"mlm": 1.0, "rtd": 5.0, "mws": 2.0}
    metric_names = {
        **ReplacedTokenDetection.metric_names,
        "mws_accuracy": "multi-word selection accuracy",
    }
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
        **kwargs,
    ):
        super().__init__(discriminator, mask_rate=mask_rate, **kwargs)
        for name, value, known in (
            ("candidates", candidates, ("sampled", "hardest")),
            ("tied_layers", tied_layers, ("half", "none", "all")),
            ("exported", exported, ("mws", "rtd")),
        ):
            if value not in known:
                raise ValueError(f"`{name}` must be one of {known}; got {value!r}.")
        if num_negatives not in range(1, self.vocabulary_size):
            raise ValueError(
                "`num_negatives` must be a number from 1 to less than vocabulary_size="
                f"{self.vocabulary_size}; got {num_negatives!r}."
            )
        check_weight("rtd_weight", rtd_weight)
        check_weight("mws_weight", mws_weight)

        # === Layers ===
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
        self.selection_accuracy = keras.metrics.Mean(name="mws_accuracy")

        # === Config ===
        self.loss_weights = {"mlm": 1.0, "rtd": rtd_weight, "mws": mws_weight}
        self.rtd_weight = rtd_weight
        self.mws_weight = mws_weight
        self.generator_layers = generator_layers
        self.num_negatives = num_negatives
        self.candidates = candidates
        self.tied_layers = tied_layers
        self.task_layers = task_layers
        self.exported = exported
        self.built = True

    @property
    def encoder(self):
        if self.exported == "mws":
            return self.discriminator.encoder
        return self.discriminator.rtd_encoder

    def call(self, inputs, training=False):
        inputs = self.text_inputs(inputs, training)
        outputs = self.corrupt(inputs, training)
        logits, target_ids = outputs["mlm_logits"], outputs["target_ids"]
        if self.candidates == "sampled":
            negatives = sample_negatives(
                logits, target_ids, self.num_negatives, self.seed_generator
            )
        else:
            negatives = hardest_negatives(logits, target_ids, self.num_negatives)
        candidate_ids = ops.concatenate([target_ids[..., None], negatives], axis=-1)
        rtd_logits, mws_logits = self.discriminator.both_tasks(
            {**inputs, "token_ids": outputs["corrupted_ids"]},
            outputs["masked_positions"],
            candidate_ids,
            training=training,
        )
        return {
            **outputs,
            "candidate_ids": candidate_ids,
            "rtd_logits": rtd_logits,
            "mws_logits": mws_logits,
        }

    def loss_terms(self, outputs):
        mws = objective.multi_word_selection_loss(outputs["mws_logits"])
        return {**super().loss_terms(outputs), "mws": (mws, outputs["masked_weights"])}

    def update_metrics(self, outputs):
        super().update_metrics(outputs)
        correct = objective.correct_selections(outputs["mws_logits"])
        self.selection_accuracy.update_state(correct, outputs["masked_weights"])

    # === What a run shows ===

    def baselines(self, metrics, unigram):
        chance = 1 / (self.num_negatives + 1)
        mws = {"mws_accuracy": (chance, "chance")}
        return {**super().baselines(metrics, unigram), **mws}

    # === What a step costs ===

    def forward_flops(self, length):
        sizes = self.num_masked(length), self.num_negatives + 1
        selection = self.discriminator.selection_head.flops(*sizes)
        return selection + super().forward_flops(length)

    def get_config(self):
        return {
            **super().get_config(),
            "generator_layers": self.generator_layers,
            "num_negatives": self.num_negatives,
            "candidates": self.candidates,
            "tied_layers": self.tied_layers,
            "task_layers": self.task_layers,
            "exported": self.exported,
            "rtd_weight": self.rtd_weight,
            "mws_weight": self.mws_weight,
        }
