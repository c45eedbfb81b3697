"""Minimal pairs: which of two sentences a model finds likelier (BLiMP's layout)."""

import json
from pathlib import Path
from typing import NamedTuple

import numpy as np

from keras_corrupt.files.text import text_lines

_KEYS = "sentence_good", "sentence_bad", "UID", "field"


class Pair(NamedTuple):
    """An acceptable sentence, and one that differs in what makes it unacceptable.

    Attributes:
        good: The one.
        bad: The other.
        paradigm: Name of the contrast.
        field: The branch of grammar to which that belongs.
    """

    good: str
    bad: str
    paradigm: str
    field: str


def read_pairs(paths):
    """Reads minimal pairs.

    Args:
        paths: `.jsonl` files, or folders of such, with a line of JSON for each pair:
            `sentence_good`, `sentence_bad`, `UID` and `field`, as BLiMP has them.

    Returns:
        A list of `Pair`.

    Raises:
        FileNotFoundError: A file is not there.
        ValueError: There is no pair, or a line is something else.
    """
    files = []
    for path in map(Path, paths):
        files += sorted(path.glob("*.jsonl")) if path.is_dir() else [path]
    pairs = []
    for file in files:
        for number, line in text_lines(file):
            if not line.strip():
                continue
            try:
                content = json.loads(line)
                fields = [content[key] for key in _KEYS]
                if not all(isinstance(field, str) for field in fields):
                    raise TypeError("a field is no string")
                pairs.append(Pair(*fields))
            except (ValueError, KeyError, TypeError, RecursionError) as error:
                raise ValueError(
                    f"{file}, line {number}: no pair of BLiMP's layout, JSON with "
                    f"{', '.join(_KEYS)} ({type(error).__name__}: {error})."
                ) from error
    if not pairs:
        raise ValueError(
            f"No pairs in {', '.join(map(str, paths))}: give .jsonl files."
        )
    return pairs


def accuracies(pairs, scores, ties="wrong"):
    """Counts the pairs whose acceptable sentence is the likelier one.

    Args:
        pairs: A list of `Pair`.
        scores: `[2 * pairs]`, as `acceptabilities` returns them: of the acceptable
            sentences, then of the others, both in the order of the pairs.
        ties: What a pair of equal scores is, `"wrong"` or `"right"`. A model that
            gives all sentences the same has 0% by the one rule and 100% by the other.

    Returns:
        Three dicts to fractions: from paradigms, from fields, and from `"all"`.

    Example:

    >>> pairs = [Pair("It is.", "It are.", "agreement", "morphology")] * 2
    >>> accuracies(pairs, [-1.0, -3.0, -2.0, -2.0])[0]
    {'agreement': 0.5}
    >>> accuracies(pairs, [-1.0, -2.0, -2.0, -2.0], ties="right")[0]
    {'agreement': 1.0}

    Raises:
        ValueError: `ties` is neither.
    """
    if ties not in ("wrong", "right"):
        raise ValueError(f"`ties` must be 'wrong' or 'right'; got {ties!r}.")
    good, bad = np.split(np.asarray(scores), 2)
    right = good >= bad if ties == "right" else good > bad

    def by(names):
        names = np.array(names)
        return {
            str(name): float(right[names == name].mean()) for name in np.unique(names)
        }

    return (
        by([pair.paradigm for pair in pairs]),
        by([pair.field for pair in pairs]),
        {"all": float(right.mean())},
    )
