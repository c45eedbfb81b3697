"""The rules by which every layer, network and system counts what it costs.

FLOPs are counted by the rules of Clark's thesis, section 5.2.2: every mathematical
operation counts one, an `exp` no more than an `add`; multiplying a vector by an m x n
matrix counts 2 m n; embedding look-ups are dense, a one-hot vector times the table. The
methods `flops` count one sequence and one forward pass. They leave out the operations
that a whole batch shares: looking up the biases of relative positions, and the sines of
rotary positions. A causal mask and a window's mask cost as much as a padding mask:
local attention computes all logits, and all are counted.

The methods `activation_bytes` count the bytes of the CPU kernels, which keep less than
the same steps one by one: what the gradients of a training step read, and at its peak
what half a layer makes. What `remat` computes again is not counted, though these
kernels keep it. Parts that these kernels don't have are counted likewise, by what their
gradients read.
"""

# Operations for one number. They multiply activations, never weights, so that
# moving any of them by a few moves a total by a fraction of a percent.
LAYER_NORM_FLOPS = 7  # Mean; subtract, square, mean; divide; scale, offset.
GELU_FLOPS = 9  # x / 2 * (1 + tanh(a * (x + b * x * x * x))): 6 products, 2 sums, tanh.
SOFTMAX_FLOPS = 5  # Maximum, subtract, exp, sum, divide.
SIGMOID_FLOPS = 4  # Negate, exp, add, divide.
SILU_FLOPS = 5  # x times its sigmoid.
ROTARY_FLOPS = 3  # Two products, and their sum or difference.
DROPOUT_FLOPS = 4  # Draw, compare, multiply by the mask, rescale.
ATTENTION_LOGIT_FLOPS = 2  # Divide by the root of the head size, mask.


def dense_flops(inputs, outputs, use_bias=True):
    """Counts a vector's product with a matrix, and the bias."""
    return 2 * inputs * outputs + outputs * use_bias


def norm_flops(norm):
    """Counts one number's part in a `keras.layers.LayerNormalization`."""
    return LAYER_NORM_FLOPS - (not norm.center)


def dense_parameters(inputs, outputs):
    """Counts a matrix and a bias."""
    return inputs * outputs + outputs


def training_flops(forward_flops, batch_size, steps):
    """Counts a run: forward and backward, for every sequence of every step.

    The backward pass counts as much as the forward pass (Clark's thesis, 5.2.2). Left
    out, because together they stay below 0.2% of a run: choosing positions and
    sampling from a generator, the losses after the softmax or the logit, and the
    optimizer (about a dozen operations for each parameter and step, against hundreds
    of millions for each token).

    Args:
        forward_flops: Int. FLOPs of one training sequence, forward, as
            `Pretrainer.forward_flops` gives.
        batch_size: Int. Sequences in a step, over all devices.
        steps: Int. Steps.

    Returns:
        Int. FLOPs.

    Example:

    >>> training_flops(10, batch_size=3, steps=7)
    420
    """
    return 2 * forward_flops * batch_size * steps
