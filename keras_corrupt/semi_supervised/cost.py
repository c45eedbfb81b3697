"""What an update of Cross-View Training costs; `encoders/cost.py` has the rules.

All count the FLOPs of training, for one sentence, mean of both kinds of batches.
Training costs three forward passes.
"""

from keras_corrupt.encoders.bilstm_cost import bilstm_flops
from keras_corrupt.encoders.cost import dense_flops


def bilstm_update_flops(model, length):
    """Counts an update on LSTMs, whose states auxiliary modules find at hand.

    Args:
        model: A `WordModel`.
        length: Int. Words in a sentence.
    """
    encoder = bilstm_flops(model.encoder.sizes, length, model.vocabulary.WIDTH)
    predicting = encoder + model.primary.flops(length)
    return update_flops(model, length, predicting)


def transformer_update_flops(model, length):
    """Counts an update on a Transformer, whose views take a pass for each direction.

    All of its layers read in one direction for what an LSTM's first layer has at hand.
    With all views an unlabelled batch costs ten forward passes, not three: it trains
    on three and takes its targets from one.

    Args:
        model: A `CrossViewTokenTagger`.
        length: Int. Word pieces in a sentence, `[CLS]` and `[SEP]` included.
    """
    encoder = model.tagger.encoder
    head = length * dense_flops(encoder.hidden_size, len(model.labels))
    passes = len(model.directions) * encoder.flops(length)
    return update_flops(model, length, encoder.flops(length) + head, passes)


def update_flops(model, length, predicting, passes=0):
    """Counts an update of a `CrossViewModel`.

    Unlabelled sentences take a pass of encoder and primary module more, for the
    targets. So does each of the baselines, in training; and `"vat"` finds its noise by
    a pass forward and one back, which leaves the weights out.

    Args:
        model: The model.
        length: Int. Words, or pieces, in a sentence.
        predicting: Encoder and primary module, forward.
        passes: What auxiliary modules need beside that, forward.
    """
    if not model.views:
        return 3 * predicting
    modules = sum(m.flops(length) for m in model.auxiliary)
    students = (len(model.views) - len(model.auxiliary)) * predicting
    without_training = predicting + 2 * predicting * ("vat" in model.views)
    unlabelled = 3 * (passes + modules + students) + without_training
    # The primary module learns, or computes in vain, on both kinds.
    return 3 * predicting + unlabelled / 2
