"""Electric: a cloze model that gives every token an energy, in one pass."""

import keras
import numpy as np
from keras import ops

from keras_corrupt.corruption.corrupters import TwoTowerCorrupter
from keras_corrupt.heads.energy import EnergyHead
from keras_corrupt.models.generator_discriminator import GeneratorDiscriminator
from keras_corrupt.models.networks import Discriminator, two_tower_generator
from keras_corrupt.models.sizes import DETECTORS
from keras_corrupt.objectives.cloze import ClozeGenerator, ClozeLosses
from keras_corrupt.objectives.loss import check_weight
from keras_corrupt.objectives.masked_tokens import masked_lm_loss
from keras_corrupt.objectives.noise_contrastive import (
    NoiseContrastive,
    log_noise,
    noise_logits,
    sampled_labels,
)
from keras_corrupt.objectives.replaced_tokens import Detections

#: Sizes: Clark's thesis, table 5.1, which are ELECTRA's. Each of the generator's two
#: towers has the sizes of ELECTRA's generator (`tiny` is ours, for CPUs and tests).
PRESETS = DETECTORS


class EnergyNetwork(Discriminator):
    """An encoder with an energy at every position: `call` gives `[batch, length]`.

    Args:
        encoder: A `TransformerEncoder`, or its constructor arguments.
    """

    head_class = EnergyHead


@keras.saving.register_keras_serializable(package="keras_corrupt")
class Electric(GeneratorDiscriminator):
    """Pretrains an energy-based cloze model by noise-contrastive estimation.

    Clark's thesis, 5.1.2 to 5.1.5. In each step samples of a two-tower model, the noise
    distribution q, take the places of some tokens, and from the energy of each token
    and q of it follows the probability that it is a sample. What makes that right is
    an energy of -log p(x_t | all other tokens). Both networks train together; q is a
    constant to the discriminator. The discriminator's encoder is the result, and, for
    scoring texts, its energies are.

    Inputs are as for `MaskedLM`.

    Args:
        discriminator: The discriminator's `TransformerEncoder`, or its constructor
            arguments.
        generator: Arguments of the generator's towers, where they differ: its layers'
            number and sizes.
        mask_rate: Fraction of tokens in whose place samples stand. None is masked.
        nce_weight: Weight of noise-contrastive estimation beside the generator's loss.
            The thesis does not give it; 50 is the released code's, as in ELECTRA.
        kwargs: Arguments of `Pretrainer`.

    Example:

    >>> import numpy as np
    >>> import keras_corrupt
    >>> model = keras_corrupt.models.Electric.from_preset("tiny")
    >>> ids = np.array([[101] + [7] * 30 + [102]], "int32")
    >>> tuple(model(ids)["energies"].shape)
    (1, 32)
    """

    presets = PRESETS

    def __init__(
        self, discriminator, generator, mask_rate=0.15, nce_weight=50.0, **kwargs
    ):
        super().__init__(discriminator, mask_rate=mask_rate, **kwargs)
        check_weight("nce_weight", nce_weight)
        self.discriminator = EnergyNetwork(
            self.with_padding(discriminator),
            dtype=self.dtype_policy,
            name="discriminator",
        )
        self.generator = two_tower_generator(
            self.discriminator.encoder, generator, self.dtype_policy
        )
        self.corrupter = TwoTowerCorrupter(self.generator, self.masker)
        self.learn_by(
            cloze=ClozeGenerator(network="generator"),
            nce=NoiseContrastive(weight=nce_weight),
        )

    def call(self, inputs, training=False):
        inputs = self.text_inputs(inputs, training)
        corrupted, predictions, states = self.corrupter.corrupt(inputs, training)
        energies = self.discriminator(
            {**inputs, "token_ids": corrupted.token_ids}, training=training
        )
        losses = self.generator.head.loss(states, inputs["token_ids"])
        learned = ops.cast(self.masker.maskable(inputs), "float32")
        sampled_losses = masked_lm_loss(predictions.logits, corrupted.sampled_ids)
        logits = noise_logits(
            energies,
            log_noise(losses, sampled_losses, corrupted.masking),
            ops.sum(corrupted.masking.weights, axis=1),
            ops.sum(learned, axis=1),
        )
        sampled = sampled_labels(corrupted.masking, ops.shape(energies)[1])
        return {
            "corrupted": corrupted,
            "predictions": predictions,
            "cloze": ClozeLosses(losses, learned),
            "energies": energies,
            "rtd": Detections(logits, sampled, learned),
        }

    def token_log_probabilities(self, inputs):
        """Returns -E(x)_t, of one pass: normalised as far as the model has learned."""
        return -self.discriminator(inputs)

    def detect(self, inputs):
        """Returns the logits of "a sample" of a text as it is; see the base class.

        A sample is a word that the model's own generator drew. A word that it would
        hardly draw at its place, such as a random one, counts as genuine.
        """
        inputs = self.text_inputs(inputs)
        states = self.generator.predict_on_batch(inputs)
        log_q = self.generator.head.log_probabilities(states, inputs["token_ids"])
        energies = self.discriminator.predict_on_batch(inputs)
        # As many as training would replace.
        logits = noise_logits(energies, log_q, *self.masker.counts(inputs))
        maskable = self.masker.maskable(inputs)
        # Special tokens have no energies that mean anything, and are never replaced.
        return np.where(np.array(maskable), np.array(logits), -np.inf)

    def get_config(self):
        return {
            **super().get_config(),
            "generator": self.generator.architecture,
            "nce_weight": self.objectives["nce"].weight,
        }
