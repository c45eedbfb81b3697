"""COCO-LM: a network corrects and contrasts text that another one corrupts."""

import keras
from keras import ops

from keras_corrupt.corruption import crop_texts, cropped_length
from keras_corrupt.devices.replicas import first_row_of_replica, gather_from_replicas
from keras_corrupt.encoders import TransformerEncoder
from keras_corrupt.models.coco_lm import objective
from keras_corrupt.models.coco_lm.examples import describe_corrections
from keras_corrupt.models.coco_lm.fine_tuning import search_space, settings
from keras_corrupt.models.coco_lm.heads import CorrectiveDiscriminator
from keras_corrupt.models.coco_lm.metrics import LogMean, analyses, metric_names
from keras_corrupt.models.coco_lm.presets import PRESETS, TIED_PARTS
from keras_corrupt.models.loss import check_weight
from keras_corrupt.models.masked_lm.masked_lm import MaskedLMNetwork
from keras_corrupt.models.masked_lm.objective import masked_lm_loss
from keras_corrupt.models.replaced_token_detection.copying import (
    original_log_probability,
)
from keras_corrupt.models.replaced_token_detection.generator_discriminator import (
    ReplacedTokenDetection,
)
from keras_corrupt.models.replaced_token_detection.sizes import check_shared_sizes

TOKEN_TASKS = (
    *("clm", "rtd", "all_token_lm"),
    *("clm_without_copy", "clm_without_stop_gradient"),
)
SEQUENCE_TASKS = ("scl", "none")
REPLACEMENTS = ("sampled", "random")


@keras.saving.register_keras_serializable(package="keras_corrupt")
class CocoLM(ReplacedTokenDetection):
    """Pretrains a network that corrects corrupted texts and tells texts apart.

    Meng et al., "COCO-LM: Correcting and Contrasting Text Sequences for Language Model
    Pretraining", 2021. As in ELECTRA, an auxiliary network (`generator`) fills masked
    positions with samples; it is as wide as the main one (`discriminator`) and has
    fewer layers, and its dropout is off when samples are drawn. The main network tells
    which tokens are the original ones and restores the others: corrective language
    modelling, CLM. Sequence contrastive learning, SCL, draws the vectors of [CLS] of
    the corrupted text and of a crop of the original towards each other, and away from
    those of all other texts of the batch.

    Special tokens may be masked, too (appendix D). The batch in which texts are
    contrasted is that of all devices and processes; with `accumulate`, it is one of
    those that are accumulated, with fewer other texts.

    Inputs are as for `MaskedLM`.

    Args:
        discriminator: Constructor arguments of the main network's `TransformerEncoder`.
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
        crop_fraction: Of a text's tokens that a crop keeps: 0.9, and 0.7 to 1 in
            ablations.
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
        kwargs: Those of `ReplacedTokenDetection`.

    Raises:
        ValueError: An option is none of those named, or sizes do not fit together.

    Example:

    >>> import numpy as np
    >>> import keras_corrupt
    >>> model = keras_corrupt.models.CocoLM.from_preset("tiny")
    >>> ids = np.array([[101] + [7] * 30 + [102]] * 2, "int32")
    >>> outputs = model({"token_ids": ids, "segment_ids": 0 * ids,
    ...                  "padding_mask": 1 + 0 * ids})
    >>> tuple(outputs["lm_logits"].shape)  # five masked positions
    (2, 5, 8192)
    >>> tuple(outputs["cosines"].shape)  # two views of two texts with all views
    (2, 2, 2, 2)
    """

    presets = PRESETS
    network_arguments = {
        "discriminator": TransformerEncoder,
        "generator": TransformerEncoder,
    }
    loss_weights = {"mlm": 1.0, "rtd": 50.0, "lm": 1.0, "scl": 1.0}
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
        **kwargs,
    ):
        super().__init__(
            discriminator, mask_rate=mask_rate, unmaskable_ids=unmaskable_ids, **kwargs
        )
        for name, value, known in (
            ("token_task", token_task, TOKEN_TASKS),
            ("sequence_task", sequence_task, SEQUENCE_TASKS),
            ("replacements", replacements, REPLACEMENTS),
            ("tied_embeddings", tied_embeddings, tuple(TIED_PARTS)),
        ):
            if value not in known:
                raise ValueError(f"`{name}` must be one of {known}; got {value!r}.")
        alters_samples = self.temperature != 1 or self.exclude_original
        if replacements == "random" and alters_samples:
            raise ValueError(
                "Random `replacements` are not drawn from the generator: leave out "
                f"`temperature={self.temperature!r}` and "
                f"`exclude_original={self.exclude_original!r}`."
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
        check_shared_sizes(discriminator, generator)
        check_weight("rtd_weight", rtd_weight)
        check_weight("scl_weight", scl_weight)
        hidden_size = discriminator["hidden_size"]
        embedding_size = discriminator.get("embedding_size") or hidden_size
        corrects = token_task != "rtd"
        if corrects and embedding_size != hidden_size:
            raise ValueError(
                f"`discriminator` has embedding_size={embedding_size} and hidden_size="
                f"{hidden_size}; without a layer between its output and the softmax "
                'they must be equal. Set one of them, or `token_task="rtd"`.'
            )

        # === Layers ===
        self.discriminator = CorrectiveDiscriminator(
            self.with_padding(discriminator),
            corrects,
            sequence_transform,
            dtype=self.dtype_policy,
            name="discriminator",
        )
        shared = self.discriminator.encoder
        self.generator = MaskedLMNetwork(
            {
                **shared.architecture,
                **generator,
                "embedding_size": shared.embedding_size,
                "tied_to": shared,
                "tied_parts": TIED_PARTS[tied_embeddings],
            },
            dtype=self.dtype_policy,
            name="generator",
        )
        self.corrects, self.contrasts = corrects, sequence_task == "scl"

        # === Losses and metrics ===
        weights = {"mlm": 1.0, "rtd": rtd_weight, "lm": 1.0, "scl": scl_weight}
        absent = {
            "rtd": token_task == "all_token_lm",
            "lm": not self.corrects,
            "scl": not self.contrasts,
        }
        self.loss_weights = {n: w for n, w in weights.items() if not absent.get(n)}
        for name in absent:
            if name not in self.loss_weights:
                self.term_metrics.pop(name)
        self.metric_names = metric_names(self.corrects, self.contrasts)
        self.analyses = {
            name: (LogMean if name == "uniformity" else keras.metrics.Mean)(name=name)
            for name in self.metric_names
            if name not in ReplacedTokenDetection.metric_names
        }

        # === Config ===
        self.smallest_batch = 2 if self.contrasts else 1
        self.token_task = token_task
        self.sequence_task = sequence_task
        self.crop_fraction = crop_fraction
        self.replacements = replacements
        self.tied_embeddings = tied_embeddings
        self.sequence_transform = sequence_transform
        self.rtd_weight = rtd_weight
        self.scl_weight = scl_weight
        self.built = True

    @property
    def vocabulary_head(self):
        return self.discriminator.vocabulary_head

    def call(self, inputs, training=False):
        inputs = self.text_inputs(inputs)
        outputs = self.corrupt(inputs, training)
        corrupted = {**inputs, "token_ids": outputs["corrupted_ids"]}
        hidden = self.discriminator.encoder(corrupted, training=training)
        outputs["rtd_logits"] = self.discriminator.head(hidden)
        if self.corrects:
            outputs |= self.correct(inputs, hidden, outputs)
        if self.contrasts:
            outputs |= self.contrast(inputs, hidden, training)
        return outputs

    def sample_replacements(self, masked, positions, target_ids, mlm_logits, training):
        if self.replacements == "random":
            shape = ops.shape(positions)
            return keras.random.randint(
                shape, 0, self.vocabulary_size, "int32", self.seed_generator
            )
        if training and self.generator.encoder.has_dropout:
            mlm_logits = self.generator(masked, positions, training=False)
        return super().sample_replacements(
            masked, positions, target_ids, mlm_logits, training
        )

    def correct(self, inputs, hidden, outputs):
        """Predicts the original tokens.

        Args:
            inputs: The model's inputs.
            hidden: `[batch, length, hidden]`, of the corrupted text.
            outputs: What `corrupt` returned, and `rtd_logits`.

        Returns:
            A dict of outputs: `lm_logits`, float32 `[batch, masked, vocabulary]`; the
            likeliest tokens, `corrected_ids`; and, of all-token language modelling, the
            original tokens' `log_softmax` at all positions, float32 `[batch, length]`.
        """
        head, positions = (
            self.discriminator.vocabulary_head,
            outputs["masked_positions"],
        )
        lm_logits = head(hidden, positions)
        if self.token_task == "clm_without_copy":
            corrected_ids = objective.likeliest_tokens(lm_logits)
        else:
            corrected_ids = objective.corrected_tokens(
                lm_logits,
                ops.take_along_axis(outputs["rtd_logits"], positions, axis=1),
                outputs["sampled_ids"],
            )
        found = {"lm_logits": lm_logits, "corrected_ids": corrected_ids}
        if self.token_task == "all_token_lm":
            found["log_softmax"] = head.log_probabilities(hidden, inputs["token_ids"])
        return found

    def contrast(self, inputs, hidden, training=False):
        """Compares each text's two views with those of all texts of the batch.

        Args:
            inputs: The model's inputs.
            hidden: `[batch, length, hidden]`, of the corrupted text, the first view.
            training: Whether dropout is active.

        Returns:
            A dict of outputs: `cosines`, float32 `[batch, 2, all texts, 2]`, and the
            booleans `same_text`, `[batch, all texts]`, and `present`, `[batch]` and
            `all_present`, `[all texts]`, which are false for rows of padding.
        """
        cropped = crop_texts(
            inputs, self.crop_fraction, self.seed_generator, self.padding_id
        )
        other = self.discriminator.encoder(cropped, training=training)
        views = ops.stack([hidden[:, 0], other[:, 0]], axis=1)
        if self.sequence_transform:
            views = self.discriminator.sequence_head(views)
        views = objective.unit_vectors(views)
        everything = gather_from_replicas(views)
        present = ops.max(inputs["padding_mask"], axis=1)
        batch, total = ops.shape(views)[0], ops.shape(everything)[0]
        rows = ops.arange(batch, dtype="int32") + first_row_of_replica(batch)
        return {
            "cosines": objective.cosines(views, everything),
            "same_text": rows[:, None] == ops.arange(total, dtype="int32"),
            "present": present > 0,
            "all_present": gather_from_replicas(present) > 0,
        }

    def loss_terms(self, outputs):
        terms = super().loss_terms(outputs)
        if self.corrects:
            terms["lm"] = self._lm_term(outputs)
        if self.contrasts:
            names = ("cosines", "same_text", "all_present")
            values = objective.contrastive_loss(*(outputs[n] for n in names))
            present = ops.cast(outputs["present"], "float32")
            terms["scl"] = values, ops.broadcast_to(present[:, None], ops.shape(values))
        return terms

    def _lm_term(self, outputs):
        if self.token_task == "all_token_lm":
            value = original_log_probability(
                outputs["log_softmax"],
                outputs["rtd_logits"],
                outputs["replaced"] == 0,
                stop_gradient=False,
            )
            return -value, outputs["rtd_weights"]
        loss = masked_lm_loss(outputs["lm_logits"], outputs["target_ids"])
        if self.token_task != "clm_without_copy":
            positions = outputs["masked_positions"]
            loss = -original_log_probability(
                -loss,
                ops.take_along_axis(outputs["rtd_logits"], positions, axis=1),
                outputs["sampled_ids"] == outputs["target_ids"],
                stop_gradient=self.token_task == "clm",
            )
        return loss, outputs["masked_weights"]

    def update_metrics(self, outputs):
        super().update_metrics(outputs)
        for name, (values, weights) in analyses(outputs).items():
            self.analyses[name].update_state(values, weights)

    # === What a run shows ===

    def describe_examples(self, inputs):
        if self.corrects:
            return describe_corrections(self, inputs)
        return super().describe_examples(inputs)

    @property
    def examples_legend(self):
        legend = super().examples_legend
        if self.corrects:
            legend += "; after a colon what it\nwould write"
        return legend

    def baselines(self, metrics, unigram):
        found = super().baselines(metrics, unigram)
        if self.contrasts:
            found["positive_cosine"] = (metrics["random_cosine"], "other texts")
        return found

    def warnings(self, metrics, unigram):
        yield from super().warnings(metrics, unigram)
        if self.contrasts and metrics["positive_cosine"] <= metrics["random_cosine"]:
            yield (
                "the two views of a text are no more alike (cosine "
                f"{metrics['positive_cosine']:.2f}) than those of different texts "
                f"({metrics['random_cosine']:.2f}). Try a larger --batch_size, which "
                "has more texts to tell apart; --accumulate leaves fewer."
            )

    # === What a step costs ===

    def forward_flops(self, length):
        """Counts both networks, the second view and the pass that draws samples.

        That pass has no backward pass, and a run counts twice what is forward; so half
        of it counts here. Left out are the products of a batch's views, four for each
        pair of texts.
        """
        main, total = self.discriminator, super().forward_flops(length)
        if self.replacements == "sampled" and self.generator.encoder.has_dropout:
            total += self.generator.flops(length, self.num_masked(length)) // 2
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
