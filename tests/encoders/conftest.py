"""Programs whose operations a compiler counts."""

import jax
import jax.numpy as jnp

LENGTH = 24
ENCODER = {
    "vocabulary_size": 90,
    "num_layers": 2,
    "hidden_size": 32,
    "intermediate_size": 80,
    "num_heads": 4,
    "embedding_size": 16,
    "max_length": 40,
}


def dense(x, inputs, outputs):
    return x @ jnp.ones((inputs, outputs)) + jnp.ones(outputs)


def layer_norm(x):
    x = x - x.mean(-1, keepdims=True)
    x = x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-12)
    return x * jnp.ones(x.shape[-1]) + jnp.ones(x.shape[-1])


def gelu(x):
    return 0.5 * x * (1 + jnp.tanh(0.8 * (x + 0.045 * (x * x * x))))


def softmax(x):
    x = jnp.exp(x - x.max(-1, keepdims=True))
    return x / x.sum(-1, keepdims=True)


def counted(function, *shapes):
    """Returns what a compiler counts, for arguments of these shapes."""
    arguments = [jax.ShapeDtypeStruct(shape, "float32") for shape in shapes]
    cost = jax.jit(function).lower(*arguments).cost_analysis()
    return cost["flops"] + cost["transcendentals"]
