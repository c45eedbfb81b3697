"""Programs whose operations a compiler counts, and parameters counted by hand."""

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


def encoder_parameters(encoder):
    """Counts the numbers of an encoder of these arguments by hand."""
    hidden, inner = encoder["hidden_size"], encoder["intermediate_size"]
    size = encoder["embedding_size"]
    total = (encoder["vocabulary_size"] + encoder["max_length"] + 2) * size
    total += 2 * size  # the norm's scale and offset
    if size != hidden:
        total += size * hidden + hidden
    if encoder.get("relative_positions"):
        total += encoder["relative_positions"]["num_buckets"] * encoder["num_heads"]
    attention, feed_forward = 4 * hidden * hidden + 4 * hidden, 2 * hidden * inner
    layer = attention + feed_forward + inner + hidden + 2 * 2 * hidden
    return total + encoder["num_layers"] * layer


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
