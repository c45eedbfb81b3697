"""ELECTRA-TT: ELECTRA whose generator knows q of every token."""

import keras

from keras_corrupt.corruption import maskable_tokens, num_chosen
from keras_corrupt.models.electra_tt import objective
from keras_corrupt.models.electra_tt.presets import PRESETS
from keras_corrupt.models.loss import check_weight
from keras_corrupt.models.replaced_token_detection.generator_discriminator import (
    Discriminator,
)
from keras_corrupt.models.replaced_token_detection.objective import (
    replaced_labels,
    replaced_token_detection_loss,
)
from keras_corrupt.models.two_tower.detection import TwoTowerDetection


@keras.saving.register_keras_serializable(package="keras_corrupt")
class ElectraTT(TwoTowerDetection):
    """Pretrains ELECTRA's discriminator on the samples of a two-tower model.

    Clark's thesis, 5.4.4 and 5.4.5. But for its generator it is `Electra`: negative
    sampling, in which a sample that is the original token counts as original. With q at
    every position the probability of each token can be told from q and from what the
    discriminator says of the token.

    Inputs are as for `MaskedLM`.

    Args:
        discriminator: Constructor arguments of the discriminator's
            `TransformerEncoder`.
        generator: Those of each tower of the generator, where they differ: its layers'
            number and sizes.
        mask_rate: Fraction of tokens in whose place samples stand. None is masked.
        rtd_weight: Weight of replaced token detection beside the generator's loss. 50
            is the released code's; the thesis does not give it.
        probability_rule: How a token's probability is told from the discriminator's
            and q: `"exact"`, the inverse of what the discriminator learns, or
            `"thesis"`, the formula of 5.4.5, which overrates likely tokens.
        kwargs: Those of `Pretrainer`.

    Example:

    >>> import numpy as np
    >>> import keras_corrupt
    >>> model = keras_corrupt.models.ElectraTT.from_preset("tiny")
    >>> ids = np.array([[101] + [7] * 30 + [102]], "int32")
    >>> tuple(model(ids)["rtd_logits"].shape)
    (1, 32)
    """

    presets = PRESETS
    loss_weights = {"cloze": 1.0, "rtd": 50.0}
    discriminator_class = Discriminator

    def __init__(
        self,
        discriminator,
        generator,
        mask_rate=0.15,
        rtd_weight=50.0,
        probability_rule="exact",
        **kwargs,
    ):
        super().__init__(discriminator, generator, mask_rate=mask_rate, **kwargs)
        check_weight("rtd_weight", rtd_weight)
        if probability_rule not in objective.RULES:
            raise ValueError(
                f"`probability_rule` must be one of {objective.RULES}; got "
                f"{probability_rule!r}."
            )

        # === Config ===
        self.probability_rule = probability_rule
        self.rtd_weight = rtd_weight
        self.loss_weights = {"cloze": 1.0, "rtd": rtd_weight}
        self.built = True

    def call(self, inputs, training=False):
        inputs = self.text_inputs(inputs, training)
        outputs = self.corrupt(inputs, training)
        corrupted_ids = outputs["corrupted_ids"]
        return {
            **outputs,
            "rtd_logits": self.discriminator(
                {**inputs, "token_ids": corrupted_ids}, training=training
            ),
            "replaced": replaced_labels(inputs["token_ids"], corrupted_ids),
            "rtd_weights": inputs["padding_mask"],
        }

    def loss_terms(self, outputs):
        rtd = replaced_token_detection_loss(outputs["rtd_logits"], outputs["replaced"])
        return {**super().loss_terms(outputs), "rtd": (rtd, outputs["rtd_weights"])}

    def token_log_probabilities(self, inputs):
        """Returns `objective.log_probabilities`, of one pass of each network."""
        inputs = self.text_inputs(inputs)
        maskable = maskable_tokens(inputs, self.unmaskable_ids)
        states = self.generator(inputs)
        return objective.log_probabilities(
            self.discriminator(inputs),
            self.generator.head.log_probabilities(states, inputs["token_ids"]),
            *num_chosen(inputs, maskable, self.mask_rate),
            self.probability_rule,
        )

    # === What a run shows ===

    def get_config(self):
        return {
            **super().get_config(),
            "rtd_weight": self.rtd_weight,
            "probability_rule": self.probability_rule,
        }
