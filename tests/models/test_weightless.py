import keras
import numpy as np
import pytest
from keras.src.backend.common import global_state

from keras_corrupt.models import Electra
from keras_corrupt.models.weightless import weightless


def waiting():
    return global_state.get_global_attribute("uninitialized_variables")


def test_models_are_those_with_weights(sizes):
    with weightless():
        model = Electra(**sizes)
    assert all(variable._value is None for variable in model.weights)
    whole = Electra(**sizes)
    assert [v.path for v in model.weights] == [v.path for v in whole.weights]
    assert [v.shape for v in model.weights] == [v.shape for v in whole.weights]
    assert model.count_params() == whole.count_params()
    assert model.forward_flops(20) == whole.forward_flops(20)
    assert model.activation_bytes(6, 20) == whole.activation_bytes(6, 20)


def test_nothing_is_left(sizes, inputs):
    with pytest.raises(ZeroDivisionError), weightless():
        model = Electra(**sizes)
        _ = 1 / 0
    assert not waiting()
    with keras.StatelessScope():  # whose end gives waiting variables their values
        pass
    assert all(variable._value is None for variable in model.weights)
    # Models that are made after it have weights, and run.
    outputs = Electra(**sizes)(inputs)
    assert np.isfinite(np.array(outputs["rtd"].logits)).all()


def test_variables_that_waited_before_go_on_waiting():
    with keras.StatelessScope():
        layer = keras.layers.Dense(2)
        layer.build((None, 3))
        with weightless():
            keras.layers.Dense(4).build((None, 3))
        assert len(waiting()) == 2
    assert layer.kernel.numpy().shape == (3, 2)
