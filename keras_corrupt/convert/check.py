"""Whether a written model computes what ours does, in its own library."""

import numpy as np
from keras import ops

from keras_corrupt.convert.systems import discriminator_of, generator_of
from keras_corrupt.convert.weights import with_gelu
from keras_corrupt.downstream import (
    MultiLabelClassifier,
    SentenceEncoder,
    SpanExtractor,
    TextClassifier,
    TokenTagger,
)
from keras_corrupt.downstream.model import DownstreamModel
from keras_corrupt.multitask.multi_task_model import MultiTaskModel

#: The largest difference that rounding explains, of values of about 1. Another gelu
#: makes a hundred times as much.
TOLERANCE = 1e-4
_LENGTH = 16


def check(model, directory, module, options):
    """Compares the outputs of a written model with ours, padding included.

    Args:
        model: Ours.
        directory: What was written.
        module: The format's.
        options: `Options` of the conversion.

    Returns:
        The largest difference, `None` if the format's library is not installed.

    Raises:
        ValueError: The outputs differ.
    """
    inputs = make_inputs(model.encoder)
    try:
        theirs = module.outputs(directory, inputs)
    except ImportError:
        return None
    ours, real = outputs(model, inputs, options), inputs["padding_mask"] > 0
    largest = 0.0
    for name in sorted(ours.keys() & theirs.keys()):
        a, b = ours[name], theirs[name]
        if a.shape[:2] == real.shape:
            a, b = a[real], b[real]
        difference = float(np.abs(a - b).max()) / max(1.0, float(np.abs(a).max()))
        if not difference <= TOLERANCE:
            raise ValueError(
                f"The written model gives another {name}: it differs by "
                f"{difference:.1e}. Nothing was kept."
            )
        largest = max(largest, difference)
    return largest


def make_inputs(encoder):
    """Returns two sequences of any ids, the second one padded."""
    rng = np.random.default_rng(0)
    # Some tokens are outside of a window.
    length = min(_LENGTH + (encoder.local_window or 0), encoder.max_length)
    mask = np.ones((2, length), "int32")
    mask[1, length // 2 :] = 0
    ids = rng.integers(0, encoder.vocabulary_size, mask.shape)
    segments = np.arange(length) >= length // 4 if encoder.num_segments > 1 else 0
    return {
        "token_ids": (ids * mask + encoder.padding_id * (1 - mask)).astype("int32"),
        "segment_ids": (segments * mask).astype("int32"),
        "padding_mask": mask,
    }


def outputs(model, inputs, options):
    """Returns what our model makes of inputs: name -> array, NumPy."""
    encoder = with_gelu(model.encoder, options.approximate_gelu or None)
    hidden = encoder(inputs)
    arrays = {"hidden": hidden}
    if isinstance(model, MultiTaskModel):
        for task, part in zip(model.tasks, model.parts, strict=True):
            own = outputs(part, inputs, options)
            arrays |= {f"{task}/{name}": array for name, array in own.items()}
    elif isinstance(model, DownstreamModel):
        arrays |= head_outputs(model, hidden, inputs)
    else:
        if (discriminator := discriminator_of(model)) is not None:
            arrays["rtd"] = discriminator(inputs)
        generator = generator_of(model)
        if generator is not None and "generator" not in options.untrained_networks:
            arrays["mlm"] = generator(inputs, every_position(inputs))
    return {name: ops.convert_to_numpy(array) for name, array in arrays.items()}


def head_outputs(model, hidden, inputs):
    """Returns what a fine-tuned model's head makes of its encoder's output.

    Args:
        model: A `DownstreamModel`.
        hidden: `[batch, length, hidden_size]`.
        inputs: What the encoder has read.

    Returns:
        A dict: `logits`, `[batch, labels]`, of a number the number itself, `[batch,
        1]`, of a tagger `[batch, length, labels]`; `spans`, `[batch, length, 2]`,
        logits of the start and of the end; or `vectors`, `[batch, hidden_size]`. Empty
        for other heads.
    """
    if isinstance(model, (SentenceEncoder, MultiLabelClassifier)):
        return model.head_outputs(hidden, inputs)
    if isinstance(model, TokenTagger):
        return {"logits": model.head(hidden)}
    if isinstance(model, SpanExtractor) and model.head_type == "bert":
        return {"spans": model.head.start_and_end(hidden)}
    if isinstance(model, TextClassifier):
        logits = model.head_outputs(hidden, inputs)["logits"]
        low, high = model.score_range or (0, 1)
        return {"logits": low + (high - low) * logits}
    return {}


def every_position(inputs):
    """Returns 0, 1, 2, ... for each sequence."""
    positions = np.arange(inputs["token_ids"].shape[1], dtype="int32")
    return np.broadcast_to(positions, inputs["token_ids"].shape)
