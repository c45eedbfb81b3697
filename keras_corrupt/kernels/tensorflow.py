"""The kernels on TensorFlow, fused.

The functions are those of `plain` but for rounding in the last digits, and for
dropout's rate, which is rounded to a multiple of 1/256: a byte decides on each value.

Each forward and backward pass is an XLA program of its own, computed in float32, with
its inputs and outputs in the type they come in. The matrix products stay outside:
TensorFlow's own are faster on CPUs. So do the random bytes.
"""

import functools

import numpy as np
import tensorflow as tf

compiled = functools.partial(tf.function, jit_compile=True, autograph=False)


def attention(projected, bias, num_heads, mask, logits_bias=None, rate=0.0, seed=None):
    """As `plain.attention`."""
    query, key, value = split_heads(projected, bias, num_heads)
    logits = tf.matmul(query, key, transpose_b=True)
    scale = query.shape[-1] ** -0.5
    if logits_bias is not None:
        logits = logits + tf.cast(logits_bias / scale, logits.dtype)
    weights = attention_weights(logits, scale, mask, rate, seed)
    return join_heads(tf.matmul(weights, value))


def split_heads(projected, bias, num_heads):
    """Adds the bias; returns query, key and value, `[batch, heads, length, size]`."""

    @tf.custom_gradient
    def f(projected, bias):
        def gradient(*parts):
            # XLA takes four times as long for this concatenation.
            dx = tf.concat([join_heads(part) for part in parts], axis=-1)
            return dx, column_sums(dx, bias.dtype)

        return _split_heads_forward(projected, bias, num_heads), gradient

    return f(projected, tf.convert_to_tensor(bias))


@compiled
def _split_heads_forward(projected, bias, num_heads):
    batch, length, _ = tf.unstack(tf.shape(projected))
    y = tf.cast(_float32(projected) + _float32(bias), projected.dtype)
    y = tf.reshape(y, (batch, length, 3, num_heads, y.shape[-1] // (3 * num_heads)))
    return tuple(tf.unstack(tf.transpose(y, (2, 0, 3, 1, 4))))


def join_heads(x):
    """Returns `[batch, heads, length, size]` as `[batch, length, heads * size]`."""
    batch, heads, length, size = tf.unstack(tf.shape(x))
    joined = tf.reshape(tf.transpose(x, (0, 2, 1, 3)), (batch, length, heads * size))
    return tf.ensure_shape(joined, (None, None, x.shape[1] * x.shape[3]))


def attention_weights(logits, scale, mask, rate, seed):
    """Softmax of the scaled logits over the allowed keys, then dropout."""
    dropped = dropped_byte(rate)
    noise = random_bytes(tf.shape(logits), dropped, seed)

    @tf.custom_gradient
    def f(logits):
        weights, softmax = _attention_weights_forward(
            logits, scale, mask, noise, dropped
        )

        def gradient(dy):
            return _attention_weights_backward(dy, scale, softmax, noise, dropped)

        return weights, gradient

    return f(logits)


@compiled
def _attention_weights_forward(logits, scale, mask, noise, dropped):
    softmax = tf.nn.softmax(tf.where(mask, _float32(logits) * scale, -1e9))
    weights = tf.cast(drop(softmax, noise, dropped), logits.dtype)
    return weights, tf.cast(softmax, logits.dtype)


@compiled
def _attention_weights_backward(dy, scale, softmax, noise, dropped):
    dp, p = drop(_float32(dy), noise, dropped), _float32(softmax)
    dx = scale * p * (dp - tf.reduce_sum(dp * p, axis=-1, keepdims=True))
    return tf.cast(dx, dy.dtype)


def residual_norm(x, y, bias, gamma, beta, epsilon, rate=0.0, seed=None):
    """As `plain.residual_norm`."""
    dropped = dropped_byte(rate)
    noise = random_bytes(tf.shape(y), dropped, seed)

    @tf.custom_gradient
    def f(x, y, bias, gamma, beta):
        z, normal, scale = _residual_norm_forward(
            x, y, bias, gamma, beta, epsilon, noise, dropped
        )

        def gradient(dz):
            dx, dy, dgamma = _residual_norm_backward(
                dz, normal, scale, gamma, noise, dropped
            )
            return (
                dx,
                dy,
                column_sums(dy, bias.dtype),
                column_sums(dgamma, gamma.dtype),
                column_sums(dz, beta.dtype),
            )

        return z, gradient

    return f(x, y, *map(tf.convert_to_tensor, (bias, gamma, beta)))


@compiled
def _residual_norm_forward(x, y, bias, gamma, beta, epsilon, noise, dropped):
    z = _float32(x) + drop(_float32(y) + _float32(bias), noise, dropped)
    centred = z - tf.reduce_mean(z, axis=-1, keepdims=True)
    variance = tf.reduce_mean(tf.square(centred), axis=-1, keepdims=True)
    scale = tf.math.rsqrt(variance + epsilon)
    normal = centred * scale
    out = normal * _float32(gamma) + _float32(beta)
    return tf.cast(out, x.dtype), tf.cast(normal, x.dtype), scale


@compiled
def _residual_norm_backward(dz, normal, scale, gamma, noise, dropped):
    normal, dnormal = _float32(normal), _float32(dz) * _float32(gamma)
    mean = tf.reduce_mean(dnormal, axis=-1, keepdims=True)
    along = tf.reduce_mean(dnormal * normal, axis=-1, keepdims=True)
    dx = scale * (dnormal - mean - normal * along)
    dy = drop(dx, noise, dropped)
    dgamma = _float32(dz) * normal
    return tuple(tf.cast(d, dz.dtype) for d in (dx, dy, dgamma))


def bias_gelu(x, bias, approximate=False):
    """As `plain.bias_gelu`."""

    @tf.custom_gradient
    def f(x, bias):
        # The slope costs little beside the value, and much by itself.
        y, slope = _bias_gelu_forward(x, bias, approximate)

        def gradient(dy):
            dx = dy * slope
            return dx, column_sums(dx, bias.dtype)

        return y, gradient

    return f(x, tf.convert_to_tensor(bias))


@compiled
def _bias_gelu_forward(x, bias, approximate):
    y = _float32(x) + _float32(bias)
    if approximate:  # y (1 + tanh(u)) / 2 with u = c (y + a y^3)
        c, a = np.sqrt(2.0 / np.pi), 0.044715
        t = tf.tanh(c * (y + a * y * y * y))
        below = 0.5 * (1.0 + t)
        density = 0.5 * (1.0 - t * t) * c * (1.0 + 3.0 * a * y * y)
    else:  # y Phi(y), with Phi the normal distribution
        below = 0.5 * (1.0 + tf.math.erf(y / np.sqrt(2.0)))
        density = tf.exp(-0.5 * y * y) / np.sqrt(2.0 * np.pi)
    return tf.cast(y * below, x.dtype), tf.cast(below + y * density, x.dtype)


def cross_entropy(logits, target_ids):
    """As `plain.cross_entropy`."""
    target_ids = tf.cast(target_ids, tf.int32)

    @tf.custom_gradient
    def f(logits):
        loss, total = _cross_entropy_forward(logits, target_ids)

        def gradient(dy):
            return _cross_entropy_backward(dy, logits, target_ids, total)

        return loss, gradient

    return f(tf.convert_to_tensor(logits))


@compiled
def _cross_entropy_forward(logits, target_ids):
    # Written out, since `reduce_logsumexp` guards against infinities at some cost.
    logits = _float32(logits)
    largest = tf.reduce_max(logits, axis=-1)
    total = tf.reduce_sum(tf.exp(logits - largest[..., None]), axis=-1)
    total = largest + tf.math.log(total)
    target = tf.gather(logits, target_ids, batch_dims=target_ids.shape.rank)
    return total - target, total


@compiled
def _cross_entropy_backward(dy, logits, target_ids, total):
    softmax = tf.exp(_float32(logits) - total[..., None])
    is_target = tf.range(tf.shape(logits)[-1]) == target_ids[..., None]
    dx = dy[..., None] * (softmax - tf.cast(is_target, tf.float32))
    return tf.cast(dx, logits.dtype)


def adam(variable, momentum, velocity, gradient, rate, beta_1, beta_2, epsilon):
    """As `plain.adam`, in one operation."""
    tf.raw_ops.ResourceApplyAdam(
        var=variable.handle,
        m=momentum.value.handle,
        v=velocity.value.handle,
        grad=gradient,
        lr=rate,
        beta1=beta_1,
        beta2=beta_2,
        epsilon=epsilon,
        # The bias correction is in the rate.
        beta1_power=0.0,
        beta2_power=0.0,
    )


# === Parts ===


def _float32(x):
    return tf.cast(x, tf.float32)


def column_sums(x, dtype):
    """Sums over all axes but the last, as a matrix product with ones."""
    rows = tf.reshape(x, (-1, x.shape[-1]))
    ones = tf.ones((1, tf.shape(rows)[0]), rows.dtype)
    return tf.cast(tf.matmul(ones, rows)[0], dtype)


def dropped_byte(rate):
    """The number of byte values, of 256, that drop a value."""
    return round(256 * rate)


def random_bytes(shape, dropped, seed):
    """Uniform random bytes, or nothing where nothing is dropped."""
    if not dropped:
        return tf.zeros((1,), tf.uint8)
    size = tf.reduce_prod(shape)
    words = tf.random.stateless_uniform(
        ((size + 3) // 4,),
        tf.cast(seed.next(), tf.int32),
        minval=None,
        maxval=None,
        dtype=tf.uint32,
    )
    return tf.reshape(tf.reshape(tf.bitcast(words, tf.uint8), (-1,))[:size], shape)


def drop(x, noise, dropped):
    """Zeroes values whose byte is below `dropped`, and scales up the rest."""
    if not dropped:
        return x
    return tf.where(noise >= dropped, x, 0.0) * (256.0 / (256.0 - dropped))
