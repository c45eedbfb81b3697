"""The optimizer of a run: the thesis's, or the one that fine-tunes an encoder."""

import dataclasses

import keras

from keras_corrupt.downstream import optimizer as fine_tuning
from keras_corrupt.downstream.finetuner import pretraining_class
from keras_corrupt.models.fine_tuning import size_of
from keras_corrupt.training.schedules import InverseRootDecay, LateLinearDecay
from keras_corrupt.training.sgd import SGD


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
