"""All-Tokens MLM: a language model of all tokens that copies what was not replaced.

    p(x_t | x~) = D(x~)_t 1[x_t = x~_t] + (1 - D(x~)_t) softmax(x_t | x~)
    L           = L_MLM + mean over tokens t of -log p(x_t | x~)

Clark's thesis, 5.4.3. x is the text, x~ the text with the generator's samples, D the
probability of copying, and L_MLM the generator's loss. The mixture is of
`objectives/all_tokens.py`.
"""

import keras

from keras_corrupt.heads import VocabularyHead
from keras_corrupt.models.generator_discriminator import GeneratorDiscriminator
from keras_corrupt.models.networks import Discriminator, masked_lm_generator
from keras_corrupt.models.sizes import DETECTORS
from keras_corrupt.objectives.all_tokens import AllTokens
from keras_corrupt.objectives.loss import check_weight
from keras_corrupt.objectives.masked_tokens import MaskedTokens
from keras_corrupt.objectives.replaced_tokens import Detections, ReplacedTokens

#: Sizes: Clark's thesis, table 5.1, which are ELECTRA's (5.4.3; `tiny` is ours).
PRESETS = DETECTORS


class CopyingNetwork(Discriminator):
    """A discriminator, which tells what to copy, and a softmax for the rest.

    Args:
        encoder: A `TransformerEncoder`, or its constructor arguments.
    """

    def __init__(self, encoder, **kwargs):
        super().__init__(encoder, **kwargs)
        self.vocabulary_head = VocabularyHead(
            self.encoder, dtype=self.dtype_policy, name="vocabulary_head"
        )

    def flops(self, length, num_masked=0, training=False):
        softmax = self.vocabulary_head.flops(length)
        return softmax + super().flops(length, num_masked, training)

    def activation_bytes(self, batch_size, length, num_masked, number_bytes):
        sizes = batch_size, length, num_masked, number_bytes
        logits = self.vocabulary_head.chunk_bytes(batch_size, length)
        return logits + super().activation_bytes(*sizes)


@keras.saving.register_keras_serializable(package="keras_corrupt")
class AllTokensMLM(GeneratorDiscriminator):
    """Pretrains a network to predict all tokens of a text, some of them replaced.

    Clark's thesis, 5.4.3, where it stands between BERT and ELECTRA. A generator's
    samples take the places of some tokens, and the network predicts every token of the
    original, by copying what it reads with a probability that it learns, and else by
    a softmax. The mixture alone is its loss, and teaches it what to copy.
    Both networks train together, and share token and position embeddings as in ELECTRA.

    Inputs are as for `MaskedLM`. Its `Detections`, and the metrics of replaced token
    detection, tell what it does not copy.

    Args:
        discriminator: The `TransformerEncoder` that is kept, or its constructor
            arguments; it is called as in ELECTRA.
        generator: The generator's, where they differ: its layers' number and sizes.
        mask_rate: Fraction of tokens to replace.
        lm_weight: Weight of all tokens' prediction beside the generator's loss; the
            thesis does not give it.
        keep_rate: Fraction of the chosen positions that keep their token in the
            generator's input.
        temperature: By what the logits are divided before tokens are drawn from their
            softmax: above 1, the generator is a weaker one (thesis, 5.5).
        exclude_original: Whether the original token is never drawn (5.5).
        kwargs: Arguments of `Pretrainer`.

    Example:

    >>> import numpy as np
    >>> import keras_corrupt
    >>> model = keras_corrupt.models.AllTokensMLM.from_preset("tiny")
    >>> ids = np.array([[101] + [7] * 30 + [102]], "int32")
    >>> tuple(model(ids)["log_softmax"].shape)  # of the original tokens
    (1, 32)
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
        self.discriminator = CopyingNetwork(
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
            mlm=MaskedTokens(network="generator"),
            rtd=ReplacedTokens(weight=None),
            lm=AllTokens(weight=lm_weight),
        )

    def call(self, inputs, training=False):
        inputs = self.text_inputs(inputs, training)
        corrupted, predictions = self.corrupter.corrupt(inputs, training)
        network = self.discriminator
        hidden = network.encoder(
            {**inputs, "token_ids": corrupted.token_ids}, training=training
        )
        return {
            "corrupted": corrupted,
            "mlm": predictions,
            "rtd": Detections(
                network.head(hidden), corrupted.replaced, inputs["padding_mask"]
            ),
            "log_softmax": network.vocabulary_head.log_probabilities(
                hidden, inputs["token_ids"]
            ),
        }

    def get_config(self):
        return {
            **super().get_config(),
            **self.corrupter.options,
            "generator": self.generator.encoder.architecture,
            "lm_weight": self.objectives["lm"].weight,
        }
