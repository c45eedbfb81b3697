"""Memory that a training step needs at its peak, by counting.

Kept all the time are the weights, their gradients and the averages of the optimizer;
for the backward pass, what each operation's gradient reads, which the model counts.
The counts are of the CPU kernels, which keep less than the same steps one by one;
`benchmarks/growth.py` compares them with what a process takes. Other backends plan
their memory themselves.
"""

import sys

from keras_corrupt.encoders.transformer_layer import TransformerLayer
from keras_corrupt.models.weightless import weightless

try:
    import resource
except ImportError:  # Windows
    resource = None

#: For each parameter: the float32 weight, its gradient, Adam's two averages.
STATE_BYTES = 16
#: Where a batch goes through the model in parts: the gradient of those before.
SUM_BYTES = 4
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
    layers = sum(
        isinstance(layer, TransformerLayer)
        for layer in model._flatten_layers(include_self=False)
    )
    in_parts = model.micro_batches > 1
    return (
        model.count_params() * (STATE_BYTES + in_parts * SUM_BYTES),
        model.activation_bytes(batch_size * model.masker.num_masks, length),
        PROGRAM_BYTES + layers * LAYER_PROGRAM_BYTES,
    )


def remat_bytes(model, batch_size, length, remat):
    """Estimates a step's activations with another `remat` of the encoder.

    Args:
        model: See `training_bytes`.
        batch_size: See `training_bytes`.
        length: See `training_bytes`.
        remat: See `TransformerEncoder`.

    Returns:
        Bytes.
    """
    config = model.get_config()
    network = next(iter(model.network_arguments))
    config[network] = {**config[network], "remat": remat}
    with weightless():
        other = type(model).from_config(config)
    return other.activation_bytes(batch_size * model.masker.num_masks, length)


def process_bytes():
    """Returns the most memory this process has held so far; 0 where nothing tells."""
    if resource is None:
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak * (1 if sys.platform == "darwin" else 1024)
