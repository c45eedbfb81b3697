import keras
import tensorflow as tf

from keras_corrupt.devices.accelerators import leave_to_jax


def test_jax_has_the_gpus_to_itself(monkeypatch):
    hidden = []
    monkeypatch.setattr(tf.config, "get_visible_devices", lambda kind: [f"{kind}:0"])
    monkeypatch.setattr(
        tf.config, "set_visible_devices", lambda *given: hidden.append(given)
    )
    leave_to_jax()
    is_jax = keras.backend.backend() == "jax"
    assert hidden == ([([], "GPU")] if is_jax else [])
