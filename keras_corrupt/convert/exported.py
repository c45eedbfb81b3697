"""What ONNX's and LiteRT's runtimes get of a model: one graph, by Keras's exporter."""

import json

import keras
import numpy as np

from keras_corrupt.convert.check import head_outputs
from keras_corrupt.convert.hugging_face import tokenizer_files
from keras_corrupt.convert.hugging_face_tasks import label_entries
from keras_corrupt.convert.systems import discriminator_of
from keras_corrupt.downstream.model import DownstreamModel
from keras_corrupt.encoders import TransformerEncoder
from keras_corrupt.multitask.multi_task_model import MultiTaskModel

INPUTS = ("token_ids", "segment_ids", "padding_mask")


def graph_of(model, length=None):
    """Returns a model's inference as a functional model.

    Its inputs are `INPUTS`, int32 `[batch, length]`. Its outputs are `hidden`, the
    encoder's `[batch, length, hidden_size]`; of ELECTRA's discriminator `rtd`, logits
    `[batch, length]`; for fine-tuned models what `check.head_outputs` returns.

    Args:
        model: A model of ours.
        length: The length, if there is but one.

    Raises:
        ValueError: It has another encoder than a Transformer, or another head.
    """
    inputs = {name: keras.Input((length,), dtype="int32", name=name) for name in INPUTS}
    fine_tuned, outputs = isinstance(model, (DownstreamModel, MultiTaskModel)), {}
    if isinstance(model.encoder, TransformerEncoder):
        outputs["hidden"] = hidden = model.encoder(inputs)
        if fine_tuned:
            outputs |= head_outputs(model, hidden, inputs)
        elif (discriminator := discriminator_of(model)) is not None:
            outputs["rtd"] = discriminator.head(hidden)
    if len(outputs) < 1 + fine_tuned:
        raise ValueError(
            f"A {type(model).__name__} with its head is not written as one graph of "
            "token ids. Write the preset of the encoder that it was fine-tuned from."
        )
    return keras.Model(inputs, outputs)


def write(file, model, length=None, **options):
    """Writes a graph, and beside it the tokenizer and the names of labels.

    Args:
        file: A `Path`.
        model: A model of ours.
        length: The length of all texts, if there is but one.
        **options: Options of Keras's exporter.

    Raises:
        ValueError: The backend is not TensorFlow, or `graph_of` refuses the model.
    """
    if keras.backend.backend() != "tensorflow":
        raise ValueError(
            "ONNX and LiteRT are written on the TensorFlow backend: set "
            "KERAS_BACKEND=tensorflow."
        )
    graph = graph_of(model, length)
    graph({name: np.ones((1, length or 2), "int32") for name in INPUTS})
    graph.export(file, verbose=False, **options)
    texts = {}
    if model.tokenizer is not None:
        texts = tokenizer_files(model.tokenizer, length or model.max_length)
    if getattr(model, "labels", None) is not None:
        texts["config.json"] = json.dumps(label_entries(model.labels), indent=2) + "\n"
    for name, text in texts.items():
        (file.parent / name).write_text(text, encoding="utf-8")
