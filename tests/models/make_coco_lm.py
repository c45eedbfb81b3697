"""Small models of COCO-LM, and what their tests compute in NumPy."""

import keras
import numpy as np

from keras_corrupt.models import CocoLM
from tests.conftest import SIZES

NO_DROPOUT = {"dropout": 0.0, "attention_dropout": 0.0}
RELATIVE = {"num_buckets": 8, "max_distance": 16}
MAIN = SIZES["discriminator"] | {
    "num_layers": 2,
    "embedding_size": 16,
    "relative_positions": RELATIVE,
}
IDS = {"mask_id": 4}


def make(**kwargs):
    """A main network of two layers, an auxiliary one of one layer."""
    encoder = MAIN | NO_DROPOUT | kwargs.pop("encoder", {})
    generator = {"num_layers": 1} | kwargs.pop("generator", {})
    return CocoLM(encoder, generator, **{**IDS, **kwargs})


def scrambled(model):
    for i, v in enumerate(model.trainable_variables):
        v.assign(v + keras.random.normal(v.shape, stddev=0.3, seed=i))
    return model


def log_softmax(x):
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


def mean(values, weights):
    return (values * weights).sum() / weights.sum()
