"""Hugging Face's ELECTRA, BERT and ModernBERT, in and out, and others in.

A directory has `config.json`, `model.safetensors` and the tokenizer's files. One of
ELECTRA's two networks stands in a directory by itself; with both, the discriminator is
in the directory and the generator in its folder `generator`.
"""

import json
import warnings

import numpy as np
from safetensors.numpy import save

from keras_corrupt.convert import (
    hugging_face_coco_lm,
    hugging_face_modernbert,
    hugging_face_outputs,
    hugging_face_roberta,
    hugging_face_tasks,
    sentence_transformers,
)
from keras_corrupt.convert.files import (
    config_has,
    find_tokenizer,
    read_json,
    safetensors_weights,
    sizes_of,
)
from keras_corrupt.convert.hugging_face_config import (
    GELUS,
    RATES,
    SIZES,
    check_fixed,
)
from keras_corrupt.convert.pickled import pickled_weights
from keras_corrupt.convert.systems import (
    discriminator_of,
    generator_of,
    new_electra,
    new_masked_lm,
)
from keras_corrupt.convert.weights import (
    Weights,
    assign_weights,
    encoder_of,
    exported_weights,
    in_common,
    pytorch_format,
)
from keras_corrupt.downstream.model import DownstreamModel
from keras_corrupt.models import MaskedLM
from keras_corrupt.multitask.multi_task_model import MultiTaskModel
from keras_corrupt.presets.sizes import check_sizes

# === Names ===

_ENCODER = {
    "embeddings/token": "embeddings.word_embeddings",
    "embeddings/position": "embeddings.position_embeddings",
    "embeddings/segment": "embeddings.token_type_embeddings",
    "embeddings/norm": "embeddings.LayerNorm",
    "embedding_projection": "embeddings_project",
    "layers_{}/attention/query": "encoder.layer.{}.attention.self.query",
    "layers_{}/attention/key": "encoder.layer.{}.attention.self.key",
    "layers_{}/attention/value": "encoder.layer.{}.attention.self.value",
    "layers_{}/attention/output_projection": "encoder.layer.{}.attention.output.dense",
    "layers_{}/attention_norm": "encoder.layer.{}.attention.output.LayerNorm",
    "layers_{}/intermediate": "encoder.layer.{}.intermediate.dense",
    "layers_{}/feedforward_output": "encoder.layer.{}.output.dense",
    "layers_{}/feedforward_norm": "encoder.layer.{}.output.LayerNorm",
}
_DISCRIMINATOR_HEAD = {
    "transform": "discriminator_predictions.dense",
    "classifier": "discriminator_predictions.dense_prediction",
}
_GENERATOR_HEAD = {
    "token": "electra.embeddings.word_embeddings",
    "transform": "generator_predictions.dense",
    "norm": "generator_predictions.LayerNorm",
    "bias": "generator_lm_head.bias",
}
_BERT_HEAD = {
    "token": "bert.embeddings.word_embeddings",
    "transform": "cls.predictions.transform.dense",
    "norm": "cls.predictions.transform.LayerNorm",
    "bias": "cls.predictions.bias",
}
#: What a file may have that nothing here reads: poolers, next sentences, copies.
_UNUSED = (
    r".*\.position_ids|((bert|roberta)\.)?pooler\..*|cls\.seq_relationship\..*|"
    r"(cls\.predictions|lm_head)\.decoder\..*|generator_lm_head\.weight"
)
#: Their `model_type` -> what the names of its encoder begin with.
_PREFIXES = {"electra": "electra.", "bert": "bert."} | dict.fromkeys(
    hugging_face_roberta.KINDS, hugging_face_roberta.PREFIX
)
#: That -> the head of its masked language model.
_HEADS = {
    "electra.": _GENERATOR_HEAD,
    "bert.": _BERT_HEAD,
    hugging_face_roberta.PREFIX: hugging_face_roberta.HEAD,
}
#: A copy that a file may have -> the weight that it must be equal to.
_TIED = {
    "generator_lm_head.weight": "electra.embeddings.word_embeddings.weight",
    "cls.predictions.decoder.weight": "bert.embeddings.word_embeddings.weight",
    "lm_head.decoder.weight": "roberta.embeddings.word_embeddings.weight",
    "lm_head.decoder.bias": "lm_head.bias",
}

# === config.json ===

_SIZES = {**SIZES, "num_segments": "type_vocab_size"}
#: Entries that an encoder here has no choice of.
_FIXED = {
    "position_embedding_type": "absolute",
    "is_decoder": False,
    "add_cross_attention": False,
}
_REFUSED = {
    "deberta-v2": "its attention has vectors of positions in every layer",
    "distilbert": "it has no segments",
    "albert": "its layers are one layer, over and over",
}


def encoder_format(prefix):
    """Returns the `Format` of an encoder whose names have a prefix."""
    return pytorch_format({ours: prefix + n for ours, n in _ENCODER.items()})


# === In ===


def recognises(path):
    """Whether a directory is one of Hugging Face's."""
    return config_has(path, "model_type")


def read(path, options):
    """Makes a model of ours.

    Args:
        path: A directory, a `Path`.
        options: `Options`. The generator may also be in the folder `generator`.

    Returns:
        The model, and the names of its networks that the files do not have.

    Raises:
        ValueError: They are of another model, or what this package has not.
    """
    config = read_json(path / "config.json")
    kind = config.get("model_type")
    if kind == "cocolm":
        return hugging_face_coco_lm.read(path, config, find_weights(path))
    if kind == hugging_face_modernbert.KIND:
        parts = config, find_weights(path), find_tokenizer(path)
        return hugging_face_modernbert.read(path, *parts), ()
    if kind not in _PREFIXES:
        reason = _REFUSED.get(kind, "it is none of those that can be read")
        raise ValueError(f"{path}: a {kind} cannot be an encoder here: {reason}.")
    encoder, weights = read_encoder(path, config), find_weights(path)
    if kind in hugging_face_roberta.KINDS:
        encoder, weights = hugging_face_roberta.as_bert(encoder, weights, config)
    check_sizes(MaskedLM, {"encoder": encoder}, *weights.size)
    tokenizer = find_tokenizer(path)
    names = weights.shapes
    if tokenizer is None:
        encoder["padding_id"] = config.get("pad_token_id") or 0
    if task := hugging_face_tasks.task_of(config, names):
        form = encoder_format(_prefix(kind, names))
        return hugging_face_tasks.read(
            task, config, encoder, tokenizer, weights, form
        ), ()
    _check_tied(weights)
    if kind != "electra" or any(name.startswith("generator_") for name in names):
        model = new_masked_lm(encoder, tokenizer)
        if kind == "electra" and encoder["approximate_gelu"]:
            raise ValueError(f"{path}: a generator's head has gelu, its encoder not.")
        _take(weights, kind, model.network, _HEADS[_PREFIXES[kind]])
        return model, ()
    generator = options.generator or path / "generator"
    if not (generator / "config.json").is_file():
        model = new_electra(encoder, tokenizer)
        _take(weights, kind, model.discriminator, _DISCRIMINATOR_HEAD)
        return model, ("generator",)
    other = find_weights(generator)
    sizes = read_encoder(generator, read_json(generator / "config.json"))
    check_sizes(MaskedLM, {"encoder": sizes}, *other.size)
    forms = [encoder_format(_prefix(kind, w.shapes)) for w in (weights, other)]
    common = in_common(weights, forms[0], other, forms[1])
    model = new_electra(encoder, tokenizer, sizes, common)
    _take(weights, kind, model.discriminator, _DISCRIMINATOR_HEAD)
    _take(other, kind, model.generator, _GENERATOR_HEAD)
    return model, ()


def read_encoder(path, config):
    """Returns the arguments of `TransformerEncoder` that a `config.json` describes."""
    file = path / "config.json"
    is_electra = config.get("model_type") == "electra"
    names = _SIZES | ({"embedding_size": "embedding_size"} if is_electra else {})
    config = {"type_vocab_size": 2, **config}
    check_fixed(config, _FIXED, file)
    activation = config.get("hidden_act", "gelu")
    if activation not in GELUS:
        raise ValueError(f"{file}: hidden_act is {activation!r}, not gelu.")
    encoder = sizes_of(config, names, file)
    encoder |= {ours: config[n] for ours, n in RATES.items() if n in config}
    return encoder | {"approximate_gelu": GELUS[activation]}


def find_weights(path):
    """Returns the `Weights` of a directory, by their present names."""
    if (path / "model.safetensors").exists():
        weights = safetensors_weights(path / "model.safetensors")
    else:
        weights = pickled_weights(path)
    # BERT's first releases name layer norms as TensorFlow does.
    present = {
        name.replace("LayerNorm.gamma", "LayerNorm.weight").replace(
            "LayerNorm.beta", "LayerNorm.bias"
        ): name
        for name in weights.shapes
    }
    shapes = {name: weights.shapes[old] for name, old in present.items()}
    return Weights(weights.path, shapes, lambda name: weights.read(present[name]))


def _prefix(kind, names):
    prefix = _PREFIXES[kind]
    return prefix if any(name.startswith(prefix) for name in names) else ""


def _take(weights, kind, network, head):
    prefix = _prefix(kind, weights.shapes)
    targets = [(network.encoder, encoder_format(prefix))]
    names = [name for layer, name in head.items() if layer != "token"]
    if any(shape.startswith(tuple(names)) for shape in weights.shapes):
        targets.append((network.head, pytorch_format(head)))
    else:
        warnings.warn(
            f"{weights.path} has an encoder alone; the head on it is new.", stacklevel=4
        )
    assign_weights(weights, *targets, unused=_UNUSED)


def _check_tied(weights):
    for copy, original in _TIED.items():
        if copy in weights.shapes and original in weights.shapes:
            if not np.array_equal(weights.read(copy), weights.read(original)):
                raise ValueError(
                    f"{weights.path}: {copy} is not {original}; here they are one."
                )


# === Out ===


def write(directory, model, options):
    """Writes a model's files, of a `MultiTaskModel` a directory for each task.

    Args:
        directory: A `Path`, empty.
        model: A model of ours.
        options: `Options`.

    Raises:
        ValueError: Hugging Face's classes cannot hold it.
    """
    is_modern = hugging_face_modernbert.is_like(model.encoder)
    encoder = model.encoder if is_modern else encoder_of(model)
    if isinstance(model, MultiTaskModel):
        hugging_face_tasks.check_heads(
            model,
            hugging_face_modernbert.contents
            if is_modern
            else hugging_face_tasks.head_of,
        )
        for task, part in zip(model.tasks, model.parts, strict=True):
            (directory / task).mkdir()
            write(directory / task, part, options)
        return
    if sentence_transformers.is_wanted(model, options):
        sentence_transformers.write(directory, model)
    if is_modern:
        _save(directory, model, *hugging_face_modernbert.contents(model))
        return
    if isinstance(model, DownstreamModel):
        architecture, entries, arrays = hugging_face_tasks.head_of(model)
        arrays |= exported_weights(encoder, encoder_format("electra."))
        _write(directory, model, encoder, "electra", architecture, arrays, entries)
        return
    discriminator, generator = discriminator_of(model), generator_of(model)
    if discriminator is not None:
        arrays = exported_weights(
            discriminator.head, pytorch_format(_DISCRIMINATOR_HEAD)
        )
        arrays |= exported_weights(encoder, encoder_format("electra."))
        _write(directory, model, encoder, "electra", "ElectraForPreTraining", arrays)
    elif generator is not None and generator.encoder is encoder:
        _write_masked_lm(directory, model, generator)
        return
    else:
        arrays = exported_weights(encoder, encoder_format(""))
        _write(directory, model, encoder, "electra", "ElectraModel", arrays)
    if generator is not None and "generator" not in options.untrained_networks:
        (directory / "generator").mkdir()
        _write_masked_lm(directory / "generator", model, generator, kind="electra")


def _write_masked_lm(directory, model, network, kind=None):
    encoder = network.encoder
    if kind is None:
        wide = encoder.embedding_size == encoder.hidden_size
        kind = "bert" if wide else "electra"
    if kind == "electra" and encoder.approximate_gelu:
        raise ValueError(
            "Hugging Face's generator has gelu in its head, this one gelu's tanh "
            "approximation. Convert `encoder` alone, or train with gelu."
        )
    prefix = _PREFIXES[kind]
    arrays = exported_weights(encoder, encoder_format(prefix))
    arrays |= exported_weights(network.head, pytorch_format(_HEADS[prefix]))
    architecture = {"bert": "BertForMaskedLM", "electra": "ElectraForMaskedLM"}[kind]
    _write(directory, model, encoder, kind, architecture, arrays)


def _write(directory, model, encoder, kind, architecture, arrays, entries=None):
    sizes = encoder.architecture
    names = _SIZES | RATES
    if kind == "electra":
        names = names | {"embedding_size": "embedding_size"}
    config = {
        "architectures": [architecture],
        "model_type": kind,
        **{theirs: sizes[ours] for ours, theirs in names.items()},
        "hidden_act": "gelu_pytorch_tanh" if encoder.approximate_gelu else "gelu",
        "pad_token_id": encoder.padding_id,
        **(entries or {}),
    }
    _save(directory, model, config, arrays)


def _save(directory, model, config, arrays):
    config = {**config, "dtype": "float32"}
    texts = {"config.json": json.dumps(config, indent=2) + "\n"}
    if model.tokenizer is not None:
        sizes = model.max_length, model.encoder.num_segments
        fills = config["architectures"][0].endswith("ForMaskedLM")
        texts |= tokenizer_files(model.tokenizer, *sizes, special_in_text=fills)
    for name, text in texts.items():
        (directory / name).write_text(text, encoding="utf-8")
    file = directory / "model.safetensors"
    file.write_bytes(save(arrays, metadata={"format": "pt"}))


def tokenizer_files(tokenizer, max_length, num_segments=2, special_in_text=False):
    """Returns the files of a tokenizer, as Hugging Face has them: name -> text.

    Args:
        tokenizer: A `Tokenizer`.
        max_length: The most tokens that the model reads.
        num_segments: The kinds of segments that the model knows.
        special_in_text: Whether `[MASK]` in a text is the mask, as the pipeline
            `fill-mask` needs it. Otherwise it is text, as everywhere here.
    """
    files = tokenizer.files()
    files.pop("tokenizer_settings.json")
    config = json.loads(files["tokenizer_config.json"])
    names = {n: t for n, t in config.items() if n.endswith("_token")}
    config |= {
        "do_lower_case": tokenizer.flags.get("lowercase", False),
        "model_max_length": max_length,
        "split_special_tokens": not special_in_text,
    }
    if not num_segments:
        config["model_input_names"].remove("token_type_ids")
    return {
        **files,
        "tokenizer_config.json": json.dumps(config, indent=2) + "\n",
        "special_tokens_map.json": json.dumps(names, indent=2) + "\n",
    }


outputs = hugging_face_outputs.outputs
