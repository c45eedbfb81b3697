"""What an update of Cross-View Training costs; `encoders/cost.py` has the rules."""

from keras_corrupt.encoders.bilstm_cost import bilstm_flops
from keras_corrupt.encoders.cost import dense_flops


def update_flops(model, length):
    """Counts the FLOPs of training, for one sentence, mean of both kinds of batches.

    Training costs three forward passes. Unlabelled sentences take a fourth one of
    encoder and primary module, for the targets. Every module runs on every batch.

    Args:
        model: A `CrossViewTagger`.
        length: Int. Words in a sentence.
    """

    def module(layer):
        width, hidden = layer.hidden.kernel.shape
        matrices = 2 * width * hidden + dense_flops(hidden, len(model.labels))
        return length * (matrices + hidden)  # ReLU

    encoder = bilstm_flops(model.encoder.sizes, length, model.vocabulary.WIDTH)
    predicting = encoder + module(model.primary)
    training = 3 * (predicting + sum(map(module, model.auxiliary)))
    return training + predicting / 2 if model.views else training
