"""Checkpoints of Google's TensorFlow 1 code: ELECTRA, Electric and BERT, in.

Sizes come from the shapes. The number of heads, which has none, stands in a
`bert_config.json`, or else heads have 64 numbers, as in all released models.
"""

import warnings

from keras_corrupt.convert.checkpoint import checkpoint_weights, prefix_of
from keras_corrupt.convert.files import find_tokenizer, read_json
from keras_corrupt.convert.systems import new_electra, new_electric, new_masked_lm
from keras_corrupt.convert.weights import Format, assign_weights, in_common, measured

HEAD_SIZE = 64
_EMBEDDINGS = {
    "embeddings/token/embeddings": "word_embeddings",
    "embeddings/position/embeddings": "position_embeddings",
    "embeddings/segment/embeddings": "token_type_embeddings",
    "embeddings/norm/gamma": "LayerNorm/gamma",
    "embeddings/norm/beta": "LayerNorm/beta",
}
_LAYERS = {
    "embedding_projection": "embeddings_project",
    "layers_{}/attention/query": "encoder/layer_{}/attention/self/query",
    "layers_{}/attention/key": "encoder/layer_{}/attention/self/key",
    "layers_{}/attention/value": "encoder/layer_{}/attention/self/value",
    "layers_{}/attention/output_projection": "encoder/layer_{}/attention/output/dense",
    "layers_{}/attention_norm": "encoder/layer_{}/attention/output/LayerNorm",
    "layers_{}/intermediate": "encoder/layer_{}/intermediate/dense",
    "layers_{}/feedforward_output": "encoder/layer_{}/output/dense",
    "layers_{}/feedforward_norm": "encoder/layer_{}/output/LayerNorm",
}
_DISCRIMINATOR_HEAD = {
    "transform": "discriminator_predictions/dense",
    "classifier": "discriminator_predictions/dense_1",
}
_KINDS = {name: name for name in ("kernel", "bias", "gamma", "beta")}
_UNUSED = r"bert/pooler/.*|cls/seq_relationship/.*"


def recognises(path):
    """Whether a path names a checkpoint; Model Garden's are known before."""
    return prefix_of(path) is not None


def encoder_format(names, root, ours=""):
    """Returns the `Format` of an encoder.

    Args:
        names: All names of the file.
        root: Where its layers are. Its embeddings may be ELECTRA's.
        ours: What our names begin with.
    """
    embeddings = f"{root}/embeddings"
    if f"{embeddings}/word_embeddings" not in names:
        embeddings = "electra/embeddings"
    table = {ours + o: f"{embeddings}/{theirs}" for o, theirs in _EMBEDDINGS.items()}
    table |= {ours + o: f"{root}/{theirs}" for o, theirs in _LAYERS.items()}
    return Format(table, _KINDS)


def softmax_format(names, token_root, transform, bias, ours=""):
    """Returns the `Format` of a head over the vocabulary.

    Args:
        names: All names of the file.
        token_root: The encoder whose token embeddings are its matrix.
        transform: What the names of its layers begin with.
        bias: The name of its bias.
        ours: What our names begin with.
    """
    token = encoder_format(names, token_root).name("embeddings/token/embeddings")
    table = {
        "token/embeddings": token,
        "transform": f"{transform}/dense",
        "norm": f"{transform}/LayerNorm",
        "bias": bias,
    }
    return Format({ours + name: theirs for name, theirs in table.items()}, _KINDS)


def read(path, options):
    """Makes a model of ours.

    Args:
        path: A checkpoint's prefix or directory, a `Path`; a `vocab.txt` beside it is
            its vocabulary.
        options: `Options`.

    Returns:
        The model, and the names of its networks that the file does not have.

    Raises:
        ValueError: It is another model's.
    """
    prefix = prefix_of(path)
    weights, tokenizer = checkpoint_weights(prefix), find_tokenizer(prefix.parent)
    names, config = weights.shapes, prefix.parent / "bert_config.json"
    config = read_json(config) if config.exists() else {}

    def heads(hidden_size):
        count = config.get("num_attention_heads") or max(1, hidden_size / HEAD_SIZE)
        if count % 1 or hidden_size % count:
            raise ValueError(
                f"{path}: a width of {hidden_size} has no {count:g} heads. Say how "
                'many there are: {"num_attention_heads": ...} in a bert_config.json.'
            )
        return int(count)

    def sizes_of(root):
        sizes = measured(weights, encoder_format(names, root), heads)
        return {**sizes, "approximate_gelu": bool(options.approximate_gelu)}

    if any(name.startswith("bert/") for name in names):
        model = new_masked_lm(sizes_of("bert"), tokenizer)
        head = softmax_format(
            names, "bert", "cls/predictions/transform", "cls/predictions/output_bias"
        )
        encoder = (model.encoder, encoder_format(names, "bert"))
        assign_weights(weights, encoder, (model.network.head, head), unused=_UNUSED)
        return model, ()
    if not any(name.startswith("electra/") for name in names):
        raise ValueError(f"{path}: its names begin with neither electra nor bert.")
    sizes, main = sizes_of("electra"), encoder_format(names, "electra")
    if any(name.startswith("generator_ltr/") for name in names):
        return _read_electric(weights, sizes, sizes_of("generator_ltr"), tokenizer), ()
    head = Format(_DISCRIMINATOR_HEAD, _KINDS)
    if not any(name.startswith("generator/encoder/") for name in names):
        model = new_electra(sizes, tokenizer)
        discriminator = model.discriminator
        assign_weights(
            weights, (discriminator.encoder, main), (discriminator.head, head)
        )
        return model, ("generator",)
    form = encoder_format(names, "generator")
    common = in_common(weights, main, weights, form)
    model = new_electra(sizes, tokenizer, sizes_of("generator"), common)
    bias = "generator_predictions/output_bias"
    softmax = softmax_format(names, "generator", "generator_predictions", bias)
    assign_weights(
        weights,
        (model.discriminator.encoder, main),
        (model.discriminator.head, head),
        (model.generator.encoder, form),
        (model.generator.head, softmax),
    )
    return model, ()


def _read_electric(weights, sizes, tower, tokenizer):
    """Reads Electric, but for its energies, which have a hidden layer there."""
    names = weights.shapes
    model = new_electric(sizes, tokenizer, tower)
    table = {}
    for ours, root in (
        ("left_to_right/", "generator_ltr"),
        ("right_to_left/", "generator_rtl"),
    ):
        table |= encoder_format(names, root, ours).table
    softmax = softmax_format(
        names,
        "generator_ltr",
        "cloze_predictions",
        "cloze_predictions/output_bias",
        "head/",
    )
    assign_weights(
        weights,
        (model.discriminator.encoder, encoder_format(names, "electra")),
        (model.generator, Format(table | softmax.table, _KINDS)),
        unused=r"discriminator_predictions/.*",
    )
    warnings.warn(
        f"{weights.path}: energies have a hidden layer there, which the paper and "
        "Electric here have not; they are new.",
        stacklevel=3,
    )
    return model
