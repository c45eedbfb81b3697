"""COCO-LM: a network corrects and contrasts text that another one corrupts."""

import keras
from keras import ops

from keras_corrupt.corruption import crop_texts, cropped_length
from keras_corrupt.corruption.corrupters import corrupted, predictions
from keras_corrupt.devices.replicas import first_row_of_replica, gather_from_replicas
from keras_corrupt.heads.softmax import likeliest
from keras_corrupt.models import tied_networks
from keras_corrupt.models.coco_lm_fine_tuning import search_space, settings
from keras_corrupt.models.generator_discriminator import GeneratorDiscriminator
from keras_corrupt.models.generator_sizes import check_shared_sizes
from keras_corrupt.models.networks import (
    CorrectiveDiscriminator,
    masked_lm_generator,
    sizes_of,
)
from keras_corrupt.models.sizes import ENCODERS
from keras_corrupt.objectives import contrastive
from keras_corrupt.objectives.corrective_lm import (
    Copying,
    Corrections,
    CorrectiveLM,
    corrected_tokens,
)
from keras_corrupt.objectives.loss import check_weight
from keras_corrupt.objectives.masked_tokens import MaskedTokens
from keras_corrupt.objectives.replaced_tokens import Detections


def _preset(size, generator_layers, **discriminator):
    return {
        "discriminator": {**ENCODERS[size], **discriminator},
        "generator": {"num_layers": generator_layers},
        "mask_rate": 0.15,
    }


def _relative(num_buckets, max_distance):
    return {"num_buckets": num_buckets, "max_distance": max_distance}


#: Sizes: Meng et al., 2021, section 4 and table 6. The auxiliary networks are as wide
#: as the main ones, and have 1/3 or 1/4 of the layers. `tiny`, with a half, is ours; so
#: are ModernBERT's parts, whose rotary positions take the place of relative ones.
PRESETS = {
    "tiny": _preset("tiny", 1, relative_positions=_relative(32, 128)),
    "base": _preset(
        "base", 4, vocabulary_size=32_768, relative_positions=_relative(32, 128)
    ),
    "base_plus_plus": _preset(
        "base", 4, vocabulary_size=64_000, relative_positions=_relative(64, 128)
    ),
    "large_plus_plus": _preset(
        "large", 6, vocabulary_size=64_000, relative_positions=_relative(128, 256)
    ),
    "modern_tiny": _preset("modern_tiny", 1),
    "modern_base": _preset("modern_base", 7),
}

#: `tied_embeddings` -> the embeddings that are the same variables in both networks.
TIED_PARTS = {name: tied_networks.TIED_PARTS[name] for name in ("token", "all", "none")}


TOKEN_TASKS = (
    *("clm", "rtd", "all_token_lm"),
    *("clm_without_copy", "clm_without_stop_gradient"),
)
SEQUENCE_TASKS = ("scl", "none")
REPLACEMENTS = ("sampled", "random")


@keras.saving.register_keras_serializable(package="keras_corrupt")
class CocoLM(GeneratorDiscriminator):
    """Pretrains a network that corrects corrupted texts and tells texts apart.

    Meng et al., "COCO-LM: Correcting and Contrasting Text Sequences for Language Model
    Pretraining", 2021. As in ELECTRA, an auxiliary network (`generator`) fills masked
    positions with samples; it is as wide as the main one (`discriminator`) and has
    fewer layers, and its dropout is off when samples are drawn. The main network tells
    which tokens are the original ones and restores the others: corrective language
    modelling, CLM. Sequence contrastive learning, SCL, draws the vectors of [CLS] of
    the corrupted text and of a crop of the original towards each other, and away from
    the vectors of all other texts of the batch.

    Special tokens may be masked, too (appendix D). Texts are contrasted in the batch of
    all devices and processes; with `accumulate`, in each of the batches that are
    accumulated, with fewer other texts.

    Inputs are as for `MaskedLM`.

    Args:
        discriminator: The main network's `TransformerEncoder`, or its constructor
            arguments.
            Its `embedding_size` is its `hidden_size`; with `relative_positions` of
            `None`, neither network has any (table 3).
        generator: The auxiliary network's, where they differ: its layers' number;
            ELECTRA's is deeper and narrower (table 3).
        mask_rate: Fraction of tokens to mask.
        token_task: `"clm"`, or of table 3: `"rtd"`, replaced token detection alone;
            `"all_token_lm"`, language modelling at all positions, which learns to copy
            only by that; `"clm_without_copy"`, a softmax that has to predict what was
            not replaced, too, beside replaced token detection;
            `"clm_without_stop_gradient"`.
        sequence_task: `"scl"`, or `"none"`: no crop is made (table 3).
        crop_fraction: Fraction of a text's tokens that a crop keeps: 0.9, and 0.7 to 1
            in ablations.
        replacements: `"sampled"` from the auxiliary network, or `"random"`, uniformly
            from the vocabulary (table 3).
        tied_embeddings: `"token"`: the networks share token embeddings; `"all"`: they
            share all embeddings and their norm, too, as in the released code; or
            `"none"`: an auxiliary network that is frozen (table 3) must not be moved by
            the main one.
        sequence_transform: Whether the vectors of [CLS] pass a linear layer, gelu and
            layer norm before they are contrasted, as in the released code.
        rtd_weight: Weight of replaced token detection, the paper's lambda_copy, in the
            tasks that have it.
        scl_weight: Weight of sequence contrastive learning; with 0 it is measured only.
        unmaskable_ids: Ids never corrupted, if there is no tokenizer to tell padding.
        keep_rate: Fraction of the chosen positions that keep their token in the
            generator's input.
        temperature: By what the logits are divided before tokens are drawn from their
            softmax: above 1, the generator is a weaker one (Clark's thesis, 5.5).
        exclude_original: Whether the original token is never drawn (5.5).
        kwargs: Arguments of `Pretrainer`.

    Raises:
        ValueError: An option is none of those named, or sizes do not fit together.

    Example:

    >>> import numpy as np
    >>> import keras_corrupt
    >>> model = keras_corrupt.models.CocoLM.from_preset("tiny")
    >>> ids = np.array([[101] + [7] * 30 + [102]] * 2, "int32")
    >>> outputs = model({"token_ids": ids, "segment_ids": 0 * ids,
    ...                  "padding_mask": 1 + 0 * ids})
    >>> tuple(outputs["lm"].logits.shape)  # five masked positions
    (2, 5, 8192)
    >>> tuple(outputs["views"].cosines.shape)  # two views of two texts with all views
    (2, 2, 2, 2)
    """

    presets = PRESETS
    unmaskable_roles = ("padding",)
    several_masks = False  # two copies of a text are no two texts to tell apart
    fine_tuning = staticmethod(settings)
    fine_tuning_search = staticmethod(search_space)

    def __init__(
        self,
        discriminator,
        generator,
        mask_rate=0.15,
        token_task="clm",
        sequence_task="scl",
        crop_fraction=0.9,
        replacements="sampled",
        tied_embeddings="token",
        sequence_transform=False,
        rtd_weight=50.0,
        scl_weight=1.0,
        unmaskable_ids=(0,),
        keep_rate=0.0,
        temperature=1.0,
        exclude_original=False,
        **kwargs,
    ):
        super().__init__(
            discriminator, mask_rate=mask_rate, unmaskable_ids=unmaskable_ids, **kwargs
        )
        for name, value, choices in (
            ("token_task", token_task, TOKEN_TASKS),
            ("sequence_task", sequence_task, SEQUENCE_TASKS),
            ("replacements", replacements, REPLACEMENTS),
            ("tied_embeddings", tied_embeddings, tuple(TIED_PARTS)),
        ):
            if value not in choices:
                raise ValueError(f"`{name}` must be one of {choices}; got {value!r}.")
        alters_samples = temperature != 1 or exclude_original
        if replacements == "random" and alters_samples:
            raise ValueError(
                "Random `replacements` are not drawn from the generator: leave out "
                f"`temperature={temperature!r}` and "
                f"`exclude_original={exclude_original!r}`."
            )
        if isinstance(crop_fraction, str) or not 0 < crop_fraction <= 1:
            raise ValueError(
                "`crop_fraction` must be more than 0 and at most 1 (0.9 in the paper); "
                f"got {crop_fraction!r}."
            )
        if sequence_transform and sequence_task == "none":
            raise ValueError(
                "`sequence_transform=True` has nothing to transform with "
                '`sequence_task="none"`; leave one of them out.'
            )
        sizes = sizes_of(discriminator)
        check_shared_sizes(sizes, generator)
        check_weight("rtd_weight", rtd_weight)
        check_weight("scl_weight", scl_weight)
        hidden_size = sizes["hidden_size"]
        embedding_size = sizes.get("embedding_size") or hidden_size
        corrects = token_task != "rtd"
        if corrects and embedding_size != hidden_size:
            raise ValueError(
                f"`discriminator` has embedding_size={embedding_size} and hidden_size="
                f"{hidden_size}; without a layer between its output and the softmax "
                'they must be equal. Set one of them, or `token_task="rtd"`.'
            )
        self.discriminator = CorrectiveDiscriminator(
            self.with_padding(discriminator),
            corrects,
            sequence_transform,
            dtype=self.dtype_policy,
            name="discriminator",
        )
        shared = self.discriminator.encoder
        self.generator = masked_lm_generator(
            shared, generator, self.dtype_policy, TIED_PARTS[tied_embeddings]
        )
        self.corrupter = self.masked_lm_corrupter(
            keep_rate, temperature, exclude_original
        )
        self.corrects, self.contrasts = corrects, sequence_task == "scl"
        self.smallest_batch = 2 if self.contrasts else 1
        self.one_text_a_row = self.contrasts
        self.token_task = token_task
        self.sequence_task = sequence_task
        self.crop_fraction = crop_fraction
        self.replacements = replacements
        self.tied_embeddings = tied_embeddings
        self.sequence_transform = sequence_transform
        self.rtd_weight, self.scl_weight = rtd_weight, scl_weight
        self.learn_by(**self._objectives())

    def _objectives(self):
        # Language modelling at all positions learns to copy by that alone.
        rtd_weight = None if self.token_task == "all_token_lm" else self.rtd_weight
        objectives = {
            "mlm": MaskedTokens(network="generator"),
            "rtd": Copying(self.corrects, weight=rtd_weight),
        }
        if self.corrects:
            objectives["lm"] = CorrectiveLM(self.token_task)
        if self.contrasts:
            objectives["scl"] = contrastive.SequenceContrast(weight=self.scl_weight)
        return objectives

    @property
    def vocabulary_head(self):
        return self.discriminator.vocabulary_head

    def call(self, inputs, training=False):
        inputs = self.text_inputs(inputs)
        text, generated = self.corrupt(inputs, training)
        corrupted = {**inputs, "token_ids": text.token_ids}
        hidden = self.discriminator.encoder(corrupted, training=training)
        logits = self.discriminator.head(hidden)
        detections = Detections(logits, text.replaced, inputs["padding_mask"])
        outputs = {"corrupted": text, "mlm": generated, "rtd": detections}
        if self.corrects:
            outputs |= self.correct(text, hidden, logits)
        if self.contrasts:
            outputs["views"] = self.contrast(inputs, hidden, training)
        return outputs

    def corrupt(self, inputs, training=False):
        """Corrupts a text; samples are drawn without dropout.

        Args:
            inputs: The model's inputs.
            training: Whether dropout is active in what the generator learns from.

        Returns:
            A `Corrupted`, and the `Predictions` that the generator learns from.
        """
        masked, masking = self.corrupter.mask(inputs)
        logits = drawn = self.generator(masked, masking.positions, training=training)
        if self.replacements == "random":
            shape, seed = ops.shape(masking.positions), self.seed_generator
            ids = keras.random.randint(shape, 0, self.vocabulary_size, "int32", seed)
            text = corrupted(inputs["token_ids"], masking, ids)
        else:
            if training and self.generator.encoder.has_dropout:
                drawn = self.generator(masked, masking.positions, training=False)
            text = self.corrupter.fill(inputs["token_ids"], masking, drawn)
        return text, predictions(masked, text, logits)

    def correct(self, text, hidden, rtd_logits):
        """Predicts the original tokens.

        Args:
            text: The `Corrupted`.
            hidden: `[batch, length, hidden]`, of the corrupted text.
            rtd_logits: float32 `[batch, length]`.

        Returns:
            A dict: the `Corrections`; and, of all-token language modelling, the
            original tokens' `log_softmax` at all positions, float32 `[batch, length]`.
        """
        head, positions = self.discriminator.vocabulary_head, text.masking.positions
        lm_logits = head(hidden, positions)
        if self.token_task == "clm_without_copy":
            corrected_ids = likeliest(lm_logits)
        else:
            rtd_logits = ops.take_along_axis(rtd_logits, positions, axis=1)
            corrected_ids = corrected_tokens(lm_logits, rtd_logits, text.sampled_ids)
        outputs = {"lm": Corrections(lm_logits, corrected_ids)}
        if self.token_task == "all_token_lm":
            outputs["log_softmax"] = head.log_probabilities(hidden, text.original_ids)
        return outputs

    def contrast(self, inputs, hidden, training=False):
        """Compares each text's two views with the views of all texts of the batch.

        Args:
            inputs: The model's inputs.
            hidden: `[batch, length, hidden]`, of the corrupted text, the first view.
            training: Whether dropout is active.

        Returns:
            The `Views`.
        """
        cropped = crop_texts(
            inputs, self.crop_fraction, self.seed_generator, self.padding_id
        )
        other = self.discriminator.encoder(cropped, training=training)
        views = ops.stack([hidden[:, 0], other[:, 0]], axis=1)
        if self.sequence_transform:
            views = self.discriminator.sequence_head(views)
        views = contrastive.unit_vectors(views)
        all_views = gather_from_replicas(views)
        present = ops.max(inputs["padding_mask"], axis=1)
        batch, total = ops.shape(views)[0], ops.shape(all_views)[0]
        rows = ops.arange(batch, dtype="int32") + first_row_of_replica(batch)
        return contrastive.Views(
            cosines=contrastive.cosines(views, all_views),
            same_text=rows[:, None] == ops.arange(total, dtype="int32"),
            present=present > 0,
            all_present=gather_from_replicas(present) > 0,
        )

    # === What a step costs ===

    def forward_flops(self, length):
        """Counts both networks, the second view and the pass that draws samples.

        A run's operations are twice the forward ones; as that pass has no backward
        pass, half of it counts here. The products of a batch's views, four for each
        pair of texts, do not count.
        """
        main, total = self.discriminator, super().forward_flops(length)
        if self.replacements == "sampled" and self.generator.encoder.has_dropout:
            masked = self.masker.num_masked(length)
            total += self.generator.flops(length, masked) // 2
        if self.token_task == "all_token_lm":
            total += main.vocabulary_head.flops(length)
        if self.sequence_transform:
            total += 2 * main.sequence_head.flops()
        if self.contrasts:
            crop = cropped_length(self.crop_fraction, length)
            total += main.encoder.flops(crop, training=True)
        return total

    def discriminator_bytes(self, batch_size, length):
        total = super().discriminator_bytes(batch_size, length)
        if self.contrasts:
            crop = cropped_length(self.crop_fraction, length)
            total += self.encoder.activation_bytes(batch_size, crop, self.number_bytes)
        return total

    def get_config(self):
        return {
            **super().get_config(),
            **self.corrupter.options,
            "generator": self.generator.encoder.architecture,
            "token_task": self.token_task,
            "sequence_task": self.sequence_task,
            "crop_fraction": self.crop_fraction,
            "replacements": self.replacements,
            "tied_embeddings": self.tied_embeddings,
            "sequence_transform": self.sequence_transform,
            "rtd_weight": self.rtd_weight,
            "scl_weight": self.scl_weight,
        }
