"""The main network's encoder of COCO-LM's port to Hugging Face's classes, in.

Its tokenizer stays out: it cuts words before SentencePiece does, and takes out lone
spaces behind it, which no tokenizer here does. Its heads stay out, too.
"""

import re
import warnings

import numpy as np

from keras_corrupt.convert.files import sizes_of
from keras_corrupt.convert.hugging_face_config import RATES, SIZES, check_fixed
from keras_corrupt.convert.systems import new_coco_lm
from keras_corrupt.convert.weights import (
    Weights,
    assign_weights,
    pytorch_format,
    transposed,
)
from keras_corrupt.encoders.position_bias import bucket_of
from keras_corrupt.models import MaskedLM
from keras_corrupt.presets.sizes import check_sizes

_SEGMENTS = "embeddings.token_type_embeddings"
_BIAS = "position_bias/table"
_ENCODER = {
    "embeddings/token": "embeddings.word_embeddings",
    "embeddings/position": "embeddings.position_embeddings",
    "embeddings/segment": _SEGMENTS,
    "embeddings/norm": "embeddings.LayerNorm",
    _BIAS: "relative_attention_bias.weight",
    "layers_{}/attention/query": "encoder.layer.{}.attention.self_attn.query",
    "layers_{}/attention/key": "encoder.layer.{}.attention.self_attn.key",
    "layers_{}/attention/value": "encoder.layer.{}.attention.self_attn.value",
    "layers_{}/attention/output_projection": (
        "encoder.layer.{}.attention.self_attn.out_proj"
    ),
    "layers_{}/attention_norm": "encoder.layer.{}.attention.LayerNorm",
    "layers_{}/intermediate": "encoder.layer.{}.intermediate.dense",
    "layers_{}/feedforward_output": "encoder.layer.{}.output.dense",
    "layers_{}/feedforward_norm": "encoder.layer.{}.output.LayerNorm",
}
_FIXED = {"layer_norm_type": "post", "hidden_act": "gelu"}
#: The special tokens, which stand first in fairseq's dictionaries.
_PADDING_ID = 1


def read(path, config, weights):
    """Makes a `CocoLM` with their encoder.

    Args:
        path: The directory, a `Path`.
        config: Its `config.json`, a dict.
        weights: Its `Weights`.

    Returns:
        The model, and the names of its networks that the files do not have.

    Raises:
        ValueError: The encoder here does not compute what theirs does.
    """
    encoder = read_encoder(path / "config.json", config)
    prefix = "cocolm." if any(n.startswith("cocolm.") for n in weights.shapes) else ""
    weights = _as_parts(weights, prefix, encoder, config.get("type_vocab_size", 2))
    check_sizes(MaskedLM, {"encoder": encoder}, *weights.size)
    model = new_coco_lm(encoder)
    table = {ours: prefix + theirs for ours, theirs in _ENCODER.items()}
    form = pytorch_format(table, _to_ours(encoder))
    of_encoder = rf"{prefix}(embeddings|encoder|relative_attention_bias)\."
    assign_weights(weights, (model.encoder, form), unused=rf"(?!{of_encoder}).*")
    warnings.warn(
        f"{weights.path}: of COCO-LM's models the encoder is read; heads are new, and "
        "there is no tokenizer: give it token ids that COCO-LM's own has made.",
        stacklevel=3,
    )
    return model, ("generator",)


def read_encoder(file, config):
    """Returns the arguments of `TransformerEncoder` that a `config.json` describes.

    Args:
        file: The file, for errors.
        config: What it holds.
    """
    check_fixed(config, _FIXED, file)
    encoder = sizes_of(config, SIZES, file)
    encoder |= {ours: config[n] for ours, n in RATES.items() if n in config}
    if config.get("rel_pos_bins"):
        names = {"num_buckets": "rel_pos_bins", "max_distance": "max_rel_pos"}
        relative = sizes_of(config, names, file)
        encoder["relative_positions"] = {**relative, "rounds_up": True}
    # Without segments, both have vectors of zeros.
    encoder["num_segments"] = config.get("type_vocab_size", 2) or 2
    return encoder | {"padding_id": _PADDING_ID}


def _to_ours(encoder):
    """Returns a `to_ours` that transposes kernels and sorts relative positions.

    Their rows are in the order of the signed distance, from the farthest key before the
    query that the position table allows; ours go from 0 backwards, then forwards.
    """

    def to_ours(name, array):
        if name != _BIAS:
            return transposed(name, array)
        buckets, half = len(array), len(array) // 2
        farthest = np.array([1 - encoder["max_length"]])
        first = int(np.array(bucket_of(farthest, **encoder["relative_positions"]))[0])
        signed = np.concatenate([-np.arange(half), np.arange(half)])
        signed[half] = half  # a row that no distance has, in theirs as in ours
        return array[(first + signed) % buckets]

    return to_ours


def _as_parts(weights, prefix, encoder, num_segments):
    """Returns weights that have query, key and value each, and segments."""
    shapes, sources = {}, {}
    for name, shape in weights.shapes.items():
        joined = re.search(r"\.self_attn\.in_proj\.(weight|bias)$", name)
        if not joined or not shape or shape[0] % 3:
            shapes[name] = shape
            continue
        for i, part in enumerate(("query", "key", "value")):
            own = name.replace(".in_proj.", f".{part}.")
            shapes[own], sources[own] = (shape[0] // 3, *shape[1:]), (name, i)
    segments = f"{prefix}{_SEGMENTS}.weight"
    if not num_segments:
        shapes[segments] = (encoder["num_segments"], encoder["hidden_size"])

    def read(name):
        if name in sources:
            source, i = sources[name]
            return np.split(weights.read(source), 3)[i]
        if name == segments and not num_segments:
            return np.zeros(shapes[name], "float32")
        return weights.read(name)

    return Weights(weights.path, shapes, read)
