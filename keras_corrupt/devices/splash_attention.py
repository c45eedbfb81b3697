"""Splash attention, which keeps no array of `[length, length]`, on TPUs with JAX.

A kernel of JAX's own, for texts whose length is a multiple of 128. It has neither
dropout nor biases; of masks, those that hide the same keys from all queries are taken.
"""

import functools

import keras
from keras import ops

#: What a TPU computes at once; texts are cut into blocks of a multiple of it.
_LANES = 128
_BLOCKS = (512, 384, 256, _LANES)


@functools.cache
def is_available():
    """Returns whether JAX computes on a TPU."""
    if keras.backend.backend() != "jax":
        return False
    import jax

    return jax.devices()[0].platform == "tpu"


def applies(query, mask):
    """Returns whether there is a kernel for queries and a mask.

    Args:
        query: `[batch, length, heads, size]`.
        mask: Boolean, broadcastable to `[batch, heads, length, length]`.
    """
    hides_keys = tuple(mask.shape[1:3]) == (1, 1)
    return is_available() and query.shape[1] % _LANES == 0 and hides_keys


def attend(query, key, value, mask, interpret=False):
    """Attends, as `keras.ops.dot_product_attention` does.

    Args:
        query: `[batch, length, heads, size]`.
        key: Likewise.
        value: Likewise.
        mask: Boolean `[batch or 1, 1, 1, length]`, true for keys that are seen.
        interpret: Whether to compute without a TPU, slowly.

    Returns:
        `[batch, length, heads, size]`.
    """
    import jax

    batch, length = query.shape[:2]
    attend_texts = _attention_of_texts(query.shape, interpret)
    distribution = keras.distribution.distribution()
    if distribution is not None:  # Each device computes its own texts.
        rows = jax.sharding.PartitionSpec(distribution.batch_dim_name)
        attend_texts = jax.shard_map(
            attend_texts,
            mesh=distribution.device_mesh.backend_mesh,
            in_specs=rows,
            out_specs=rows,
            check_vma=False,
        )
    seen = ops.broadcast_to(ops.cast(mask[:, 0, 0], "int32"), (batch, length))
    return attend_texts(query, key, value, seen)


def _attention_of_texts(shape, interpret):
    """Returns the function of queries, keys, values and the keys that are seen."""
    import jax
    from jax.experimental.pallas.ops.tpu.splash_attention import (
        splash_attention_kernel as kernel,
    )
    from jax.experimental.pallas.ops.tpu.splash_attention import (
        splash_attention_mask as masks,
    )

    _, length, heads, size = shape
    block = next(block for block in _BLOCKS if length % block == 0)
    one_text = kernel.make_splash_mha(
        masks.MultiHeadMask([masks.FullMask((length, length))] * heads),
        block_sizes=kernel.BlockSizes(
            block_q=block,
            block_kv=block,
            block_q_dkv=block,
            block_kv_dkv=block,
            use_fused_bwd_kernel=True,
        ),
        head_shards=1,
        q_seq_shards=1,
        interpret=interpret,
    )

    def texts(query, key, value, seen):
        query, key, value = (
            ops.transpose(x, (0, 2, 1, 3)) for x in (query * size**-0.5, key, value)
        )
        # A query sees the keys of its own segment, here 1: all of them that are seen.
        segments = kernel.SegmentIds(q=ops.ones_like(seen), kv=seen)
        return ops.transpose(
            jax.vmap(one_text)(query, key, value, segments), (0, 2, 1, 3)
        )

    return texts
