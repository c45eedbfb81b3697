"""Replace MLM: a masked language model that reads samples and not mask tokens.

    L = L_MLM + mean over masked positions t of -log p(x_t | x~)

Clark's thesis, 5.4.3. x is the text, x~ the text with a generator's samples at the
masked positions, and L_MLM the generator's loss. Both losses are of
`masked_lm/objective.py`.
"""

import keras

from keras_corrupt.encoders import TransformerEncoder
from keras_corrupt.models.loss import check_weight
from keras_corrupt.models.masked_lm.masked_lm import MaskedLMNetwork
from keras_corrupt.models.masked_lm.objective import (
    correct_predictions,
    masked_lm_loss,
)
from keras_corrupt.models.replace_mlm.examples import describe_restorations
from keras_corrupt.models.replace_mlm.presets import PRESETS
from keras_corrupt.models.replaced_token_detection.masked_lm_generator import (
    MaskedLMGenerator,
)
from keras_corrupt.models.replaced_token_detection.sizes import complete_generator


@keras.saving.register_keras_serializable(package="keras_corrupt")
class ReplaceMLM(MaskedLMGenerator):
    """Pretrains a network to restore tokens for which others were substituted.

    Clark's thesis, 5.4.3, where it stands between BERT and ELECTRA: masked language
    modelling in which samples of a generator, and not mask tokens, take the places of
    the tokens to predict, as fine-tuning knows no mask tokens either. Both networks
    train together, and share token and position embeddings as in ELECTRA.

    Inputs are as for `MaskedLM`.

    Args:
        discriminator: Constructor arguments of the `TransformerEncoder` that is kept;
            it is called as in ELECTRA.
        generator: The generator's, where they differ: its layers' number and sizes.
        mask_rate: Fraction of tokens to replace and to predict.
        lm_weight: Weight of the restoration beside the generator's loss; the thesis
            does not give it.
        kwargs: Those of `MaskedLMGenerator`.

    Example:

    >>> import numpy as np
    >>> import keras_corrupt
    >>> model = keras_corrupt.models.ReplaceMLM.from_preset("tiny")
    >>> ids = np.array([[101] + [7] * 30 + [102]], "int32")
    >>> tuple(model(ids)["lm_logits"].shape)  # five masked positions
    (1, 5, 8192)
    """

    presets = PRESETS
    network_arguments = {
        "discriminator": TransformerEncoder,
        "generator": TransformerEncoder,
    }
    loss_weights = {"mlm": 1.0, "lm": 1.0}
    metric_names = {
        **MaskedLMGenerator.metric_names,
        "lm_loss": "restoration loss (nats)",
        "lm_accuracy": "restoration accuracy",
    }
    examples_legend = "[original > sample: what the model would write]"

    def __init__(
        self, discriminator, generator, mask_rate=0.15, lm_weight=1.0, **kwargs
    ):
        super().__init__(discriminator, mask_rate=mask_rate, **kwargs)
        check_weight("lm_weight", lm_weight)

        # === Layers ===
        discriminator = self.with_padding(discriminator)
        self.discriminator = MaskedLMNetwork(
            discriminator, dtype=self.dtype_policy, name="discriminator"
        )
        sizes = {"discriminator": discriminator, "generator": generator}
        self.generator = MaskedLMNetwork(
            {**complete_generator(sizes), "tied_to": self.discriminator.encoder},
            dtype=self.dtype_policy,
            name="generator",
        )
        self.lm_accuracy = keras.metrics.Mean(name="lm_accuracy")

        # === Config ===
        self.lm_weight = lm_weight
        self.loss_weights = {"mlm": 1.0, "lm": lm_weight}
        self.built = True

    def call(self, inputs, training=False):
        inputs = self.text_inputs(inputs, training)
        outputs = self.corrupt(inputs, training)
        lm_logits = self.discriminator(
            {**inputs, "token_ids": outputs["corrupted_ids"]},
            outputs["masked_positions"],
            training=training,
        )
        return {**outputs, "lm_logits": lm_logits}

    def loss_terms(self, outputs):
        lm = masked_lm_loss(outputs["lm_logits"], outputs["target_ids"])
        return {**super().loss_terms(outputs), "lm": (lm, outputs["masked_weights"])}

    def update_metrics(self, outputs):
        super().update_metrics(outputs)
        correct = correct_predictions(outputs["lm_logits"], outputs["target_ids"])
        self.lm_accuracy.update_state(correct, outputs["masked_weights"])

    # === What a run shows ===

    def describe_examples(self, inputs):
        return describe_restorations(self, inputs)

    def baselines(self, metrics, unigram):
        return {
            **super().baselines(metrics, unigram),
            "lm_loss": (unigram.loss, "unigram"),
            "lm_accuracy": (unigram.accuracy, "unigram"),
        }

    def get_config(self):
        return {
            **super().get_config(),
            "generator": self.generator.encoder.architecture,
            "lm_weight": self.lm_weight,
        }
