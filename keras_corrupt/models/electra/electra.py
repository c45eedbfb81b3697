"""ELECTRA: a generator corrupts text, a discriminator finds what was replaced."""

import keras

from keras_corrupt.encoders import TransformerEncoder
from keras_corrupt.models.electra import cost
from keras_corrupt.models.electra.presets import PRESETS, TRAINED_PRESETS
from keras_corrupt.models.masked_lm.masked_lm import MaskedLMNetwork
from keras_corrupt.models.pretrainer import check_weight
from keras_corrupt.models.replaced_token_detection.generator_discriminator import (
    Discriminator,
    ReplacedTokenDetection,
)

#: What generator and discriminator share: the thesis's choice (5.3.1) by default,
#: or all embedding parameters, as in the released code.
TIED_PARTS = {
    "token_and_position": ("token", "position"),
    "all": ("token", "position", "segment", "norm"),
}


@keras.saving.register_keras_serializable(package="keras_corrupt")
class Electra(ReplacedTokenDetection):
    """Pretrains a discriminator on text that a small generator corrupts.

    Clark's thesis, chapter 5. In each step some positions are masked, the generator
    (a masked language model) fills each with a sample from its output distribution,
    and the discriminator tells for every token whether it was replaced. Both train
    together; no gradient passes the sampling. The discriminator's encoder is the
    result.

    Inputs are as for `MaskedLM`.

    Args:
        discriminator: Constructor arguments of the discriminator's
            `TransformerEncoder`.
        generator: The generator's, where they differ: its layers' number and sizes.
        mask_rate: Fraction of tokens to mask.
        keep_rate: Fraction of the chosen positions that keep their token in the
            generator's input: 0 in the thesis, 0.15 in the released code.
        tied_embeddings: `"token_and_position"` (thesis, 5.3.1) or `"all"` (released
            code: segment embeddings and their layer norm too).
        rtd_weight: Weight of replaced token detection beside masked language
            modelling. 50 is the released code's; the thesis does not give it.
        kwargs: Those of `Pretrainer`.

    Example:

    >>> import numpy as np
    >>> import keras_corrupt
    >>> model = keras_corrupt.models.Electra.from_preset("tiny")
    >>> ids = np.array([[101] + [7] * 30 + [102]], "int32")
    >>> outputs = model({"token_ids": ids, "segment_ids": 0 * ids,
    ...                  "padding_mask": 1 + 0 * ids})
    >>> tuple(outputs["rtd_logits"].shape)
    (1, 32)
    """

    presets = PRESETS
    trained_presets = TRAINED_PRESETS
    network_arguments = {
        "discriminator": TransformerEncoder,
        "generator": TransformerEncoder,
    }
    loss_weights = {"mlm": 1.0, "rtd": 50.0}

    def __init__(
        self,
        discriminator,
        generator,
        mask_rate=0.15,
        keep_rate=0.0,
        tied_embeddings="token_and_position",
        rtd_weight=50.0,
        **kwargs,
    ):
        super().__init__(
            discriminator, mask_rate=mask_rate, keep_rate=keep_rate, **kwargs
        )
        check_weight("rtd_weight", rtd_weight)
        if tied_embeddings not in TIED_PARTS:
            raise ValueError(
                f"`tied_embeddings` must be one of {sorted(TIED_PARTS)}; got "
                f"{tied_embeddings!r}."
            )

        # === Layers ===
        self.discriminator = Discriminator(
            self.with_padding(discriminator),
            dtype=self.dtype_policy,
            name="discriminator",
        )
        shared = self.discriminator.encoder
        generator = {
            **shared.architecture,
            **generator,
            "embedding_size": shared.embedding_size,
        }
        self.generator = MaskedLMNetwork(
            {**generator, "tied_to": shared, "tied_parts": TIED_PARTS[tied_embeddings]},
            dtype=self.dtype_policy,
            name="generator",
        )

        # === Config ===
        self.tied_embeddings = tied_embeddings
        self.rtd_weight = rtd_weight
        self.loss_weights = {"mlm": 1.0, "rtd": rtd_weight}
        self.built = True

    def call(self, inputs, training=False):
        inputs = self.text_inputs(inputs, training)
        outputs = self.corrupt(inputs, training)
        rtd_logits = self.discriminator(
            {**inputs, "token_ids": outputs["corrupted_ids"]}, training=training
        )
        return {**outputs, "rtd_logits": rtd_logits}

    def forward_flops(self, length):
        return cost.forward_flops(self.get_config(), length)

    def activation_bytes(self, batch_size, length):
        sizes = batch_size, length, self.number_bytes
        return cost.activation_bytes(self.get_config(), *sizes)

    def get_config(self):
        return {
            **super().get_config(),
            "generator": self.generator.encoder.architecture,
            "tied_embeddings": self.tied_embeddings,
            "rtd_weight": self.rtd_weight,
        }
