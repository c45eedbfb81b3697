"""How a run learns: by the thesis's optimizer, or one that fine-tunes an encoder."""

import dataclasses

import keras
import numpy as np

from keras_corrupt.downstream import optimizer as fine_tuning
from keras_corrupt.downstream.finetuner import pretraining_class
from keras_corrupt.models.fine_tuning import size_of
from keras_corrupt.training.compiling import compiles_with_xla
from keras_corrupt.training.schedules import InverseRootDecay, LateLinearDecay
from keras_corrupt.training.sgd import SGD


def compiled(model, config, task):
    """Returns a run's model with what it learns by, compiled, its optimizer built.

    Args:
        model: The model.
        config: A `CrossViewConfig`, complete.
        task: The task's name.
    """
    model.modules_learn_labels = config.labelled_first > 0
    if config.mean_teacher:
        model.learn_from_average(config.mean_teacher)
    optimizer = optimizer_of(config, model, task)
    model.compile(optimizer, jit_compile=compiles_with_xla())
    optimizer.build(model.trainable_variables)
    return model


def use_average(model):
    """Gives the model the average of its weights, if its optimizer keeps one."""
    model.optimizer.finalize_variable_values(model.trainable_variables)
    for variable in model.trainable_variables:
        # Copies: on JAX the averages' memory would be given away with the weights'.
        variable.assign(np.array(variable))


def optimizer_of(config, model, task):
    """Returns the optimizer of a run, which averages the weights.

    Args:
        config: A `CrossViewConfig`, complete.
        model: The model; with AdamW a `CrossViewTokenTagger`, with Adam one of images.
        task: The task's name.
    """
    average = {"use_ema": bool(config.ema), "ema_momentum": config.ema or 0.99}
    if config.optimizer == "sgd":
        return SGD(
            InverseRootDecay(config.learning_rate or 0.5, config.rate_decay),
            momentum=config.momentum,
            global_clipnorm=config.clip_norm or None,
            **average,
        )
    if config.optimizer == "adam":
        rate = LateLinearDecay(config.learning_rate, config.steps, 2 / 3)
        return keras.optimizers.Adam(
            rate, global_clipnorm=config.clip_norm or None, **average
        )
    tagger = model.tagger
    system = pretraining_class(tagger.pretrained_by)
    settings = system.fine_tuning(size_of(tagger.encoder), task)
    settings = dataclasses.replace(
        settings,
        learning_rate=config.learning_rate or settings.learning_rate,
        clip_norm=config.clip_norm,
        epochs=1,
    )
    return fine_tuning.optimizer_of(
        settings, config.steps, tagger.encoder.num_layers, **average
    )
