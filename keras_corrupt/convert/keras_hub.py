"""KerasHub's `ElectraBackbone` and `BertBackbone`, in and out.

The two compute the same. BERT's has no size of embeddings apart from the hidden size,
but tasks on it (`BertTextClassifier`), so that an encoder goes there if it can. Both
have gelu's tanh approximation, and a pooler.
"""

import warnings

import numpy as np

from keras_corrupt import tokenizers
from keras_corrupt.convert import hdf5_weights
from keras_corrupt.convert.files import config_has, read_json, sizes_of
from keras_corrupt.convert.systems import new_electra, new_masked_lm
from keras_corrupt.convert.weights import (
    Format,
    Weights,
    assign_weights,
    check_epsilon,
    encoder_of,
    exported_weights,
    split_heads,
)
from keras_corrupt.models import MaskedLM
from keras_corrupt.presets.sizes import check_sizes

# === Names ===

_ENCODER = {
    "embeddings/token": "token_embedding",
    "embeddings/position": "position_embedding",
    "embeddings/segment": "segment_embedding",
    "embeddings/norm": "embeddings_layer_norm",
    "embedding_projection": "embeddings_projection",
    "layers_{}/attention/query": "transformer_layer_{}/self_attention_layer/query",
    "layers_{}/attention/key": "transformer_layer_{}/self_attention_layer/key",
    "layers_{}/attention/value": "transformer_layer_{}/self_attention_layer/value",
    "layers_{}/attention/output_projection": (
        "transformer_layer_{}/self_attention_layer/attention_output"
    ),
    "layers_{}/attention_norm": "transformer_layer_{}/self_attention_layer_norm",
    "layers_{}/intermediate": "transformer_layer_{}/feedforward_intermediate_dense",
    "layers_{}/feedforward_output": "transformer_layer_{}/feedforward_output_dense",
    "layers_{}/feedforward_norm": "transformer_layer_{}/feedforward_layer_norm",
}
_KINDS = {name: name for name in ("kernel", "bias", "gamma", "beta", "embeddings")}
_SIZES = {
    **{"num_layers": "num_layers", "num_heads": "num_heads"},
    **{"hidden_size": "hidden_dim", "intermediate_size": "intermediate_dim"},
    **{"max_length": "max_sequence_length", "num_segments": "num_segments"},
}
#: Class -> our sizes that it alone names so.
_BACKBONES = {
    "ElectraBackbone": {
        "vocabulary_size": "vocab_size",
        "embedding_size": "embedding_dim",
    },
    "BertBackbone": {"vocabulary_size": "vocabulary_size"},
}
VOCABULARY = "assets/tokenizer/vocabulary.txt"


def encoder_format(num_heads):
    """Returns the `Format` of an encoder."""
    return Format(_ENCODER, _KINDS, to_theirs=split_heads(num_heads))


def recognises(path):
    """Whether a directory is one of KerasHub's presets."""
    return config_has(path, "registered_name")


# === In ===


def read(path, options):
    """Makes a model of ours, whose heads are new.

    Args:
        path: A directory, a `Path`.
        options: `Options`.

    Returns:
        The model, and the names of its networks that the files do not have.

    Raises:
        ValueError: It is another model's preset, or cannot be read.
    """
    file, weights_file = path / "config.json", path / hdf5_weights.FILE
    content = read_json(file)
    name = str(content.get("registered_name")).rpartition(">")[2]
    if name not in _BACKBONES:
        raise ValueError(f"{path} is a {name}; {' and '.join(_BACKBONES)} can be read.")
    config = content.get("config")
    if not isinstance(config, dict):
        raise ValueError(f"{file}: its config is {config!r}.")
    encoder = sizes_of(config, _SIZES | _BACKBONES[name], file)
    encoder["approximate_gelu"] = True
    if "dropout" in config:
        encoder |= {n: config["dropout"] for n in ("dropout", "attention_dropout")}
    if not weights_file.is_file():
        raise ValueError(f"{path} has no {hdf5_weights.FILE}.")
    check_sizes(MaskedLM, {"encoder": encoder}, *hdf5_weights.count(weights_file))
    backbone = new_backbone(name, encoder)
    backbone.load_weights(weights_file)
    arrays = {v.path: v for v in backbone.weights}
    shapes = {path: tuple(v.shape) for path, v in arrays.items()}
    weights = Weights(str(weights_file), shapes, lambda n: np.array(arrays[n]))

    new = new_electra if name == "ElectraBackbone" else new_masked_lm
    model = new(encoder, find_tokenizer(path))
    form = encoder_format(encoder["num_heads"])
    assign_weights(weights, (model.encoder, form), unused="pooled_dense/.*")
    warnings.warn(f"{path} has an encoder alone; the head on it is new.", stacklevel=3)
    return model, tuple(n for n in model.networks if n == "generator")


def find_tokenizer(path):
    """Returns the tokenizer of a preset, `None` if it has none."""
    if not (path / VOCABULARY).exists():
        return None
    config = read_json(path / "tokenizer.json").get("config", {})
    flags = {n: bool(config.get(n)) for n in ("lowercase", "strip_accents")}
    return tokenizers.from_file(path / VOCABULARY, **flags)


# === Out ===


def write(directory, model, options):
    """Writes an encoder, with its tokenizer if that is one of word pieces.

    Args:
        directory: A `Path`, empty.
        model: A model of ours.
        options: `Options`.

    Raises:
        ValueError: KerasHub cannot hold it, or is not installed.
    """
    hub = library()
    encoder = encoder_of(model, bool(options.approximate_gelu))
    check_epsilon(encoder)
    wide = encoder.embedding_size == encoder.hidden_size
    name = "BertBackbone" if wide else "ElectraBackbone"
    backbone = new_backbone(name, encoder.architecture)
    arrays = exported_weights(encoder, encoder_format(encoder.num_heads))
    # Nothing here has been a pooler: theirs begins as tanh.
    hidden = encoder.hidden_size
    arrays |= {"pooled_dense/kernel": np.eye(hidden), "pooled_dense/bias": [0] * hidden}
    for variable in backbone.weights:
        variable.assign(arrays[variable.path])
    backbone.save_to_preset(str(directory))
    tokenizer = model.tokenizer
    if tokenizer is None:
        return
    flags = dict(tokenizer.flags)
    usual = set(tokenizer.roles.values()) == set(tokenizers.SPECIAL_TOKENS)
    if tokenizer.kind != "wordpiece" or flags.pop("language_neutral") or not usual:
        warnings.warn(
            "KerasHub has no such tokenizer, so the encoder is written alone.",
            stacklevel=3,
        )
        return
    cls = hub.models.BertTokenizer if wide else hub.models.ElectraTokenizer
    written = cls(vocabulary=tokenizer.vocabulary, **flags)
    if wide:  # what tasks read has the encoder's length, which they do not look up
        written = hub.models.BertTextClassifierPreprocessor(written, encoder.max_length)
    written.save_to_preset(str(directory))


def new_backbone(name, encoder):
    """Returns a backbone of an encoder's sizes, with new weights."""
    sizes = {theirs: encoder[ours] for ours, theirs in _SIZES.items()}
    sizes |= {theirs: encoder[ours] for ours, theirs in _BACKBONES[name].items()}
    cls = getattr(library().models, name)
    return cls(**sizes, dropout=encoder.get("dropout", 0.1), dtype="float32")


def library():
    """Returns KerasHub.

    Raises:
        ValueError: It is not installed.
    """
    try:
        import keras_hub
    except ImportError as error:
        raise ValueError(
            "KerasHub's presets need it: pip install keras-hub."
        ) from error
    return keras_hub


def outputs(directory, inputs):
    """Returns what KerasHub's own loader makes of a directory's encoder."""
    backbone = library().models.Backbone.from_preset(str(directory))
    return {"hidden": np.array(backbone(inputs)["sequence_output"])}
