"""RoBERTa among Hugging Face's BERTs, in: other names, positions and segments.

XLM-RoBERTa and CamemBERT are RoBERTa with other vocabularies. Two texts have one
separator between them here, RoBERTa's own pairs two.
"""

import numpy as np

from keras_corrupt.convert.weights import Weights

KINDS = ("roberta", "xlm-roberta", "camembert")
#: What the names of an encoder begin with, of all kinds.
PREFIX = "roberta."
HEAD = {
    "token": "roberta.embeddings.word_embeddings",
    "transform": "lm_head.dense",
    "norm": "lm_head.layer_norm",
    "bias": "lm_head.bias",
}
_POSITION = "embeddings.position_embeddings.weight"
_SEGMENT = "embeddings.token_type_embeddings.weight"
#: A text has the segments 0 and 1 here, whose vectors are RoBERTa's only one.
_SEGMENTS = 2


def as_bert(encoder, weights, config):
    """Returns an encoder and its weights as a BERT has them.

    RoBERTa's positions are counted from the one behind its padding token's id, so that
    the first rows of their table are of no text.

    Args:
        encoder: Arguments of `TransformerEncoder` by their `config.json`.
        weights: Its `Weights`.
        config: The `config.json`, a dict.

    Raises:
        ValueError: The padding token's id leaves no position.
    """
    padding_id = config.get("pad_token_id", 1)
    first = padding_id + 1 if type(padding_id) is int else 0
    if not 0 < first < encoder["max_length"]:
        raise ValueError(
            f"{weights.path}: pad_token_id is {padding_id!r}, behind which positions "
            f"begin, and max_position_embeddings {encoder['max_length']}."
        )
    changes = {}
    for name, shape in weights.shapes.items():
        if name.endswith(_POSITION):
            changes[name] = (shape[0] - first, *shape[1:]), lambda rows: rows[first:]
        if name.endswith(_SEGMENT) and shape[:1] == (1,):
            changes[name] = (_SEGMENTS, *shape[1:]), _twice
    shapes = dict(weights.shapes) | {name: new for name, (new, _) in changes.items()}

    def read(name):
        array = weights.read(name)
        return changes[name][1](array) if name in changes else array

    sizes = {"max_length": encoder["max_length"] - first, "num_segments": _SEGMENTS}
    return encoder | sizes, Weights(weights.path, shapes, read)


def _twice(rows):
    return np.repeat(rows, _SEGMENTS, axis=0)
