"""LiteRT, which was TensorFlow Lite, out."""

import numpy as np

from keras_corrupt.convert import exported

FILE = "model.tflite"


def write(directory, model, options):
    """Writes a model's graph, for texts that are padded to the encoder's length.

    With another length for each batch, slices are operations that the runtime lacks.

    Args:
        directory: A `Path`, empty.
        model: A model of ours.
        options: `Options`.

    Raises:
        ValueError: The backend is not TensorFlow.
    """
    length = model.encoder.max_length
    exported.write(directory / FILE, model, length, format="litert")


def outputs(directory, inputs):
    """Returns what LiteRT makes of a directory: name -> array."""
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(str(directory / FILE))
    length = interpreter.get_input_details()[0]["shape"][1]
    size = inputs["token_ids"].shape[1]
    padded = {n: np.pad(x, [(0, 0), (0, length - size)]) for n, x in inputs.items()}
    arrays = interpreter.get_signature_runner()(**padded)
    return {
        n: x[:, :size] if x.shape[1:2] == (length,) else x for n, x in arrays.items()
    }
