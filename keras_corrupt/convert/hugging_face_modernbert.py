"""Hugging Face's ModernBERT, in and out: its encoder, and its heads.

Each of their heads begins with a linear layer and a layer norm. So does the head of a
masked language model here. A fine-tuned head here does not: for it their two layers are
made such that they give back what they read.
"""

import re
import warnings

import numpy as np

from keras_corrupt.convert import hugging_face_tasks
from keras_corrupt.convert.hugging_face_config import GELUS
from keras_corrupt.convert.hugging_face_modernbert_config import read_encoder, written
from keras_corrupt.convert.systems import generator_of, new_masked_lm
from keras_corrupt.convert.weights import (
    Weights,
    assign_weights,
    exported_weights,
    pytorch_format,
)
from keras_corrupt.downstream import SentenceEncoder
from keras_corrupt.downstream.model import DownstreamModel
from keras_corrupt.models import MaskedLM
from keras_corrupt.presets.sizes import check_sizes

KIND = "modernbert"
#: What the names of an encoder with a head begin with.
_PREFIX = "model."
_TOKENS = "model.embeddings.tok_embeddings"
_NORM = "model.final_norm"
_ENCODER = {
    "embeddings/token": _TOKENS,
    "embeddings/norm": "model.embeddings.norm",
    "layers_{}/attention/query": "model.layers.{}.attn.query",
    "layers_{}/attention/key": "model.layers.{}.attn.key",
    "layers_{}/attention/value": "model.layers.{}.attn.value",
    "layers_{}/attention/output_projection": "model.layers.{}.attn.Wo",
    "layers_{}/attention_norm": "model.layers.{}.attn_norm",
    "layers_{}/intermediate": "model.layers.{}.mlp.Wi",
    "layers_{}/feedforward_output": "model.layers.{}.mlp.Wo",
    "layers_{}/feedforward_norm": "model.layers.{}.mlp_norm",
    "final_norm": _NORM,
}
_HEAD = {
    "token": _TOKENS,
    "transform": "head.dense",
    "norm": "head.norm",
    "bias": "decoder.bias",
}
#: Their matrix of attention is these three, on top of one another.
_JOINED, _PARTS = ".Wqkv.", (".query.", ".key.", ".value.")
#: Entry of `config.json` -> the layers that have biases if it is true.
_BIASES = {
    "attention_bias": r".*\.attn\.\w+",
    "mlp_bias": r".*\.mlp\.\w+",
    "norm_bias": r".*norm",
    "classifier_bias": r"head\.dense",
}
_CLASS = "ModernBertFor{}"
#: No activation, in a head that gives back what it reads.
_NONE = "linear"


# === In ===


def read(path, config, weights, tokenizer):
    """Makes a `MaskedLM`, or a fine-tuned model.

    Args:
        path: The directory, a `Path`.
        config: Its `config.json`, a dict.
        weights: Its `Weights`.
        tokenizer: Its tokenizer, or `None`.

    Raises:
        ValueError: The model here does not compute what theirs does.
    """
    encoder = read_encoder(path / "config.json", config)
    weights = _as_ours(weights, config, encoder["vocabulary_size"])
    encoder["use_bias"] = f"{_NORM}.bias" in weights.shapes
    check_sizes(MaskedLM, {"encoder": encoder}, *weights.size)
    if tokenizer is None:
        encoder["padding_id"] = config.get("pad_token_id") or 0
    if "classifier.weight" in weights.shapes:
        return _read_task(config, encoder, tokenizer, weights)
    model = new_masked_lm(encoder, tokenizer)
    targets = [(model.encoder, pytorch_format(_ENCODER))]
    if "head.dense.weight" in weights.shapes:
        activation = config.get("classifier_activation", "gelu")
        if GELUS.get(activation) != encoder["approximate_gelu"]:
            raise ValueError(
                f"{path / 'config.json'}: classifier_activation is {activation!r}; "
                "here encoder and head have the same gelu."
            )
        targets.append((model.network.head, pytorch_format(_HEAD)))
    else:
        warnings.warn(
            f"{weights.path} has an encoder alone; the head on it is new.", stacklevel=3
        )
    assign_weights(weights, *targets)
    return model


def _as_ours(weights, config, vocabulary_size):
    """Returns weights by the names of the tables above, with the biases of ours.

    A head here has all biases, and an encoder has all or none. Where theirs has some,
    the others are zeros.
    """
    stored = _by_name(weights)
    biases = {n for n in stored if n.startswith(_PREFIX) and n.endswith(".bias")}
    if not (config.get("attention_bias") or config.get("mlp_bias")):
        # The head's norm needs biases; the encoder's norms have them as zeros then.
        if not any(stored[name][1]().any() for name in biases):
            stored = {
                name: entry for name, entry in stored.items() if name not in biases
            }
            biases = set()
    bias_shapes = {
        name.removesuffix("weight") + "bias": shape[:1]
        for name, (shape, _) in stored.items()
        if name.endswith(".weight") and not name.startswith(_TOKENS)
        if biases or not name.startswith(_PREFIX)
    }
    if "head.dense.weight" in stored and "classifier.weight" not in stored:
        bias_shapes["decoder.bias"] = (vocabulary_size,)
    for name, shape in bias_shapes.items():
        stored.setdefault(name, (shape, lambda shape=shape: np.zeros(shape, "float32")))
    shapes = {name: shape for name, (shape, _) in stored.items()}
    return Weights(weights.path, shapes, lambda name: stored[name][1]())


def _by_name(weights):
    """Returns name -> shape and a function that returns the array.

    Query, key and value have an entry each. The output's matrix, which is the table of
    the embeddings, has none.
    """
    entries = {}
    is_bare = not any(name.startswith(_PREFIX) for name in weights.shapes)
    for name, shape in weights.shapes.items():

        def read(name=name):
            return weights.read(name)

        own = _PREFIX * is_bare + name
        if _JOINED in own and shape and shape[0] % len(_PARTS) == 0:
            shape = shape[0] // len(_PARTS), *shape[1:]
            for i, part in enumerate(_PARTS):
                own_part = own.replace(_JOINED, part)
                entries[own_part] = (
                    shape,
                    lambda read=read, i=i: np.split(read(), len(_PARTS))[i],
                )
        else:
            entries[own] = shape, read
    if "decoder.weight" in entries:
        _, copy = entries.pop("decoder.weight")
        if not np.array_equal(copy(), entries[f"{_TOKENS}.weight"][1]()):
            raise ValueError(
                f"{weights.path}: decoder.weight is not {_TOKENS}.weight; here they "
                "are one."
            )
    return entries


def _read_task(config, encoder, tokenizer, weights):
    architecture = (config.get("architectures") or [""])[0]
    task = hugging_face_tasks.TASKS.get(architecture.removeprefix(_CLASS.format("")))
    names = [name for name in weights.shapes if name.startswith("head.")]
    arrays = {
        name: np.asarray(weights.read(name), "float32")
        for name in (*names, f"{_NORM}.weight", f"{_NORM}.bias")
        if name in weights.shapes
    }
    same = giving_back(arrays[f"{_NORM}.weight"], arrays.get(f"{_NORM}.bias", 0))
    if (
        task is None
        or config.get("classifier_activation") != _NONE
        or config.get("classifier_pooling", "cls") != "cls"
        or not all(np.array_equal(arrays[name], same[name]) for name in names)
    ):
        raise ValueError(
            f"{weights.path}: its head has layers that no head here has. Convert the "
            "encoder that it was fine-tuned from."
        )
    model = hugging_face_tasks.new_model(task, config, encoder, tokenizer, weights)
    shapes = {n: shape for n, shape in weights.shapes.items() if n not in names}
    layer = "start_and_end" if task == "extractor" else "dense"
    assign_weights(
        weights._replace(shapes=shapes),
        (model.encoder, pytorch_format(_ENCODER)),
        (model.head, pytorch_format({layer: "classifier"})),
    )
    hugging_face_tasks.take_range(model)
    return model


# === Out ===


def is_like(encoder):
    """Whether an encoder goes out as a ModernBERT, if it can."""
    return encoder.norm == "pre"


def contents(model):
    """Returns what `config.json` and `model.safetensors` hold of a model.

    The files hold the head of a `MaskedLM` and of a fine-tuned model. They hold the
    encoder alone of other models: ModernBERT has no head for replaced tokens.

    Args:
        model: A model of ours, not of several tasks.

    Returns:
        A dict, and a dict of arrays.

    Raises:
        ValueError: ModernBERT's classes cannot hold it.
    """
    encoder = model.encoder
    config = {"model_type": KIND, **written(encoder, model.tokenizer)}
    arrays = exported_weights(encoder, pytorch_format(_ENCODER))
    if isinstance(model, SentenceEncoder):
        task = None
    elif isinstance(model, DownstreamModel):
        task, entries, kernel, bias = hugging_face_tasks.linear_head_of(model)
        config |= {"classifier_activation": _NONE, **entries}
        arrays |= giving_back(
            arrays[f"{_NORM}.weight"], arrays.get(f"{_NORM}.bias", np.float32(0))
        )
        arrays |= hugging_face_tasks.linear("classifier", kernel, bias)
    elif (network := generator_of(model)) and network.encoder is encoder:
        task = "MaskedLM"
        arrays |= exported_weights(network.head, pytorch_format(_HEAD))
    else:
        task = None
    for entry, pattern in _BIASES.items():
        weights = [n for n in arrays if re.fullmatch(rf"{pattern}\.weight", n)]
        biases = {}
        for weight in weights:
            bias, rows = weight.removesuffix("weight") + "bias", len(arrays[weight])
            biases[bias] = arrays.pop(bias, np.zeros(rows, "float32"))
        config[entry] = encoder.use_bias or any(b.any() for b in biases.values())
        arrays |= biases if config[entry] else {}
    arrays = _joined(arrays)
    if task is None:
        arrays = {name.removeprefix(_PREFIX): array for name, array in arrays.items()}
    config["architectures"] = [_CLASS.format(task) if task else "ModernBertModel"]
    return config, arrays


def giving_back(gamma, beta):
    """Returns their head's first layers such that these give back what they read.

    What they read is normalised, times gamma, plus beta. The linear layer takes both
    away, and the norm, which has them too, finds its input normalised already. The
    epsilon makes a relative difference of at most itself if no variance is below 1/3.

    Args:
        gamma: `[hidden]`, of the encoder's last norm.
        beta: Likewise, or 0.

    Returns:
        Name -> array.

    Raises:
        ValueError: A number of gamma has no inverse.
    """
    with np.errstate(divide="ignore", over="ignore"):
        inverse = 1 / gamma
    if not np.isfinite(inverse).all():
        raise ValueError(
            "The encoder's last norm multiplies a number by 0, which ModernBERT's head "
            "cannot give back. Convert the encoder that the model was fine-tuned from."
        )
    return {
        "head.dense.weight": np.diag(inverse),
        "head.dense.bias": -beta * inverse,
        "head.norm.weight": gamma,
        "head.norm.bias": beta + np.zeros_like(gamma),
    }


def _joined(arrays):
    parts_of = {}
    for name, array in arrays.items():
        part = next((part for part in _PARTS if part in name), None)
        name = name if part is None else name.replace(part, _JOINED)
        parts_of.setdefault(name, []).append(array)
    return {name: np.concatenate(parts) for name, parts in parts_of.items()}
