"""ELECTRA with the simplest generators: no network, tokens by their frequency.

    q(x) = count of x in the training text / count of all its tokens
    L    = 50 L_RTD

Clark's thesis, 5.3.2; or q is the same for all tokens. L_RTD is of
`replaced_token_detection/objective.py`, with q in the generator's place.
"""

import keras
import numpy as np

from keras_corrupt.corruption import gather_tokens, replace_tokens
from keras_corrupt.models.loss import check_weight
from keras_corrupt.models.replaced_token_detection.generator_discriminator import (
    Discriminator,
    GeneratorDiscriminator,
)
from keras_corrupt.models.replaced_token_detection.objective import (
    replaced_labels,
    replaced_token_detection_loss,
)
from keras_corrupt.models.unigram_electra.generator import UnigramGenerator
from keras_corrupt.models.unigram_electra.presets import PRESETS

NOISES = ("unigram", "uniform")


@keras.saving.register_keras_serializable(package="keras_corrupt")
class UnigramElectra(GeneratorDiscriminator):
    """Pretrains a discriminator on text in which some tokens are random ones.

    Clark's thesis, 5.3.2 and figure 5.4. Random tokens take the places of some, and the
    discriminator tells for every token whether it was replaced, as in ELECTRA.

    A run of a recipe tells it the counts of the training text. Where there is no such
    run, `use_unigrams` does, before `fit`. Presets keep them. Inputs are as for
    `MaskedLM`.

    Args:
        discriminator: Constructor arguments of the discriminator's
            `TransformerEncoder`.
        mask_rate: Fraction of tokens to replace. None is masked.
        noise: `"unigram"`: tokens are drawn as often as the training text has them;
            `"uniform"`: all tokens of the vocabulary as often.
        rtd_weight: Weight of the loss, 50 as in ELECTRA, so that gradients are clipped
            alike.
        kwargs: Those of `Pretrainer`.

    Example:

    >>> import numpy as np
    >>> import keras_corrupt
    >>> model = keras_corrupt.models.UnigramElectra.from_preset("tiny", noise="uniform")
    >>> ids = np.array([[101] + [7] * 30 + [102]], "int32")
    >>> tuple(model(ids)["rtd_logits"].shape)
    (1, 32)
    """

    presets = PRESETS
    loss_weights = {"rtd": 50.0}

    def __init__(
        self, discriminator, mask_rate=0.15, noise="unigram", rtd_weight=50.0, **kwargs
    ):
        super().__init__(discriminator, mask_rate=mask_rate, **kwargs)
        if noise not in NOISES:
            raise ValueError(f"`noise` must be one of {NOISES}; got {noise!r}.")
        check_weight("rtd_weight", rtd_weight)

        # === Layers ===
        self.discriminator = Discriminator(
            self.with_padding(discriminator),
            dtype=self.dtype_policy,
            name="discriminator",
        )
        self.generator = UnigramGenerator(
            self.vocabulary_size, uniform=noise == "uniform", name="generator"
        )

        # === Config ===
        self.noise = noise
        self.rtd_weight = rtd_weight
        self.loss_weights = {"rtd": rtd_weight}
        self.built = True

    def use_unigrams(self, counts):
        if self.noise == "unigram":
            missing = self.vocabulary_size - len(counts)
            self.generator.counts.assign(np.pad(counts, (0, missing)))

    def fit(self, *args, **kwargs):
        """Trains: see `Pretrainer.fit`.

        Raises:
            ValueError: It was not told how frequent tokens are.
        """
        if not self.generator.has_counts():
            raise ValueError(
                "This UnigramElectra knows no frequencies: call `use_unigrams(counts)` "
                "with the tokens' counts in the training text, such as "
                "`keras_corrupt.data.load_dataset_info(directory).unigrams()`, or make "
                'it with `noise="uniform"`.'
            )
        return super().fit(*args, **kwargs)

    def call(self, inputs, training=False):
        inputs = self.text_inputs(inputs, training)
        token_ids = inputs["token_ids"]
        masking = self.choose_positions(inputs)
        sampled_ids = self.generator.sample(masking.positions, self.seed_generator)
        corrupted_ids = replace_tokens(token_ids, masking, sampled_ids)
        return {
            "masked_positions": masking.positions,
            "masked_weights": masking.weights,
            "target_ids": gather_tokens(token_ids, masking.positions),
            "sampled_ids": sampled_ids,
            "corrupted_ids": corrupted_ids,
            "rtd_logits": self.discriminator(
                {**inputs, "token_ids": corrupted_ids}, training=training
            ),
            "replaced": replaced_labels(token_ids, corrupted_ids),
            "rtd_weights": inputs["padding_mask"],
        }

    def loss_terms(self, outputs):
        rtd = replaced_token_detection_loss(outputs["rtd_logits"], outputs["replaced"])
        return {"rtd": (rtd, outputs["rtd_weights"])}

    # === What a step costs ===

    def forward_flops(self, length):
        return self.discriminator.flops(length, training=True)

    def activation_bytes(self, batch_size, length):
        return self.discriminator_bytes(batch_size, length)

    def get_config(self):
        return {
            **super().get_config(),
            "noise": self.noise,
            "rtd_weight": self.rtd_weight,
        }
