"""Examples as a person reads them: what was masked, and what the model predicts."""

import numpy as np

from keras_corrupt.models.rendering import render


def describe_predictions(model, inputs):
    """Writes each masked token as `[original: prediction]`.

    Args:
        model: A model with a tokenizer and outputs `mlm_logits`.
        inputs: The model's inputs, NumPy arrays `[batch, length]`.

    Returns:
        A list of strings, one for each example.
    """
    outputs = {name: np.array(x) for name, x in model(inputs, training=False).items()}
    token = model.tokenizer.readable

    def describe(row, ids):
        predicted = outputs["mlm_logits"][row].argmax(axis=-1)
        for slot, position in enumerate(outputs["masked_positions"][row]):
            if outputs["masked_weights"][row][slot]:
                yield position, f"[{token(ids[position])}: {token(predicted[slot])}]"

    return render(model.tokenizer, inputs, describe)
