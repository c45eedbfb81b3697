"""LSTMs with a projection (Sak et al., 2014), a word at a time and along whole texts.

    i, f, z, o = g_t + h_{t-1} R
    c_t = sigmoid(f) c_{t-1} + sigmoid(i) tanh(z)
    h_t = sigmoid(o) tanh(c_t) P

g_t is what word t adds to the gates. Gates and cells are computed in float32, matrix
products in the precision of g_t.
"""

import math

from keras import ops

from keras_corrupt.encoders.cost import dense_flops

#: For each number of a cell: 3 sigmoids of 4, 2 tanhs of 1, 3 products, a sum.
CELL_FLOPS = 3 * 4 + 2 + 3 + 1


def forget_little(shape, dtype=None):
    """Initializes gates' biases: 1 for the forget gate, 0 for the others."""
    return ops.cast(ops.arange(shape[0]) // (shape[0] // 4) == 1, dtype)


def lstm_weights(width, hidden, projection):
    """Returns name -> shape and initializer of the weights of an LSTM.

    Gates stand in Keras's order: input, forget, candidate, output. The forget gate's
    bias starts at 1 (Jozefowicz et al., 2015).

    Args:
        width: The width of its input.
        hidden: Width of its cell.
        projection: Width of its output.
    """
    return {
        "kernel": ((width, 4 * hidden), "glorot_uniform"),
        "recurrent": ((projection, 4 * hidden), "orthogonal"),
        "bias": ((4 * hidden,), forget_little),
        "projection": ((hidden, projection), "glorot_uniform"),
    }


def lstm_parameters(*sizes):
    """Counts the weights of an LSTM; see `lstm_weights`."""
    return sum(math.prod(shape) for shape, _ in lstm_weights(*sizes).values())


def lstm_flops(width, hidden, projection):
    """Counts one word, forward; see `lstm_weights`."""
    gates = dense_flops(width, 4 * hidden) + (2 * projection + 1) * 4 * hidden
    return gates + CELL_FLOPS * hidden + 2 * hidden * projection


def lstm_step(state, gates, recurrent, projection):
    """Reads one word.

    Args:
        state: The output h and the cell c, `[..., projection]` and `[..., hidden]`.
        gates: What the word adds to the gates, `[..., 4 * hidden]`: input, forget,
            candidate, output, as Keras has them.
        recurrent: R, `[projection, 4 * hidden]`.
        projection: P, `[hidden, projection]`.

    Returns:
        The next output, and the next cell, float32.
    """
    output, cell, _ = _next(*state, gates, recurrent, projection)
    return output, cell


def lstm_outputs(gates, state, recurrent, projection):
    """Reads texts, each word after the one before it.

    Going back, the gradients of R and P are one matrix product over all words.
    TensorFlow by itself would add up one for each word.

    Args:
        gates: `[length, ..., batch, 4 * hidden]`, as of `lstm_step`.
        state: The output and the cell before the first word.
        recurrent: `[..., projection, 4 * hidden]`.
        projection: `[..., hidden, projection]`.

    Returns:
        The outputs, `[length, ..., batch, projection]`.
    """

    @ops.custom_gradient
    def f(gates, output, cell, recurrent, projection):
        def step(state, gates):
            state = _next(*state[:2], gates, recurrent, projection)
            return state, state

        start = output, cell, ops.zeros_like(gates[0], dtype="float32")
        _, (outputs, cells, opened) = ops.scan(step, start, gates)

        def gradient(upstream):
            before = (
                ops.concatenate([first[None], rest[:-1]])
                for first, rest in ((output, outputs), (cell, cells))
            )
            return _gradients(upstream, *before, cells, opened, recurrent, projection)

        return outputs, gradient

    output, cell = state
    arrays = gates, output, ops.cast(cell, "float32"), recurrent, projection
    # Copies: TensorFlow would ask for the gradients of variables in another way.
    return f(*(ops.copy(array) for array in arrays))


def _next(output, cell, gates, recurrent, projection):
    """Returns the next output and cell, and the gates that led to them."""
    gates = ops.cast(gates + ops.matmul(output, recurrent), "float32")
    write, keep, candidate, read = ops.split(gates, 4, axis=-1)
    write, keep, read = ops.sigmoid(write), ops.sigmoid(keep), ops.sigmoid(read)
    candidate = ops.tanh(candidate)
    cell = keep * ops.cast(cell, "float32") + write * candidate
    hidden = ops.cast(read * ops.tanh(cell), output.dtype)
    gates = ops.concatenate([write, keep, candidate, read], axis=-1)
    return ops.matmul(hidden, projection), cell, gates


def _gradients(upstream, outputs, before, cells, opened, recurrent, projection):
    """Returns the gradients of all that `lstm_outputs` reads.

    `upstream` is the gradient of its result, `outputs` and `before` are the outputs and
    cells before each word, `cells` the cells after it, `opened` what `_next` returned.
    """
    dtype = upstream.dtype
    to_outputs, to_hidden = (
        ops.swapaxes(weights, -1, -2) for weights in (recurrent, projection)
    )

    def step(state, word):
        doutput, dcell, *_ = state
        write, keep, candidate, read = ops.split(opened[word], 4, axis=-1)
        tanh = ops.tanh(cells[word])
        doutput = doutput + upstream[word]
        dhidden = ops.cast(ops.matmul(doutput, to_hidden), "float32")
        dcell = dcell + dhidden * read * (1.0 - tanh * tanh)
        dgates = ops.concatenate(
            [
                dcell * candidate * write * (1.0 - write),
                dcell * before[word] * keep * (1.0 - keep),
                dcell * write * (1.0 - candidate * candidate),
                dhidden * tanh * read * (1.0 - read),
            ],
            axis=-1,
        )
        dgates = ops.cast(dgates, dtype)
        state = ops.matmul(dgates, to_outputs), dcell * keep, dgates, doutput
        return state, state

    start = (
        ops.zeros_like(upstream[0]),
        ops.zeros_like(cells[0]),
        ops.zeros_like(opened[0], dtype=dtype),
        ops.zeros_like(upstream[0]),
    )
    words = ops.arange(ops.shape(upstream)[0], dtype="int32")
    state, (*_, dgates, doutputs) = ops.scan(step, start, words, reverse=True)
    hidden = ops.split(opened, 4, axis=-1)[3] * ops.tanh(cells)
    return (
        dgates,
        *state[:2],
        _product(outputs, dgates),
        _product(ops.cast(hidden, dtype), doutputs),
    )


def _product(x, y):
    """Adds up the outer products of all words and texts, `[..., m, n]`.

    `x` is `[length, ..., batch, m]`, `y` `[length, ..., batch, n]`.
    """
    rows = []
    for array in (x, y):
        array = ops.moveaxis(array, 0, -3)
        shape = ops.shape(array)
        rows.append(ops.reshape(array, (*shape[:-3], -1, shape[-1])))
    return ops.matmul(ops.swapaxes(rows[0], -1, -2), rows[1])
