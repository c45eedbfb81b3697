"""Replace MLM: a masked language model that reads samples and not mask tokens.

    L = L_MLM + mean over masked positions t of -log p(x_t | x~)

Clark's thesis, 5.4.3. x is the text, x~ the text with a generator's samples at the
masked positions, and L_MLM the generator's loss. The losses are of
`objectives/masked_tokens.py` and `objectives/restored_tokens.py`.
"""

import keras

from keras_corrupt.models.generator_discriminator import GeneratorDiscriminator
from keras_corrupt.models.networks import MaskedLMNetwork, masked_lm_generator
from keras_corrupt.models.sizes import DETECTORS
from keras_corrupt.objectives.loss import check_weight
from keras_corrupt.objectives.masked_tokens import MaskedTokens
from keras_corrupt.objectives.restored_tokens import RestoredTokens

#: Sizes: Clark's thesis, table 5.1, which are ELECTRA's (5.4.3; `tiny` is ours).
PRESETS = DETECTORS


@keras.saving.register_keras_serializable(package="keras_corrupt")
class ReplaceMLM(GeneratorDiscriminator):
    """Pretrains a network to restore tokens for which others were substituted.

    Clark's thesis, 5.4.3, where it stands between BERT and ELECTRA: masked language
    modelling in which samples of a generator, and not mask tokens, take the places of
    the tokens to predict, as fine-tuning knows no mask tokens either. Both networks
    train together, and share token and position embeddings as in ELECTRA.

    Inputs are as for `MaskedLM`.

    Args:
        discriminator: The `TransformerEncoder` that is kept, or its constructor
            arguments; it is called as in ELECTRA.
        generator: The generator's, where they differ: its layers' number and sizes.
        mask_rate: Fraction of tokens to replace and to predict.
        lm_weight: Weight of the restoration beside the generator's loss; the thesis
            does not give it.
        keep_rate: Fraction of the chosen positions that keep their token in the
            generator's input.
        temperature: By what the logits are divided before tokens are drawn from their
            softmax: above 1, the generator is a weaker one (thesis, 5.5).
        exclude_original: Whether the original token is never drawn (5.5).
        kwargs: Arguments of `Pretrainer`.

    Example:

    >>> import numpy as np
    >>> import keras_corrupt
    >>> model = keras_corrupt.models.ReplaceMLM.from_preset("tiny")
    >>> ids = np.array([[101] + [7] * 30 + [102]], "int32")
    >>> tuple(model(ids)["lm"].shape)  # five masked positions
    (1, 5, 8192)
    """

    presets = PRESETS

    def __init__(
        self,
        discriminator,
        generator,
        mask_rate=0.15,
        lm_weight=1.0,
        keep_rate=0.0,
        temperature=1.0,
        exclude_original=False,
        **kwargs,
    ):
        super().__init__(discriminator, mask_rate=mask_rate, **kwargs)
        check_weight("lm_weight", lm_weight)
        self.discriminator = MaskedLMNetwork(
            self.with_padding(discriminator),
            dtype=self.dtype_policy,
            name="discriminator",
        )
        self.generator = masked_lm_generator(
            self.discriminator.encoder, generator, self.dtype_policy
        )
        self.corrupter = self.masked_lm_corrupter(
            keep_rate, temperature, exclude_original
        )
        self.learn_by(
            mlm=MaskedTokens(network="generator"), lm=RestoredTokens(weight=lm_weight)
        )

    def call(self, inputs, training=False):
        inputs = self.text_inputs(inputs, training)
        corrupted, predictions = self.corrupter.corrupt(inputs, training)
        lm_logits = self.discriminator(
            {**inputs, "token_ids": corrupted.token_ids},
            corrupted.masking.positions,
            training=training,
        )
        return {"corrupted": corrupted, "mlm": predictions, "lm": lm_logits}

    def get_config(self):
        return {
            **super().get_config(),
            **self.corrupter.options,
            "generator": self.generator.encoder.architecture,
            "lm_weight": self.objectives["lm"].weight,
        }
