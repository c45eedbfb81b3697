"""Texts and pairs of texts as the inputs of a model."""

import numpy as np

from keras_corrupt.downstream.batches import Feature
from keras_corrupt.tokenizers.packing import joined
from keras_corrupt.tokenizers.texts import text_tuples


def text_features(tokenizer, examples, targets, max_length):
    """Encodes texts: `[CLS] text [SEP]`, or `[CLS] first [SEP] second [SEP]`.

    Args:
        tokenizer: A `Tokenizer`.
        examples: Strings or pairs of strings.
        targets: A dict of targets for each; `None` where labels are not known.
        max_length: Tokens of an example, at most. Texts are cut at their end, the
            longer one of a pair first.

    Returns:
        A list of `Feature`, one for each example.

    Raises:
        ValueError: An example is something else, or `targets` are more or fewer than
            the examples.
    """
    pairs = text_tuples(examples, "examples")
    if targets is None:
        targets = [{}] * len(pairs)
    if len(targets) != len(pairs):
        raise ValueError(
            f"`labels` must be one for each example; got {len(targets)} for "
            f"{len(pairs)} examples."
        )
    encoded = iter(tokenizer.encode_batch([t for pair in pairs for t in pair]))
    features = []
    for i, (pair, target) in enumerate(zip(pairs, targets, strict=True)):
        parts = cut([next(encoded) for _ in pair], max_length - 1 - len(pair))
        token_ids, segment_ids = joined(
            parts, tokenizer.classify_id, tokenizer.separate_id
        )
        inputs = {
            "token_ids": np.array(token_ids, "int32"),
            "segment_ids": np.array(segment_ids, "int32"),
        }
        features.append(Feature(inputs, target, i))
    return features


def format_of_rows(pairs):
    """Returns `DownstreamModel.row_format` of a model that reads texts.

    Args:
        pairs: Whether it reads pairs of texts alone, or one text alone; `None` where it
            reads either.
    """
    columns = ("text",) if pairs is False else ("text", "second_text")
    return {"columns": columns, "needed": 2 if pairs else 1}


def cut(parts, room):
    """Cuts one or two lists of tokens to `room` tokens, the longer one first.

    >>> cut([[1, 2, 3, 4], [5]], 4)
    [[1, 2, 3], [5]]
    """
    if len(parts) == 1:
        return [parts[0][:room]]
    first, second = parts
    count = min(len(first), max(room - len(second), room - room // 2))
    return [first[:count], second[: room - count]]
