"""All-Tokens MLM: a language model of all tokens that copies what was not replaced.

    p(x_t | x~) = D(x~)_t 1[x_t = x~_t] + (1 - D(x~)_t) softmax(x_t | x~)
    L           = L_MLM + mean over tokens t of -log p(x_t | x~)

Clark's thesis, 5.4.3. x is the text, x~ the text with the generator's samples, D the
probability of copying, and L_MLM the generator's loss. The mixture is of
`replaced_token_detection/copying.py`.
"""

import keras

from keras_corrupt.encoders import TransformerEncoder
from keras_corrupt.models.all_tokens_mlm.heads import CopyingNetwork
from keras_corrupt.models.all_tokens_mlm.presets import PRESETS
from keras_corrupt.models.loss import check_weight
from keras_corrupt.models.masked_lm.masked_lm import MaskedLMNetwork
from keras_corrupt.models.replaced_token_detection.copying import (
    original_log_probability,
)
from keras_corrupt.models.replaced_token_detection.generator_discriminator import (
    ReplacedTokenDetection,
)
from keras_corrupt.models.replaced_token_detection.sizes import complete_generator


@keras.saving.register_keras_serializable(package="keras_corrupt")
class AllTokensMLM(ReplacedTokenDetection):
    """Pretrains a network to predict all tokens of a text, some of them replaced.

    Clark's thesis, 5.4.3, where it stands between BERT and ELECTRA. A generator's
    samples take the places of some tokens, and the network predicts every token of the
    original, by copying what it reads with a probability that it learns, and else by
    a softmax. Its loss is that of the mixture alone: what is copied, it learns by that.
    Both networks train together, and share token and position embeddings as in ELECTRA.

    Inputs are as for `MaskedLM`. `rtd_logits`, and the metrics of replaced token
    detection, are those of not copying.

    Args:
        discriminator: Constructor arguments of the `TransformerEncoder` that is kept;
            it is called as in ELECTRA.
        generator: The generator's, where they differ: its layers' number and sizes.
        mask_rate: Fraction of tokens to replace.
        lm_weight: Weight of all tokens' prediction beside the generator's loss; the
            thesis does not give it.
        kwargs: Those of `MaskedLMGenerator`.

    Example:

    >>> import numpy as np
    >>> import keras_corrupt
    >>> model = keras_corrupt.models.AllTokensMLM.from_preset("tiny")
    >>> ids = np.array([[101] + [7] * 30 + [102]], "int32")
    >>> tuple(model(ids)["log_softmax"].shape)  # of the original tokens
    (1, 32)
    """

    presets = PRESETS
    network_arguments = {
        "discriminator": TransformerEncoder,
        "generator": TransformerEncoder,
    }
    loss_weights = {"mlm": 1.0, "lm": 1.0}
    metric_names = {
        **ReplacedTokenDetection.metric_names,
        "lm_loss": "loss of all tokens (nats)",
    }

    def __init__(
        self, discriminator, generator, mask_rate=0.15, lm_weight=1.0, **kwargs
    ):
        super().__init__(discriminator, mask_rate=mask_rate, **kwargs)
        check_weight("lm_weight", lm_weight)

        # === Layers ===
        discriminator = self.with_padding(discriminator)
        self.discriminator = CopyingNetwork(
            discriminator, dtype=self.dtype_policy, name="discriminator"
        )
        sizes = {"discriminator": discriminator, "generator": generator}
        self.generator = MaskedLMNetwork(
            {**complete_generator(sizes), "tied_to": self.discriminator.encoder},
            dtype=self.dtype_policy,
            name="generator",
        )

        # === Config ===
        self.lm_weight = lm_weight
        self.loss_weights = {"mlm": 1.0, "lm": lm_weight}
        self.built = True

    def call(self, inputs, training=False):
        inputs = self.text_inputs(inputs, training)
        outputs = self.corrupt(inputs, training)
        hidden = self.discriminator.encoder(
            {**inputs, "token_ids": outputs["corrupted_ids"]}, training=training
        )
        return {
            **outputs,
            "rtd_logits": self.discriminator.head(hidden),
            "log_softmax": self.discriminator.vocabulary_head.log_probabilities(
                hidden, inputs["token_ids"]
            ),
        }

    def loss_terms(self, outputs):
        log_p = original_log_probability(
            outputs["log_softmax"],
            outputs["rtd_logits"],
            outputs["replaced"] == 0,
            stop_gradient=False,
        )
        return {**super().loss_terms(outputs), "lm": (-log_p, outputs["rtd_weights"])}

    # === What a run shows ===

    def get_config(self):
        return {
            **super().get_config(),
            "generator": self.generator.encoder.architecture,
            "lm_weight": self.lm_weight,
        }
