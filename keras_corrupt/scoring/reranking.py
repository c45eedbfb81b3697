"""Re-ranking a recogniser's hypotheses (Clark's thesis, 5.4.5; Salazar et al., 2020).

    argmax over the n best x of f(x | s) + lambda PLL(x)

f is the recogniser's score, s the speech. lambda is chosen on a part of the utterances.
"""

import gzip
import json
import lzma
import os
from typing import NamedTuple

import numpy as np
from rapidfuzz.distance import Levenshtein

#: The thesis's values of lambda.
WEIGHTS = tuple(i / 20 for i in range(1, 21))


class NBest(NamedTuple):
    """What a recogniser made of an utterance.

    Attributes:
        reference: What was said.
        texts: The hypotheses, the best first.
        scores: The recogniser's score of each, log-probabilities.
    """

    reference: str
    texts: list
    scores: np.ndarray


class Reranking(NamedTuple):
    """Word error rates, each as a fraction, on a development part and on the rest.

    Attributes:
        weight: The lambda with the fewest errors on the development part; the least
            of several.
        best: Of the recogniser's best hypotheses, (development, rest).
        reranked: Of those that were chosen.
        oracle: Of those with the fewest errors.
        curve: lambda -> the development part's rate.
    """

    weight: float
    best: tuple
    reranked: tuple
    oracle: tuple
    curve: dict


def read_n_best(path):
    """Reads n-best lists of mlm-scoring's layout.

    That is `{utterance: {"ref": text, "hyp_1": {"text": ..., "score": ...}, ...}}`.

    Args:
        path: A JSON file, plain or compressed (`.gz`, `.xz`).

    Returns:
        A list of `NBest`, ordered by the utterances' names.

    Raises:
        ValueError: The file is of another layout.
    """
    opener = {".gz": gzip.open, ".xz": lzma.open}.get(os.path.splitext(path)[1], open)
    try:
        with opener(path, "rt", encoding="utf-8") as file:
            utterances = json.load(file)
        lists = [_n_best(utterances[name]) for name in sorted(utterances)]
    except (ValueError, KeyError, TypeError, AttributeError, lzma.LZMAError) as error:
        raise ValueError(
            f"{path}: no n-best lists. Give a JSON file of "
            '{"utterance": {"ref": "...", "hyp_1": {"text": "...", "score": -1.0}}}. '
            f"({type(error).__name__}: {error})"
        ) from error
    if len(lists) < 2:
        raise ValueError(
            f"{path} has {len(lists)} utterances; at least 2 are needed, one to choose "
            "lambda on and one to test it."
        )
    return lists


def _n_best(utterance):
    numbers = sorted(int(name[4:]) for name in utterance if name.startswith("hyp_"))
    found = [utterance[f"hyp_{number}"] for number in numbers]
    if not found:
        raise KeyError("hyp_1")
    scores = np.array([hypothesis["score"] for hypothesis in found], "float64")
    return NBest(utterance["ref"], [h["text"] for h in found], scores)


def rerank(lists, likelihoods, weights=WEIGHTS):
    """Chooses lambda on the first half of the lists, and tests it on the others.

    Args:
        lists: A list of `NBest`.
        likelihoods: For each list the pseudo-log-likelihoods of its texts.
        weights: Values of lambda to choose from.

    Returns:
        A `Reranking`.
    """
    errors = [
        np.array([word_errors(text, found.reference) for text in found.texts])
        for found in lists
    ]
    words = np.array([len(found.reference.split()) for found in lists])
    middle = len(lists) // 2

    def rates(chosen):
        wrong = np.array([e[i] for e, i in zip(errors, chosen, strict=True)])
        halves = slice(None, middle), slice(middle, None)
        return tuple(float(wrong[h].sum() / words[h].sum()) for h in halves)

    def at(weight):
        return rates(
            int(np.argmax(found.scores + weight * np.asarray(logs)))
            for found, logs in zip(lists, likelihoods, strict=True)
        )

    found = {weight: at(weight) for weight in weights}
    weight = min(found, key=lambda weight: (found[weight][0], weight))
    return Reranking(
        weight,
        at(0.0),
        found[weight],
        rates(int(e.argmin()) for e in errors),
        {weight: dev for weight, (dev, _) in found.items()},
    )


def word_errors(text, reference):
    """Counts substituted, inserted and left-out words: the least that explain a text.

    >>> word_errors("the cats sat on", "a cat sat on it")
    3
    """
    return Levenshtein.distance(text.split(), reference.split())
