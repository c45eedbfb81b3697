"""Examples as a person reads them: where the model expected another token."""

import numpy as np

from keras_corrupt.models.rendering import render


def describe_expectations(model, inputs):
    """Writes each token that is not the likeliest as `[token: the likeliest]`.

    Args:
        model: A model with a tokenizer and outputs `states` and `cloze_weights`.
        inputs: The model's inputs, NumPy arrays `[batch, length]`.

    Returns:
        A list of strings, one for each example.
    """
    outputs = model(inputs, training=False)
    likeliest = np.array(model.network.head.top_k(outputs["states"], 1))[..., 0]
    learned = np.array(outputs["cloze_weights"])
    token = model.tokenizer.readable

    def describe(row, ids):
        for position, original in enumerate(ids):
            expected = likeliest[row][position]
            if learned[row][position] and expected != original:
                yield position, f"[{token(original)}: {token(expected)}]"

    return render(model.tokenizer, inputs, describe)
