"""Attention with dropout that keeps no array of `[length, length]`, on GPUs with JAX.

cuDNN's kernel, as JAX calls it, draws the same dropout in every step. Ours draws by the
step's seed. It has no biases of the logits.

A GPU has run it with heads of 64 numbers (`benchmarks/results/accelerator_h200`), so
that such heads use it. The environment variable `KERAS_CORRUPT_DROPOUT_ATTENTION` turns
it on for all heads that it could compute, `kernel`, or off, `plain`.
"""

import os

import keras
import numpy as np
from keras import ops

from keras_corrupt.devices import flash_attention, hardware_random

#: The environment variable that says which heads use the kernel.
SWITCH = "KERAS_CORRUPT_DROPOUT_ATTENTION"
#: Value of the variable -> sizes of the heads.
_SIZES = {"": (64,), "kernel": (16, 32, 64, 128), "plain": ()}
#: What `attention_kernels` computes at once, which imports JAX.
_BLOCK = 64


def applies(query):
    """Returns whether a kernel attends for queries `[batch, length, heads, size]`.

    Raises:
        ValueError: The environment variable has none of its values.
    """
    length, _, size = query.shape[1:]
    if (choice := os.environ.get(SWITCH, "")) not in _SIZES:
        raise ValueError(f"{SWITCH} must be kernel, plain or not set; got {choice!r}.")
    return (
        size in _SIZES[choice]
        and flash_attention.is_available()
        and keras.backend.standardize_dtype(query.dtype) in ("bfloat16", "float16")
        and length % _BLOCK == 0
    )


def attend(query, key, value, mask, rate, seed, interpret=False):
    """Attends with dropout of the attention weights.

    Several devices of a `keras.distribution.DataParallel` draw as one device does.

    Args:
        query: `[batch, length, heads, size]`.
        key: Likewise.
        value: Likewise.
        mask: Boolean, broadcastable to `[batch, heads, length, length]`, of four axes.
        rate: The fraction of the weights that is dropped, a float below 1.
        seed: What the `next` of a `SeedGenerator` returned.
        interpret: Whether to compute without a GPU, slowly.

    Returns:
        `[batch, length, heads, size]`.
    """
    import jax

    from keras_corrupt.devices.attention_kernels import attention

    def attend_texts(query, key, value, mask, first, seed):
        return attention(query, key, value, mask, first, seed, rate, interpret)

    distribution, first = keras.distribution.distribution(), np.zeros(1, "int32")
    if distribution is not None:  # Each device computes its own texts.
        mesh = distribution.device_mesh.backend_mesh
        devices = mesh.shape[distribution.batch_dim_name]
        first = np.arange(devices, dtype="int32") * (query.shape[0] // devices)
        rows = jax.sharding.PartitionSpec(distribution.batch_dim_name)
        whole = jax.sharding.PartitionSpec()
        attend_texts = jax.shard_map(
            attend_texts,
            mesh=mesh,
            in_specs=(rows, rows, rows, rows, rows, whole),
            out_specs=rows,
            check_vma=False,
        )
        mask = ops.broadcast_to(mask, (query.shape[0], *mask.shape[1:]))
    return attend_texts(
        *(query, key, value, ops.cast(mask, "int8")),
        first,
        hardware_random.seed_of(seed),
    )
