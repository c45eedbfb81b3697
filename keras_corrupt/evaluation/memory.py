"""Memory that a training step needs at its peak, by counting what it keeps.

Kept all the time are the weights, their gradients and the averages of the optimizer;
for the backward pass, what each operation's gradient reads; and while it goes through
a layer, what that makes. A generator's are given free before the discriminator has
run, so that there are two peaks, and the higher one counts: the vocabulary's logits
with the generator's activations, or the discriminator's activations with the logits
that are left.

The counts are of `kernels/fused`, which keeps less than the same steps one by one;
`benchmarks/growth.py` compares them with what a process takes. Other backends plan
their memory themselves.
"""

import resource
import sys

from keras_corrupt.corruption.masking import num_masked
from keras_corrupt.encoders.cost import transformer_layer_activation_bytes
from keras_corrupt.models.masked_lm.masked_lm import MaskedLMNetwork

#: For each parameter: the float32 weight, its gradient, Adam's two averages.
STATE_BYTES = 16
#: The compiled kernels, and the graph of a layer, measured.
PROGRAM_BYTES = 100e6
LAYER_PROGRAM_BYTES = 12e6


def training_bytes(model, batch_size, length):
    """Estimates the peak memory of a training step.

    Args:
        model: A `Pretrainer`.
        batch_size: Sequences that go through the model at once.
        length: Tokens of a sequence.

    Returns:
        Three numbers, bytes: of the weights with what the optimizer keeps, of the
        activations, and of the step's program.
    """
    size = 2 if model.compute_dtype in ("bfloat16", "float16") else 4
    state = model.count_params() * STATE_BYTES
    logits = batch_size * num_masked(model.mask_rate, length) * model.vocabulary_size
    generator = logits * 2 * size  # with their gradient
    discriminator, program = 0, PROGRAM_BYTES
    for network in model.networks.values():
        needed = encoder_bytes(network, batch_size, length, size)
        if isinstance(network, MaskedLMNetwork):
            generator += needed
        else:
            discriminator += needed + logits * size
        program += num_layers(network) * LAYER_PROGRAM_BYTES
    return state, max(generator, discriminator), program


def num_layers(network):
    """Returns how many layers run, those of TEAMS's second task included."""
    return network.encoder.num_layers + getattr(network, "task_layers", 0)


def encoder_bytes(network, batch_size, length, size):
    """Counts what a network's layers need, its numbers having `size` bytes."""
    encoder, task_layers = network.encoder, getattr(network, "task_layers", 0)
    layer = transformer_layer_activation_bytes(
        encoder.get_config(), batch_size, length, size
    )
    return encoder.activation_bytes(batch_size, length, size) + task_layers * layer


def process_bytes():
    """Returns the most memory this process has held so far."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak * (1 if sys.platform == "darwin" else 1024)
