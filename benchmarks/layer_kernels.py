"""The kernels of Transformer layers on a GPU: how exact and how fast they are.

    export KERAS_BACKEND=jax
    python -m benchmarks.layer_kernels
    python -m benchmarks.layer_kernels --shapes 4x64x128

Compares a layer's output and gradients in bfloat16, with the kernels and in the plain
form, with the plain form in float32; all drop the same numbers. Times are of a forward
and a backward pass. On a CPU all is float32, and the kernels are interpreted, slowly.
"""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import keras
import numpy as np
import tyro

from benchmarks.dropout_attention import milliseconds
from keras_corrupt.devices.guests import replaced
from keras_corrupt.encoders.transformer_layer import TransformerLayer
from keras_corrupt.gpu_kernels.transformer import transformer_layer

#: Attention's weights are not dropped: its kernel drops others than the plain form.
HEAD, DROPOUT = 64, 0.1


@dataclasses.dataclass
class Settings:
    """What to compute."""

    shapes: tuple[str, ...] = ("128x128x256", "16x512x768", "128x128x64")
    """Texts, tokens and width."""
    times: int = 50
    """Passes that are timed."""


def step_of(hidden, dtype, mask, weights):
    """Returns a compiled function of an input: a layer's output, and all gradients."""
    keras.utils.set_random_seed(0)  # the same weights, and the same dropout
    layer = TransformerLayer(
        hidden, 4 * hidden, hidden // HEAD, DROPOUT, 0.0, dtype=dtype
    )
    layer.build()
    rng = np.random.default_rng(1)
    for variable in layer.trainable_variables:
        variable.assign(rng.normal(variable, 0.05))
    state = [v.value for v in layer.non_trainable_variables]

    def loss(trainable, x):
        found, _ = layer.stateless_call(trainable, state, x, mask, training=True)
        return (found.astype("float32") * weights).sum(), found

    trainable = [v.value for v in layer.trainable_variables]
    step = jax.jit(jax.value_and_grad(loss, (0, 1), has_aux=True))

    def function(x):
        (_, found), (of_weights, of_input) = step(trainable, x)
        gradients = [gradient.ravel() for gradient in (of_input, *of_weights)]
        return found, jnp.concatenate([g.astype("float32") for g in gradients])

    return function


def row(shape, settings):
    """Returns a row of the table."""
    rng = np.random.default_rng(0)
    x, weights = rng.normal(size=(2, *shape)).astype("float32")
    lengths = rng.integers(shape[1] // 2, shape[1] + 1, shape[0])
    mask = jnp.asarray(np.arange(shape[1]) < lengths[:, None])[:, None, None]
    on_cpu = jax.default_backend() == "cpu"
    dtype = "float32" if on_cpu else "mixed_bfloat16"
    x = jnp.asarray(x, "bfloat16").astype("float32" if on_cpu else "bfloat16")
    kernels = {
        TransformerLayer.call: functools.partial(transformer_layer, interpret=on_cpu)
    }
    with jax.default_matmul_precision("highest"):
        exact = step_of(shape[-1], "float32", mask, weights)(x.astype("float32"))
    cells, times = [" x ".join(map(str, shape))], []
    for calls in (kernels, {}):
        step = step_of(shape[-1], dtype, mask, weights)
        with replaced(calls):
            found = step(x)
        errors = [
            float(jnp.linalg.norm(one.astype("float32") - right))
            / float(jnp.linalg.norm(right))
            for one, right in zip(found, exact, strict=True)
        ]
        cells += [f"{error:.1e}" for error in errors]
        times.append(f"{milliseconds(step, [x], settings.times):.3f} ms")
    return " | ".join([*cells, *times])


def main(settings):
    print("| shape | kernels: output | gradients | plain: output | gradients", end="")
    print(" | kernels | plain |\n|---|---:|---:|---:|---:|---:|---:|")
    for shape in settings.shapes:
        print(f"| {row(tuple(map(int, shape.split('x'))), settings)} |", flush=True)
    print(f"\n{jax.devices()[0].device_kind}, JAX {jax.__version__}; relative errors")


if __name__ == "__main__":
    main(tyro.cli(Settings, description=__doc__, use_underscores=True))
