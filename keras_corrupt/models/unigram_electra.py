"""ELECTRA with the simplest generators: no network, tokens by their frequency.

    q(x) = count of x in the training text / count of all its tokens
    L    = 50 L_RTD

Clark's thesis, 5.3.2; or q is the same for all tokens. L_RTD is of
`objectives/replaced_tokens.py`, with q in the generator's place.
"""

import keras
import numpy as np

from keras_corrupt.corruption.corrupters import UnigramCorrupter
from keras_corrupt.corruption.unigram_generator import UnigramGenerator
from keras_corrupt.encoders import TransformerEncoder
from keras_corrupt.models.generator_discriminator import GeneratorDiscriminator
from keras_corrupt.models.networks import Discriminator
from keras_corrupt.models.sizes import ENCODERS, MASK_RATES
from keras_corrupt.objectives.loss import check_weight
from keras_corrupt.objectives.replaced_tokens import Detections, ReplacedTokens

#: Sizes of the discriminators: Clark's thesis, table 5.1 (`tiny` is ours).
PRESETS = {
    size: {"discriminator": ENCODERS[size], "mask_rate": MASK_RATES[size]}
    for size in ENCODERS
}


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
        discriminator: The discriminator's `TransformerEncoder`, or its constructor
            arguments.
        mask_rate: Fraction of tokens to replace. None is masked.
        noise: `"unigram"`: tokens are drawn as often as the training text has them;
            `"uniform"`: all tokens of the vocabulary as often.
        rtd_weight: Weight of the loss, 50 as in ELECTRA, so that gradients are clipped
            alike.
        kwargs: Arguments of `Pretrainer`.

    Example:

    >>> import numpy as np
    >>> import keras_corrupt
    >>> model = keras_corrupt.models.UnigramElectra.from_preset("tiny", noise="uniform")
    >>> ids = np.array([[101] + [7] * 30 + [102]], "int32")
    >>> tuple(model(ids)["rtd"].logits.shape)
    (1, 32)
    """

    presets = PRESETS
    network_arguments = {"discriminator": TransformerEncoder}

    def __init__(
        self, discriminator, mask_rate=0.15, noise="unigram", rtd_weight=50.0, **kwargs
    ):
        super().__init__(discriminator, mask_rate=mask_rate, **kwargs)
        if noise not in NOISES:
            raise ValueError(f"`noise` must be one of {NOISES}; got {noise!r}.")
        check_weight("rtd_weight", rtd_weight)
        self.discriminator = Discriminator(
            self.with_padding(discriminator),
            dtype=self.dtype_policy,
            name="discriminator",
        )
        self.generator = UnigramGenerator(
            self.vocabulary_size, uniform=noise == "uniform", name="generator"
        )

        self.corrupter = UnigramCorrupter(self.generator, self.masker)
        self.noise = noise
        self.learn_by(rtd=ReplacedTokens(weight=rtd_weight))

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
        corrupted = self.corrupter.corrupt(inputs)
        logits = self.discriminator(
            {**inputs, "token_ids": corrupted.token_ids}, training=training
        )
        detections = Detections(logits, corrupted.replaced, inputs["padding_mask"])
        return {"corrupted": corrupted, "rtd": detections}

    # === What a step costs ===

    def forward_flops(self, length):
        return self.discriminator.flops(length, training=True)

    def activation_bytes(self, batch_size, length):
        return self.discriminator_bytes(batch_size, length)

    def get_config(self):
        return {
            **super().get_config(),
            "noise": self.noise,
            "rtd_weight": self.objectives["rtd"].weight,
        }
