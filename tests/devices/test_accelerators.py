import keras
import numpy as np
import tensorflow as tf

from keras_corrupt.downstream.batches import as_dataset


def test_jax_has_the_gpus_to_itself(monkeypatch):
    hidden = []
    monkeypatch.setattr(tf.config, "get_visible_devices", lambda kind: [f"{kind}:0"])
    monkeypatch.setattr(
        tf.config, "set_visible_devices", lambda *given: hidden.append(given)
    )
    batch = np.zeros((2, 3), "int32")
    as_dataset(lambda: iter([batch]), batch, 1)
    is_jax = keras.backend.backend() == "jax"
    assert hidden == ([([], "GPU")] if is_jax else [])
