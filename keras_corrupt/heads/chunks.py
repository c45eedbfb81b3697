"""Softmax over the vocabulary at all positions, a chunk of positions at a time.

The results of a chunk's logits are kept, the logits are not: no pass has an array
`[batch, length, vocabulary]`. The backward pass computes each chunk's logits again.

All but matrix products is computed in float32.
"""

from keras import ops

from keras_corrupt.heads.softmax import (
    cross_entropy,
    cross_entropy_gradients,
    output_logits,
)


def log_probabilities(hidden, table, bias, token_ids, size):
    """Logarithm of the probability of a given token at each position.

    Gradients reach `hidden`, `table` and `bias`.

    Args:
        hidden: `[batch, length, embedding]`.
        table: `[vocabulary, embedding]`, of the same type.
        bias: `[vocabulary]`.
        token_ids: int `[batch, length]`.
        size: Positions of each sequence whose logits are held at once.

    Returns:
        float32 `[batch, length]`.
    """

    @ops.custom_gradient
    def f(hidden, table, bias):
        def of_chunk(hidden, token_ids):
            products = ops.matmul(hidden, ops.transpose(table))
            return -cross_entropy(output_logits(products, bias), token_ids)

        def gradient(upstream):
            return _gradients(hidden, table, bias, token_ids, upstream, size)

        return _map(of_chunk, (hidden, token_ids), size, "float32"), gradient

    return f(hidden, table, ops.cast(bias, "float32"))


def _gradients(hidden, table, bias, token_ids, upstream, size):
    length = ops.shape(hidden)[1]
    hidden, token_ids, upstream = (
        _split(x, size) for x in (hidden, token_ids, upstream)
    )

    def step(i, state):
        # The chunks' places are filled with their gradients: a chunk can only be read
        # when the one before it is done, so that no two have logits at a time.
        chunks, dtable, dbias = state
        chunk = chunks[i]
        dproducts, new_dbias = cross_entropy_gradients(
            ops.matmul(chunk, ops.transpose(table)), bias, token_ids[i], -upstream[i]
        )  # [batch, size, vocabulary], [vocabulary]
        dchunk = ops.matmul(dproducts, table)
        rows = ops.reshape(dproducts, (-1, table.shape[0]))
        new = ops.matmul(ops.transpose(rows), ops.reshape(chunk, (-1, chunk.shape[-1])))
        dtable = dtable + ops.cast(new, "float32")
        dbias = dbias + new_dbias
        return ops.slice_update(chunks, (i, 0, 0, 0), dchunk[None]), dtable, dbias

    zeros = ops.zeros(table.shape, "float32"), ops.zeros(bias.shape, "float32")
    count = ops.shape(hidden)[0]
    chunks, dtable, dbias = ops.fori_loop(0, count, step, (hidden, *zeros))
    return _join(chunks, length), ops.cast(dtable, table.dtype), dbias


def top_k(hidden, table, bias, k, size):
    """The likeliest tokens at each position; no gradient flows.

    Args:
        hidden: `[batch, length, embedding]`.
        table: `[vocabulary, embedding]`, of the same type.
        bias: `[vocabulary]`.
        k: Number of tokens.
        size: Positions of each sequence whose logits are held at once.

    Returns:
        int32 `[batch, length, k]`, the likeliest first.
    """

    def of_chunk(hidden):
        return ops.cast(ops.top_k(_logits(hidden, table, bias), k)[1], "int32")

    return _map(of_chunk, (ops.stop_gradient(hidden),), size, "int32", (k,))


def _logits(hidden, table, bias):
    products = ops.matmul(hidden, ops.transpose(table))
    return ops.cast(products, "float32") + ops.cast(bias, "float32")


def _map(function, arrays, size, dtype, last=()):
    """Applies a function to the chunks of arrays, one after the other."""
    batch, length = ops.shape(arrays[0])[:2]
    chunks = tuple(_split(x, size) for x in arrays)

    def step(_, i):
        result = function(*(chunk[i] for chunk in chunks))
        return result, result

    start = ops.zeros((batch, size, *last), dtype)
    # Not over the chunks themselves: on TensorFlow Keras's `scan` fails for several
    # arrays of a length that is not known before the graph runs.
    numbers = ops.arange(ops.shape(chunks[0])[0], dtype="int32")
    return _join(ops.scan(step, start, numbers)[1], length)


def _split(x, size):
    """Makes `[chunks, batch, size, ...]` of `[batch, length, ...]`, padded."""
    batch, length, *last = ops.shape(x)
    padding = [(0, 0), (0, -length % size), *([(0, 0)] * len(last))]
    x = ops.reshape(ops.pad(x, padding), (batch, -1, size, *last))
    return ops.moveaxis(x, 1, 0)


def _join(x, length):
    """Undoes `_split`."""
    x = ops.moveaxis(x, 0, 1)
    batch, chunks, size, *last = ops.shape(x)
    return ops.reshape(x, (batch, chunks * size, *last))[:, :length]
