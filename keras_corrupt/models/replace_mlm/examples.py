"""Examples as a person reads them: what was replaced, and what is predicted there."""

import numpy as np

from keras_corrupt.models.rendering import render


def describe_restorations(model, inputs):
    """Writes each masked token as `[original > sample: prediction]`.

    Args:
        model: A model with a tokenizer and outputs `sampled_ids` and `lm_logits`.
        inputs: The model's inputs, NumPy arrays `[batch, length]`.

    Returns:
        A list of strings, one for each example.
    """
    outputs = {name: np.array(x) for name, x in model(inputs, training=False).items()}
    token = model.tokenizer.readable

    def describe(row, ids):
        predicted = outputs["lm_logits"][row].argmax(axis=-1)
        for slot, position in enumerate(outputs["masked_positions"][row]):
            if outputs["masked_weights"][row][slot]:
                sample = token(outputs["sampled_ids"][row][slot])
                change = f"{token(ids[position])} > {sample}: {token(predicted[slot])}"
                yield position, f"[{change}]"

    return render(model.tokenizer, inputs, describe)
