"""Memory that a training step needs at its peak, by counting what it keeps.

The peak is where the forward pass ends. Kept until then are the weights, gradients and
averages of the optimizer, and, for the backward pass, what each operation's gradient
reads. The counts below are of `kernels/tensorflow.py`, whose programs keep less than
the same steps one by one; other backends plan their memory themselves.
"""

import resource
import sys

import keras

from keras_corrupt.corruption.masking import num_masked
from keras_corrupt.models.masked_lm.masked_lm import MaskedLMNetwork

#: For each parameter: the float32 weight, its gradient, Adam's two averages.
STATE_BYTES = 16


def training_bytes(model, batch_size, length):
    """Estimates the peak memory of a training step.

    Args:
        model: A `Pretrainer`.
        batch_size: Sequences that go through the model at once.
        length: Tokens of a sequence.

    Returns:
        Two ints, bytes: of the weights with what the optimizer keeps, and of the
        activations.
    """
    size = 2 if model.compute_dtype in ("bfloat16", "float16") else 4
    state = model.count_params() * STATE_BYTES
    if size == 2:
        state += model.count_params() * 2  # the weights once more, rounded
    activations = 0
    for network in model.networks.values():
        activations += encoder_bytes(network, batch_size, length, size)
        if isinstance(network, MaskedLMNetwork):
            masked = batch_size * num_masked(model.mask_rate, length)
            # As the product returns them and in float32, and the gradients of both.
            activations += masked * model.vocabulary_size * 2 * (size + 4)
    return state, activations


def encoder_bytes(network, batch_size, length, size):
    """Counts what a network's encoder keeps, its numbers having `size` bytes."""
    encoder = network.encoder
    tokens = batch_size * length
    pairs = batch_size * encoder.num_heads * length**2
    # Query, key, value; the heads' output; two norms' outputs and normalised inputs.
    hidden = tokens * encoder.hidden_size * 8 * size
    # Gelu and its slope.
    hidden += tokens * encoder.intermediate_size * 2 * size
    # The attention weights before and after dropout.
    layer = hidden + pairs * 2 * size
    if keras.backend.backend() == "tensorflow" and encoder.dropout:
        layer += 2 * tokens * encoder.hidden_size  # random bytes
    if keras.backend.backend() == "tensorflow" and encoder.attention_dropout:
        layer += pairs
    layers = encoder.num_layers + getattr(network, "task_layers", 0)
    # Token, position and segment, their sum, its norm and dropout, in float32.
    embeddings = tokens * encoder.embedding_size * 6 * 4
    return layers * layer + embeddings


def process_bytes():
    """Returns the most memory this process has held so far."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak * (1 if sys.platform == "darwin" else 1024)
