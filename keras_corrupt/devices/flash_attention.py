"""cuDNN's flash attention, which keeps no array of `[length, length]`, on JAX.

It has neither dropout nor gradients of a bias that differs from text to text. Keras
calls it by itself, but for a mask without a row for each query it falls back to its own
form without a word, so that the mask is broadcast here. The heads share one such mask.
"""

import functools

import keras

#: cuDNN computes heads of up to 128 numbers, in eights.
_LARGEST_HEAD, _MULTIPLE = 128, 8


@functools.cache
def is_available():
    """Returns whether JAX computes on an NVIDIA GPU from Ampere on."""
    if keras.backend.backend() != "jax":
        return False
    import jax

    device = jax.devices()[0]
    if device.platform != "gpu" or "NVIDIA" not in device.device_kind:
        return False
    return float(device.compute_capability) >= 8.0


def applies(query, mask):
    """Returns whether cuDNN has a kernel for queries and a mask.

    Args:
        query: `[batch, length, heads, size]`.
        mask: Boolean, broadcastable to `[batch, 1, length, length]`.
    """
    length, _, size = query.shape[1:]
    return (
        is_available()
        and keras.backend.standardize_dtype(query.dtype) in ("bfloat16", "float16")
        and size <= _LARGEST_HEAD
        and size % _MULTIPLE == 0
        and length % 2 == 0  # with a mask
    )


def attend(query, key, value, mask):
    """Attends, as `keras.ops.dot_product_attention` does.

    Args:
        query: bfloat16 or float16 `[batch, length, heads, size]`.
        key: Likewise.
        value: Likewise.
        mask: Boolean, broadcastable to `[batch, 1, length, length]`.

    Returns:
        `[batch, length, heads, size]`.
    """
    import jax

    batch, length = query.shape[:2]
    mask = jax.numpy.broadcast_to(mask, (batch, 1, length, length))
    return jax.nn.dot_product_attention(
        query, key, value, mask=mask, implementation="cudnn"
    )
