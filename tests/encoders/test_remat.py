"""What is computed again in the backward pass changes memory, and no number."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_corrupt.encoders import TransformerEncoder
from keras_corrupt.encoders.transformer_layer import REMAT
from keras_corrupt.models import Electra
from tests.conftest import SIZES, gradients_of, make_inputs

CONFIG = {
    **SIZES["discriminator"],
    "relative_positions": {"num_buckets": 8, "max_distance": 16},
    "dropout": 0.3,
    "attention_dropout": 0.4,
}
#: `[batch, heads, length, length]`
PAIRS = (6, 2, 20, 20)


def made(remat):
    """An encoder, the same each time, and a function of its loss with dropout."""
    keras.utils.set_random_seed(0)
    encoder = TransformerEncoder(**CONFIG, remat=remat)
    inputs, rng = make_inputs(), np.random.default_rng(0)
    weights = rng.normal(size=(6, 20, 16)).astype("float32")
    return encoder, lambda: ops.mean(encoder(inputs, training=True) * weights)


def test_gradients_are_the_same():
    def gradients(remat):
        encoder, loss = made(remat)
        found = gradients_of(loss, encoder)
        # Variables are listed in the same order; their ids differ.
        return [found[id(v)] for v in encoder.trainable_variables]

    expected = gradients("none")
    assert all(np.abs(g).max() > 0 for g in expected)
    for remat in ("attention", "layer"):
        for one, other in zip(gradients(remat), expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("remat", ["attention", "layer"])
def test_gradients_are_the_same_in_a_graph(remat):
    import tensorflow as tf

    def gradients(remat):
        encoder, loss = made(remat)

        @tf.function
        def compute():
            with tf.GradientTape() as tape:
                value = loss()
            variables = [v.value for v in encoder.trainable_variables]
            return [tf.convert_to_tensor(g) for g in tape.gradient(value, variables)]

        return compute()

    for one, other in zip(gradients(remat), gradients("none"), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)


@pytest.mark.skipif(keras.backend.backend() != "jax", reason="JAX tells what is kept")
def test_no_attention_weights_are_kept():
    import jax

    def kept(remat):
        encoder, loss = made(remat)
        variables = encoder.trainable_variables

        def stateless(values):
            with keras.StatelessScope([*zip(variables, values, strict=True)]):
                return loss()

        _, backward = jax.vjp(stateless, [v.value for v in variables])
        return [leaf for leaf in jax.tree.leaves(backward) if hasattr(leaf, "shape")]

    found = {remat: kept(remat) for remat in REMAT}
    pairs = {r: sum(x.shape == PAIRS for x in found[r]) for r in REMAT}
    assert pairs["none"] >= 2 * CONFIG["num_layers"]
    assert pairs["attention"] == pairs["layer"] == 0
    size = {remat: sum(x.size for x in found[remat]) for remat in REMAT}
    assert size["layer"] < size["attention"] < size["none"]


def test_both_networks_of_a_preset_have_it(sizes, tmp_path):
    sizes["discriminator"]["remat"] = "layer"
    Electra(**sizes).save_to_preset(tmp_path / "preset")
    model = Electra.from_preset(tmp_path / "preset")
    for network in (model.generator, model.discriminator):
        assert {layer.remat for layer in network.encoder.layers_} == {"layer"}
    with pytest.raises(ValueError, match="`remat` must be one of"):
        Electra.from_preset(tmp_path / "preset", discriminator={"remat": "all"})
