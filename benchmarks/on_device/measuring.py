"""What a model in a compiled program has come to, on held-out examples."""

import jax
import keras

from keras_corrupt.encoders.token_spread import token_spread


def metrics_of(model, state, inputs):
    """Returns a model's metrics on held-out examples, and its `token_spread`.

    Args:
        model: A compiled model.
        state: Arrays of its trainable and its other variables, and of its metrics.
        inputs: The model's inputs, arrays `[batches, batch, length]`.
    """
    trainable, others, metrics = state

    def test(metrics, batch):
        state = trainable, others, metrics
        logs, (_, _, metrics) = model.test_step(state, (batch,))
        return [*metrics], logs

    _, logs = jax.lax.scan(test, metrics, inputs)
    first = {name: array[0] for name, array in inputs.items()}
    variables = zip(model.trainable_variables, trainable, strict=True)
    with keras.StatelessScope(state_mapping=[*variables]):
        states = model.token_states(first)
    spread = token_spread(states, first["padding_mask"]).mean()
    return {"token_spread": spread, **jax.tree.map(lambda x: x[-1], logs)}
