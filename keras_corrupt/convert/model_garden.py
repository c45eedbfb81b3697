"""Checkpoints of TensorFlow Model Garden: ELECTRA, BERT and TEAMS in, encoders out.

A checkpoint does not say which gelu its model had; tanh's approximation is what Model
Garden has if it is not told otherwise.
"""

import re
import warnings

import numpy as np

from keras_corrupt.convert.checkpoint import (
    ObjectGraph,
    checkpoint_weights,
    is_object_based,
    prefix_of,
    write_checkpoint,
)
from keras_corrupt.convert.files import find_tokenizer
from keras_corrupt.convert.systems import new_electra, new_masked_lm, new_teams
from keras_corrupt.convert.weights import (
    Format,
    Weights,
    assign_weights,
    check_epsilon,
    encoder_of,
    exported_weights,
    in_common,
    measured,
    split_heads,
)

# === Names: paths of attributes ===

_LAYER = {
    "attention/query": "_attention_layer/_query_dense",
    "attention/key": "_attention_layer/_key_dense",
    "attention/value": "_attention_layer/_value_dense",
    "attention/output_projection": "_attention_layer/_output_dense",
    "attention_norm": "_attention_layer_norm",
    "intermediate": "_intermediate_dense",
    "feedforward_output": "_output_dense",
    "feedforward_norm": "_output_layer_norm",
}
_ENCODER = {
    "embeddings/token": "_embedding_layer",
    "embeddings/position": "_position_embedding_layer",
    "embeddings/segment": "_type_embedding_layer",
    "embeddings/norm": "_embedding_norm_layer",
    "embedding_projection": "_embedding_projection",
    **{f"layers_{{}}/{o}": f"_transformer_layers/{{}}/{t}" for o, t in _LAYER.items()},
}
#: TEAMS's encoders have their embeddings in a network of its own, which they share.
_TEAMS_EMBEDDINGS = {
    "embeddings/position": "layer_with_weights-1",
    "embeddings/segment": "layer_with_weights-2",
    "embeddings/norm": "layer_with_weights-3",
    "embedding_projection": "layer_with_weights-4",
}
_MASKED_LM = {
    "token/embeddings": "embedding_table",
    "transform": "dense",
    "norm": "layer_norm",
    "bias": "bias",
}
_KINDS = {name: name for name in ("kernel", "bias", "gamma", "beta", "embeddings")}
_POOLER = "encoder/_pooler_layer"


def prefixed(table, theirs, ours=""):
    """Returns a table below other names."""
    return {ours + name: f"{theirs}/{their_name}" for name, their_name in table.items()}


def recognises(path):
    """Whether a path names a checkpoint of objects."""
    prefix = prefix_of(path)
    return prefix is not None and is_object_based(prefix)


# === In ===


def read(path, options):
    """Makes a model of ours.

    Args:
        path: A checkpoint's prefix or directory, a `Path`; a `vocab.txt` beside it is
            its vocabulary.
        options: `Options`.

    Returns:
        The model, and the names of its networks that the files do not have.

    Raises:
        ValueError: It is another model's.
    """
    prefix = prefix_of(path)
    graph, weights = ObjectGraph(prefix), checkpoint_weights(prefix)
    tokenizer = find_tokenizer(prefix.parent)
    approximate = options.approximate_gelu is not False
    if "model/discriminator_rtd_head" in graph:
        return _read_teams(graph, weights, tokenizer, approximate), ()
    if "encoder" not in graph:
        raise ValueError(f"{path} has no encoder; its names begin with others.")

    def encoder_format(root, num_heads=1):
        return _format(graph, prefixed(_ENCODER, root), num_heads)

    def head_format(table, root):
        return _format(graph, prefixed(table, root))

    sizes = measured(weights, encoder_format("encoder"))
    sizes["approximate_gelu"] = approximate
    unused = _unused(graph, "encoder/_pooler_layer", "model/classification")
    main = encoder_format("encoder", sizes["num_heads"])
    if "model/discriminator_projection" in graph:
        root = "model/generator_network"
        other = measured(weights, encoder_format(root))
        other["approximate_gelu"] = approximate
        generator_format = encoder_format(root, other["num_heads"])
        common = in_common(weights, main, weights, generator_format)
        model = new_electra(sizes, tokenizer, other, common)
        head = {
            "transform": "discriminator_projection",
            "classifier": "discriminator_head",
        }
        assign_weights(
            weights,
            (model.discriminator.encoder, main),
            (model.discriminator.head, head_format(head, "model")),
            (model.generator.encoder, generator_format),
            (model.generator.head, head_format(_MASKED_LM, "model/masked_lm")),
            unused=f"{unused}|{_unused(graph, root + '/_pooler_layer')}",
        )
        return model, ()
    model = new_masked_lm(sizes, tokenizer)
    targets = [(model.encoder, main)]
    for root in ("masked_lm", "model/masked_lm"):
        if root in graph:
            targets.append((model.network.head, head_format(_MASKED_LM, root)))
            break
    else:
        warnings.warn(
            f"{path} has an encoder alone; the head on it is new.", stacklevel=3
        )
    assign_weights(
        weights, *targets, unused=rf"{unused}|.*(next_sentence|classification).*"
    )
    return model, ()


def _read_teams(graph, weights, tokenizer, approximate):
    embeddings = prefixed(_TEAMS_EMBEDDINGS, "encoder/_embedding_network")
    embeddings["embeddings/token/embeddings"] = "model/masked_lm/embedding_table"

    def encoder_format(root, num_heads=1):
        layers = prefixed(_LAYER, f"{root}/_hidden_layers/{{}}", "layers_{}/")
        return _format(graph, embeddings | layers, num_heads)

    weights = _with_bias(weights, encoder_format("encoder"))
    sizes = measured(weights, encoder_format("encoder"))
    sizes["approximate_gelu"] = approximate
    layers, heads = sizes["num_layers"], sizes["num_heads"]
    generator = "model/generator_network"
    generator_layers = measured(weights, encoder_format(generator))["num_layers"]
    rtd = "model/discriminator_rtd_head"
    task_layers = 0
    while f"{rtd}/hidden_layers/{task_layers}" in graph:
        task_layers += 1
    tied = 0
    while tied < min(layers, generator_layers) and _is_same(graph, generator, tied):
        tied += 1
    model = new_teams(sizes, tokenizer, generator_layers, tied, task_layers)
    main = encoder_format("encoder").table
    table = {f"encoder/{ours}": theirs for ours, theirs in main.items()}
    for i in range(task_layers):
        ours = f"rtd_encoder/layers_{layers - task_layers + i}/"
        table |= prefixed(_LAYER, f"{rtd}/hidden_layers/{i}", ours)
    mws = "model/discriminator_mws_head"
    table |= {
        "head/transform": f"{rtd}/dense",
        "head/classifier": f"{rtd}/rtd_head",
        "selection_head/transform": f"{mws}/dense",
        "selection_head/norm": f"{mws}/layer_norm",
    }
    head = _format(graph, prefixed(_MASKED_LM, "model/masked_lm"))
    assign_weights(
        weights,
        (model.discriminator, _format(graph, table, heads)),
        (model.generator.encoder, encoder_format(generator, heads)),
        (model.generator.head, head),
        unused=_unused(graph, "encoder/_pooler_layer", f"{generator}/_pooler_layer"),
    )
    return model


def _is_same(graph, generator, layer):
    """Whether a layer of TEAMS's generator is the discriminator's."""
    name = f"_hidden_layers/{layer}/_intermediate_dense/kernel"
    return graph.key(f"encoder/{name}") == graph.key(f"{generator}/{name}")


def _with_bias(weights, form):
    """Gives TEAMS's projection of embeddings the bias that it has not, zeros."""
    kernel = form.name("embedding_projection/kernel")
    bias = form.name("embedding_projection/bias")
    if kernel not in weights.shapes or bias in weights.shapes:
        return weights
    zeros = np.zeros(weights.shapes[kernel][-1:], "float32")

    def read(name):
        return zeros if name == bias else weights.read(name)

    return Weights(weights.path, {**weights.shapes, bias: zeros.shape}, read)


def _format(graph, table, num_heads=1):
    return Format(table, _KINDS, to_theirs=split_heads(num_heads), resolve=graph.key)


def _unused(graph, *layers):
    """Returns a regular expression of the names of layers that nothing takes."""
    kinds = ("kernel", "bias", "dense/kernel", "dense/bias")
    kinds += ("out_proj/kernel", "out_proj/bias")
    names = (graph.key(f"{layer}/{kind}") for layer in layers for kind in kinds)
    return "|".join(map(re.escape, names))


# === Out ===


def write(directory, model, options):
    """Writes an encoder, as the checkpoint `encoder`, and its vocabulary.

    Args:
        directory: A `Path`, empty.
        model: A model of ours.
        options: `Options`.

    Raises:
        ValueError: Model Garden's encoder cannot hold it.
    """
    encoder = encoder_of(model, bool(options.approximate_gelu))
    check_epsilon(encoder)
    table = {o: f"encoder/{theirs}" for o, theirs in _ENCODER.items()}
    heads = split_heads(encoder.num_heads)
    arrays = exported_weights(encoder, Format(table, _KINDS, to_theirs=heads))
    # Nothing here has been a pooler: theirs begins as tanh.
    arrays |= {
        f"{_POOLER}/kernel": np.eye(encoder.hidden_size),
        f"{_POOLER}/bias": np.zeros(encoder.hidden_size),
    }
    write_checkpoint(directory / "encoder", arrays)
    if model.tokenizer is not None:
        files = model.tokenizer.files()
        for name in {"vocab.txt", "tokenizer.json", "tokenizer_config.json"} & {*files}:
            (directory / name).write_text(files[name], encoding="utf-8")


def outputs(directory, inputs):
    """Returns what Model Garden's encoder makes of a directory's: name -> array."""
    import tensorflow as tf
    from official.nlp.modeling import networks

    prefix = prefix_of(directory)
    form = _format(ObjectGraph(prefix), prefixed(_ENCODER, "encoder"))
    sizes = measured(checkpoint_weights(prefix), form)
    names = {
        **{"vocabulary_size": "vocab_size", "embedding_size": "embedding_width"},
        **{"hidden_size": "hidden_size", "intermediate_size": "inner_dim"},
        **{"num_layers": "num_layers", "num_heads": "num_attention_heads"},
        **{"max_length": "max_sequence_length", "num_segments": "type_vocab_size"},
    }
    encoder = networks.BertEncoderV2(**{names[n]: size for n, size in sizes.items()})
    named_inputs = {
        "input_word_ids": inputs["token_ids"],
        "input_mask": inputs["padding_mask"],
        "input_type_ids": inputs["segment_ids"],
    }
    encoder(named_inputs)  # makes the variables
    status = tf.train.Checkpoint(encoder=encoder).read(str(prefix))
    status.assert_existing_objects_matched()
    return {"hidden": encoder(named_inputs)["sequence_output"].numpy()}
