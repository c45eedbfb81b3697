"""Electric: a cloze model that gives every token an energy, in one pass."""

import keras
import numpy as np
from keras import ops

from keras_corrupt.corruption import Masking, maskable_tokens, num_chosen
from keras_corrupt.models.electric import objective
from keras_corrupt.models.electric.heads import EnergyNetwork
from keras_corrupt.models.electric.presets import PRESETS
from keras_corrupt.models.loss import check_weight
from keras_corrupt.models.masked_lm.objective import masked_lm_loss
from keras_corrupt.models.two_tower.detection import TwoTowerDetection


@keras.saving.register_keras_serializable(package="keras_corrupt")
class Electric(TwoTowerDetection):
    """Pretrains an energy-based cloze model by noise-contrastive estimation.

    Clark's thesis, 5.1.2 to 5.1.5. In each step samples of a two-tower model, the noise
    distribution q, take the places of some tokens, and from the energy of each token
    and q of it follows the probability that it is a sample. What makes that right is
    an energy of -log p(x_t | all other tokens). Both networks train together; q is a
    constant to the discriminator. The discriminator's encoder is the result, and, for
    scoring texts, its energies are.

    Inputs are as for `MaskedLM`.

    Args:
        discriminator: Constructor arguments of the discriminator's
            `TransformerEncoder`.
        generator: Those of each tower of the generator, where they differ: its layers'
            number and sizes.
        mask_rate: Fraction of tokens in whose place samples stand. None is masked.
        nce_weight: Weight of noise-contrastive estimation beside the generator's loss.
            The thesis does not give it; 50 is the released code's, as in ELECTRA.
        kwargs: Those of `Pretrainer`.

    Example:

    >>> import numpy as np
    >>> import keras_corrupt
    >>> model = keras_corrupt.models.Electric.from_preset("tiny")
    >>> ids = np.array([[101] + [7] * 30 + [102]], "int32")
    >>> tuple(model(ids)["energies"].shape)
    (1, 32)
    """

    presets = PRESETS
    loss_weights = {"cloze": 1.0, "nce": 50.0}
    metric_names = {
        **TwoTowerDetection.metric_names,
        "energy": "mean energy of original tokens (nats)",
    }
    examples_legend = (
        "[original > sample p]: a sample, and the discriminator's\nprobability of "
        "that; <token p>: wrongly suspected"
    )
    discriminator_class = EnergyNetwork

    def __init__(
        self, discriminator, generator, mask_rate=0.15, nce_weight=50.0, **kwargs
    ):
        super().__init__(discriminator, generator, mask_rate=mask_rate, **kwargs)
        check_weight("nce_weight", nce_weight)
        self.energy = keras.metrics.Mean(name="energy")

        # === Config ===
        self.nce_weight = nce_weight
        self.loss_weights = {"cloze": 1.0, "nce": nce_weight}
        self.built = True

    def call(self, inputs, training=False):
        inputs = self.text_inputs(inputs, training)
        outputs = self.corrupt(inputs, training)
        masking = Masking(outputs["masked_positions"], outputs["masked_weights"])
        energies = self.discriminator(
            {**inputs, "token_ids": outputs["corrupted_ids"]}, training=training
        )
        sampled_losses = masked_lm_loss(
            outputs["sampled_logits"], outputs["sampled_ids"]
        )
        learned = outputs["cloze_weights"]
        sampled = objective.sampled_labels(masking, ops.shape(energies)[1])
        logits = objective.noise_logits(
            energies,
            objective.log_noise(outputs["cloze_losses"], sampled_losses, masking),
            ops.sum(masking.weights, axis=1),
            ops.sum(learned, axis=1),
        )
        return {
            **outputs,
            "energies": energies,
            "rtd_logits": logits,
            "replaced": sampled,
            "rtd_weights": learned,
        }

    def loss_terms(self, outputs):
        nce = objective.nce_loss(outputs["rtd_logits"], outputs["replaced"])
        return {**super().loss_terms(outputs), "nce": (nce, outputs["rtd_weights"])}

    def update_metrics(self, outputs):
        super().update_metrics(outputs)
        original = outputs["rtd_weights"] * (1.0 - outputs["replaced"])
        self.energy.update_state(outputs["energies"], original)

    def token_log_probabilities(self, inputs):
        """Returns -E(x)_t, of one pass: normalised as far as the model has learned."""
        return -self.discriminator(inputs)

    def detect(self, inputs):
        """Returns the logits of "a sample" of a text as it is; see the base class."""
        inputs = self.text_inputs(inputs)
        states = self.generator.predict_on_batch(inputs)
        log_q = self.generator.head.log_probabilities(states, inputs["token_ids"])
        energies = self.discriminator.predict_on_batch(inputs)
        maskable = maskable_tokens(inputs, self.unmaskable_ids)
        # As many as training would replace.
        counts = num_chosen(inputs, maskable, self.mask_rate)
        logits = objective.noise_logits(energies, log_q, *counts)
        # Special tokens have no energies that mean anything, and are never replaced.
        return np.where(np.array(maskable), np.array(logits), -np.inf)

    # === What a run shows ===

    def baselines(self, metrics, unigram):
        energy = {"energy": (unigram.loss, "unigram")}
        return {**super().baselines(metrics, unigram), **energy}

    def get_config(self):
        return {**super().get_config(), "nce_weight": self.nce_weight}
