"""Examples as a person reads them: what was replaced, found out, and corrected."""

from keras_corrupt.models.replaced_token_detection.examples import describe_detections


def describe_corrections(model, inputs):
    """Writes detections, and what the model would write where a token was replaced.

    `[original > replacement 0.93: correction]`; see `describe_detections`.

    Args:
        model: A model with a tokenizer and outputs `rtd_logits` and `corrected_ids`.
        inputs: The model's inputs, NumPy arrays `[batch, length]`.

    Returns:
        A list of strings, one for each example.
    """

    def correction(outputs, row, position):
        at = outputs["masked_positions"][row] == position
        (slot, *_) = (at & (outputs["masked_weights"][row] > 0)).nonzero()[0]
        return f": {model.tokenizer.readable(outputs['corrected_ids'][row][slot])}"

    return describe_detections(model, inputs, correction)
