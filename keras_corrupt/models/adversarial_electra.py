"""ELECTRA whose generator is trained to mislead the discriminator."""

import keras
from keras import ops

from keras_corrupt.corruption.corrupters import predictions
from keras_corrupt.encoders.embeddings import initializer
from keras_corrupt.models.electra import Electra
from keras_corrupt.models.networks import MaskedLMNetwork
from keras_corrupt.objectives.loss import check_weight
from keras_corrupt.objectives.masked_tokens import MaskedTokens
from keras_corrupt.objectives.reinforce import Baseline, Reinforce


class AdversarialGenerator(MaskedLMNetwork):
    """A masked language model that also foretells its reward at each position.

    Args:
        encoder: A `TransformerEncoder`, or its constructor arguments.
    """

    def __init__(self, encoder, **kwargs):
        super().__init__(encoder, **kwargs)
        self.baseline = keras.layers.Dense(
            1,
            use_bias=False,
            kernel_initializer=initializer(self.encoder.initializer_range),
            dtype="float32",
            name="baseline",
        )
        self.baseline.build((None, None, self.encoder.hidden_size))

    def both(self, inputs, positions, training=False):
        """Predicts tokens and rewards at `positions`.

        Args:
            inputs: The encoder's inputs.
            positions: int32 `[batch, masked]`.
            training: Whether dropout is active.

        Returns:
            float32 logits, `[batch, masked, vocabulary]` and `[batch, masked]`; no
            gradient of the latter reaches the encoder.
        """
        hidden = self.encoder(inputs, training=training)
        states = ops.take_along_axis(hidden, positions[..., None], axis=1)
        rewards = self.baseline(ops.stop_gradient(states))[..., 0]
        return self.head(hidden, positions), rewards


@keras.saving.register_keras_serializable(package="keras_corrupt")
class AdversarialElectra(Electra):
    """Pretrains a discriminator against a generator that tries to raise its loss.

    Clark's thesis, 5.3.4. As samples have no gradient, the generator learns by
    reinforcement (REINFORCE): the reward of a sample is the discriminator's loss there,
    less what a learned baseline expects of it. It is told of no original token; the
    masked language model's loss is only measured. `Electra` is the better one in the
    thesis.

    Inputs are as for `MaskedLM`.

    Args:
        discriminator: The discriminator's `TransformerEncoder`, or its constructor
            arguments.
        generator: The generator's, where they differ: its layers' number and sizes.
        reinforce_weight: Weight of the generator's loss; the thesis does not give it.
        kwargs: Arguments of `Electra`, but for `temperature` and `exclude_original`.

    Raises:
        ValueError: Samples are not to be drawn from the generator's own softmax.

    Example:

    >>> import numpy as np
    >>> import keras_corrupt
    >>> model = keras_corrupt.models.AdversarialElectra.from_preset("tiny")
    >>> ids = np.array([[101] + [7] * 30 + [102]], "int32")
    >>> tuple(model(ids)["baseline_logits"].shape)  # five masked positions
    (1, 5)
    """

    generator_class = AdversarialGenerator

    def __init__(self, discriminator, generator, reinforce_weight=1.0, **kwargs):
        super().__init__(discriminator, generator, **kwargs)
        options = self.corrupter.options
        if options["temperature"] != 1 or options["exclude_original"]:
            raise ValueError(
                "AdversarialElectra learns from its generator's own softmax: "
                f"leave out `temperature={options['temperature']!r}` and "
                f"`exclude_original={options['exclude_original']!r}`."
            )
        check_weight("reinforce_weight", reinforce_weight)
        self.learn_by(
            mlm=MaskedTokens(weight=0.0, network="generator"),
            reinforce=Reinforce(weight=reinforce_weight, network="generator"),
            baseline=Baseline(network="generator"),
            rtd=self.objectives["rtd"],
        )

    def call(self, inputs, training=False):
        inputs = self.text_inputs(inputs, training)
        masked, masking = self.corrupter.mask(inputs)
        logits, rewards = self.generator.both(masked, masking.positions, training)
        corrupted = self.corrupter.fill(inputs["token_ids"], masking, logits)
        return {
            "corrupted": corrupted,
            "mlm": predictions(masked, corrupted, logits),
            "baseline_logits": rewards,
            **self.discriminate(inputs, corrupted, training),
        }

    def get_config(self):
        weight = self.objectives["reinforce"].weight
        return {**super().get_config(), "reinforce_weight": weight}
