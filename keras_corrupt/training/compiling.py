"""How models are compiled for training."""

import keras

from keras_corrupt.devices.accelerators import accelerators
from keras_corrupt.training.muon import OPTIMIZERS
from keras_corrupt.training.phases import WHOLE_RUN, Phase
from keras_corrupt.training.stable import schedule_of


def compile_model(model, config, strategy="none", phase=None):
    """Compiles `model` for training and makes the optimizer's variables.

    Args:
        model: The model.
        config: A `PretrainConfig`.
        strategy: The `Distribution`'s strategy.
        phase: The `Phase` to train; the whole run if not given.
    """
    phase = phase or Phase(WHOLE_RUN, config.steps)
    optimizer = OPTIMIZERS[config.optimizer](
        schedule_of(phase, config),
        weight_decay=config.weight_decay,
        beta_1=config.beta_1,
        beta_2=config.beta_2,
        epsilon=config.epsilon,
        bias_correction=config.bias_correction,
        global_clipnorm=config.clip_norm or None,
        use_ema=bool(config.ema),
        ema_momentum=config.ema or 0.99,
    )
    model.compile(optimizer=optimizer, jit_compile=compiles_with_xla(strategy))
    optimizer.build(model.trainable_variables)


def compiles_with_xla(strategy="none"):
    """Whether to compile whole steps.

    Not on CPUs, where TensorFlow is faster, nor under its strategies, whose steps span
    several devices.
    """
    if strategy in ("mirrored", "tpu"):
        return False
    return keras.backend.backend() != "tensorflow" or bool(accelerators())
