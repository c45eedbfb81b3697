import keras
import numpy as np
import pytest
from keras import ops

from keras_corrupt.cross_view.bilstm.lstm import lstm_outputs, lstm_step
from tests.conftest import gradients_of


@pytest.mark.parametrize("directions", [(), (2,)])
def test_gradients_are_those_of_going_word_by_word(directions):
    length, batch, hidden, size = 5, 3, 4, 2
    rng = np.random.default_rng(0)
    gates, upstream, output, cell, recurrent, projection = (
        rng.normal(size=shape).astype("float32")
        for shape in (
            (length, *directions, batch, 4 * hidden),
            (length, *directions, batch, size),
            (*directions, batch, size),
            (*directions, batch, hidden),
            (*directions, size, 4 * hidden),
            (*directions, hidden, size),
        )
    )
    layer = keras.layers.Layer()
    layer.arguments = [
        keras.Variable(x) for x in (gates, output, cell, recurrent, projection)
    ]

    def whole(gates, output, cell, recurrent, projection):
        return lstm_outputs(gates, (output, cell), recurrent, projection)

    def by_word(gates, output, cell, recurrent, projection):
        outputs = []
        for word in range(length):
            output, cell = lstm_step((output, cell), gates[word], recurrent, projection)
            outputs.append(output)
        return ops.stack(outputs)

    found = []
    for function in (whole, by_word):

        def loss(function=function):
            tensors = [ops.convert_to_tensor(x) for x in layer.arguments]
            return ops.sum(function(*tensors) * upstream)

        found.append([loss(), *gradients_of(loss, layer).values()])
    assert len(found[0]) == 6
    for a, b in zip(*found, strict=True):
        assert np.abs(np.array(b)).max() > 0.1
        np.testing.assert_allclose(a, b, atol=2e-5, rtol=1e-4)
