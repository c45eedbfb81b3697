"""What an update of Cross-View Training costs; `encoders/cost.py` has the rules.

All count the FLOPs of training, for one sentence, mean of both kinds of batches.
Training costs three forward passes. Where auxiliary modules learn labels, too, a
labelled batch has theirs beside the primary one's.
"""

from keras_corrupt.cross_view.bilstm.cost import bilstm_flops
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


def translation_update_flops(model, length):
    """Counts an update of a translator; a translation is as long as its sentence.

    Unlabelled sentences take a pass of the encoder more, and one of the decoder for
    each sequence that beam search keeps.

    Args:
        model: A `CrossViewTranslator`.
        length: Int. Words in a sentence.
    """
    encoder = bilstm_flops(model.encoder.sizes, length, model.vocabulary.WIDTH)
    decoder, primary = model.decoder.flops(length), model.primary.flops(length)
    labelled = 3 * (encoder + decoder + primary)
    if not model.views:
        return labelled
    modules = 3 * sum(m.flops(length) for m in model.auxiliary)
    students = len(model.views) - len(model.auxiliary)
    unlabelled = 3 * (encoder + decoder) + modules + students * labelled
    unlabelled += encoder + model.beam_size * (decoder + primary)
    labelled += modules * model.modules_learn_labels
    return (labelled + unlabelled) / 2


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


def multi_task_update_flops(model, length):
    """Counts an update of several tasks on one LSTM encoder.

    A labelled batch is of one of them. On text without labels the encoder runs once for
    the targets of all, and once for all that learn from these.

    Args:
        model: A `CrossViewMultiTask`.
        length: Int. Words in a sentence.
    """
    vocabulary = model.parts[0].vocabulary
    encoder = bilstm_flops(model.encoder.sizes, length, vocabulary.WIDTH)
    primary = sum(part.primary.flops(length) for part in model.parts)
    labelled = 3 * (encoder + primary / len(model.parts))
    if not model.learns_from_text:
        return labelled
    modules = 3 * sum(module.flops(length) for module in model.auxiliary)
    if model.parts[0].modules_learn_labels:
        labelled += modules / len(model.parts)
    return (labelled + 4 * encoder + primary + modules) / 2


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
    modules = 3 * sum(m.flops(length) for m in model.auxiliary)
    students = (len(model.views) - len(model.auxiliary)) * predicting
    without_training = predicting + 2 * predicting * ("vat" in model.views)
    unlabelled = 3 * (passes + students) + modules + without_training
    labelled = (passes + modules) * model.modules_learn_labels
    # The primary module learns, or computes in vain, on both kinds.
    return 3 * predicting + (labelled + unlabelled) / 2


def image_update_flops(model):
    """Counts an update of an image classifier, mean of both kinds of batches.

    Unlabelled images take a pass for the targets. Adversarial noise takes a pass
    forward and one back, which leaves the weights out; what sees noise is a pass of
    its own, in training.

    Args:
        model: A `CrossViewImageClassifier`.
    """
    head = model.primary.kernel.shape
    predicting = model.encoder.flops() + dense_flops(*head)
    training = 3 * (model.encoder.flops(training=True) + dense_flops(*head))
    if not model.views:
        return training
    kinds = {model.perturbation} - {"none"} if model.auxiliary else set()
    kinds |= {"adversarial"} if "vat" in model.views else set()
    modules = 3 * sum(module.flops(1) for module in model.auxiliary)
    unlabelled = predicting + modules + training * len(kinds)
    unlabelled += 2 * predicting * ("adversarial" in kinds)
    labelled = modules * model.modules_learn_labels
    # The primary module learns, or computes in vain, on both kinds.
    return training + (labelled + unlabelled) / 2
