"""Examples as a person reads them: what was replaced, and what was found out."""

import numpy as np

from keras_corrupt.models.rendering import render


def describe_detections(model, inputs, addition=None):
    """Writes replaced tokens, and original ones that are suspected.

    `[original > replacement 0.93]` is a replaced token with the discriminator's
    probability that it was replaced, `<token 0.71>` an original token that the
    discriminator takes for a replaced one.

    Args:
        model: A model with a tokenizer and outputs `rtd_logits`.
        inputs: The model's inputs, NumPy arrays `[batch, length]`.
        addition: What else is written of a replaced token: a function of the model's
            outputs, the row and the position, that returns a string.

    Returns:
        A list of strings, one for each example.
    """
    outputs = {name: np.array(x) for name, x in model(inputs, training=False).items()}
    probabilities = 1.0 / (1.0 + np.exp(-outputs["rtd_logits"]))
    token = model.tokenizer.readable

    def describe(row, ids):
        for position, original in enumerate(ids):
            corrupted = outputs["corrupted_ids"][row][position]
            p = probabilities[row][position]
            if corrupted != original:
                more = addition(outputs, row, position) if addition else ""
                change = f"{token(original)} > {token(corrupted)}"
                yield position, f"[{change} {p:.2f}{more}]"
            elif p > 0.5:
                yield position, f"<{token(original)} {p:.2f}>"

    return render(model.tokenizer, inputs, describe)
