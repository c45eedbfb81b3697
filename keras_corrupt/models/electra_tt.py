"""ELECTRA-TT: ELECTRA whose generator knows q of every token."""

import keras
from keras import ops

from keras_corrupt.corruption.corrupters import TwoTowerCorrupter
from keras_corrupt.models.generator_discriminator import GeneratorDiscriminator
from keras_corrupt.models.networks import Discriminator, two_tower_generator
from keras_corrupt.models.sizes import DETECTORS
from keras_corrupt.objectives import token_probabilities
from keras_corrupt.objectives.cloze import ClozeGenerator, ClozeLosses
from keras_corrupt.objectives.loss import check_weight
from keras_corrupt.objectives.replaced_tokens import Detections, ReplacedTokens

#: Sizes: Clark's thesis, table 5.1, which are ELECTRA's. Each of the generator's two
#: towers has the sizes of ELECTRA's generator (`tiny` is ours, for CPUs and tests).
PRESETS = DETECTORS


@keras.saving.register_keras_serializable(package="keras_corrupt")
class ElectraTT(GeneratorDiscriminator):
    """Pretrains ELECTRA's discriminator on the samples of a two-tower model.

    Clark's thesis, 5.4.4 and 5.4.5. But for its generator it is `Electra`: negative
    sampling, in which a sample that is the original token counts as original. With q at
    every position the probability of each token can be told from q and from what the
    discriminator says of the token.

    Inputs are as for `MaskedLM`.

    Args:
        discriminator: The discriminator's `TransformerEncoder`, or its constructor
            arguments.
        generator: Arguments of the generator's towers, where they differ: its layers'
            number and sizes.
        mask_rate: Fraction of tokens in whose place samples stand. None is masked.
        rtd_weight: Weight of replaced token detection beside the generator's loss. 50
            is the released code's; the thesis does not give it.
        probability_rule: How a token's probability is told from the discriminator's
            and q: `"exact"`, the inverse of what the discriminator learns, or
            `"thesis"`, the formula of 5.4.5, which overrates likely tokens.
        kwargs: Arguments of `Pretrainer`.

    Example:

    >>> import numpy as np
    >>> import keras_corrupt
    >>> model = keras_corrupt.models.ElectraTT.from_preset("tiny")
    >>> ids = np.array([[101] + [7] * 30 + [102]], "int32")
    >>> tuple(model(ids)["rtd"].logits.shape)
    (1, 32)
    """

    presets = PRESETS

    def __init__(
        self,
        discriminator,
        generator,
        mask_rate=0.15,
        rtd_weight=50.0,
        probability_rule="exact",
        **kwargs,
    ):
        super().__init__(discriminator, mask_rate=mask_rate, **kwargs)
        check_weight("rtd_weight", rtd_weight)
        if probability_rule not in token_probabilities.RULES:
            raise ValueError(
                f"`probability_rule` must be one of {token_probabilities.RULES}; got "
                f"{probability_rule!r}."
            )
        self.discriminator = Discriminator(
            self.with_padding(discriminator),
            dtype=self.dtype_policy,
            name="discriminator",
        )
        self.generator = two_tower_generator(
            self.discriminator.encoder, generator, self.dtype_policy
        )
        self.corrupter = TwoTowerCorrupter(self.generator, self.masker)
        self.probability_rule = probability_rule
        self.learn_by(
            cloze=ClozeGenerator(network="generator"),
            rtd=ReplacedTokens(weight=rtd_weight),
        )

    def call(self, inputs, training=False):
        inputs = self.text_inputs(inputs, training)
        corrupted, predictions, states = self.corrupter.corrupt(inputs, training)
        logits = self.discriminator(
            {**inputs, "token_ids": corrupted.token_ids}, training=training
        )
        losses = self.generator.head.loss(states, inputs["token_ids"])
        learned = ops.cast(self.masker.maskable(inputs), "float32")
        return {
            "corrupted": corrupted,
            "predictions": predictions,
            "cloze": ClozeLosses(losses, learned),
            "rtd": Detections(logits, corrupted.replaced, inputs["padding_mask"]),
        }

    def token_log_probabilities(self, inputs):
        """Returns the `RULES` estimate, of one pass of each network."""
        inputs = self.text_inputs(inputs)
        states = self.generator(inputs)
        return token_probabilities.log_probabilities(
            self.discriminator(inputs),
            self.generator.head.log_probabilities(states, inputs["token_ids"]),
            *self.masker.counts(inputs),
            self.probability_rule,
        )

    def get_config(self):
        return {
            **super().get_config(),
            "generator": self.generator.architecture,
            "rtd_weight": self.objectives["rtd"].weight,
            "probability_rule": self.probability_rule,
        }
