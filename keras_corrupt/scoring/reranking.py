"""Re-ranking a recogniser's hypotheses (Clark's thesis, 5.4.5; Salazar et al., 2020).

    argmax over the n best x of (f(x | s) + lambda PLL(x)) / words(x)^a

f is the recogniser's score, s the speech. lambda is chosen on a part of the utterances.
a is 0 in the thesis; 1 takes scores by the word, so that short texts are not preferred
(Wu et al., 2016, section 7).
"""

import json
from typing import NamedTuple

import numpy as np
from rapidfuzz.distance import Levenshtein

from keras_corrupt.files.text import read_text

#: The thesis's values of lambda.
WEIGHTS = tuple(i / 20 for i in range(1, 21))


class NBest(NamedTuple):
    """What a recogniser made of an utterance.

    Attributes:
        reference: What was said.
        texts: The hypotheses, the best first.
        scores: The recogniser's score of each, log-probabilities.
        utterance: Its name.
    """

    reference: str
    texts: list
    scores: np.ndarray
    utterance: str = ""


class Reranking(NamedTuple):
    """Word error rates, each as a fraction, on a development part and on the rest.

    Attributes:
        weight: The lambda with the fewest errors on the development part; the least
            of several.
        best: Error rates of the recogniser's best hypotheses, (development, rest).
        reranked: Error rates of the hypotheses that were chosen.
        oracle: Error rates of the hypotheses with the fewest errors.
        curve: lambda -> the development part's rate.
        chosen: For each utterance the number of its hypothesis that was chosen.
    """

    weight: float
    best: tuple
    reranked: tuple
    oracle: tuple
    curve: dict
    chosen: list


def read_n_best(path, parts=(("score", 1.0),)):
    """Reads n-best lists of mlm-scoring's layout.

    That is `{utterance: {"ref": text, "hyp_1": {"text": ..., "score": ...}, ...}}`.

    Args:
        path: A JSON file, plain or compressed; see `text_lines`.
        parts: What makes a hypothesis's score: names of its numbers, and their weights.
            So a recogniser's own language model can be left out, where a file has its
            parts.

    Returns:
        A list of `NBest`, ordered by the utterances' names.

    Raises:
        FileNotFoundError: The file is not there.
        ValueError: The file is of another layout, damaged, or not UTF-8.
    """
    text = read_text(path)
    try:
        utterances = json.loads(text)
        lists = [_n_best(n, utterances[n], parts) for n in sorted(utterances)]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
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
    middle = len(lists) // 2
    for half in lists[:middle], lists[middle:]:
        if not any(n_best.reference.split() for n_best in half):
            raise ValueError(
                f"{path}: no reference of one half of the utterances has a word to "
                "compare with. Add what was said as `ref`."
            )
    return lists


def _n_best(name, utterance, parts):
    numbers = sorted(int(name[4:]) for name in utterance if name.startswith("hyp_"))
    hypotheses = [utterance[f"hyp_{number}"] for number in numbers]
    if not hypotheses:
        raise KeyError("hyp_1")
    scores = np.array([[h[part] for part, _ in parts] for h in hypotheses], "float64")
    scores = scores @ np.array([weight for _, weight in parts])
    texts = [h["text"] for h in hypotheses]
    if not all(isinstance(text, str) for text in (utterance["ref"], *texts)):
        raise TypeError(f"{name} has a text that is no string")
    if not np.isfinite(scores).all():
        raise ValueError(f"{name} has a score that is no number")
    return NBest(utterance["ref"], texts, scores, name)


def rerank(lists, likelihoods, weights=WEIGHTS, length_power=0.0):
    """Chooses lambda on the first half of the lists, and tests it on the others.

    Args:
        lists: A list of `NBest`.
        likelihoods: For each list the pseudo-log-likelihoods of its texts.
        weights: Values of lambda to choose from.
        length_power: The power of a text's number of words that its score is divided
            by.

    Returns:
        A `Reranking`.
    """
    errors = [
        np.array([word_errors(text, n_best.reference) for text in n_best.texts])
        for n_best in lists
    ]
    lengths = [
        np.array([max(1, len(text.split())) for text in n_best.texts]) ** length_power
        for n_best in lists
    ]
    words = np.array([len(n_best.reference.split()) for n_best in lists])
    middle = len(lists) // 2

    def rates(chosen):
        wrong = np.array([e[i] for e, i in zip(errors, chosen, strict=True)])
        halves = slice(None, middle), slice(middle, None)
        return tuple(float(wrong[h].sum() / words[h].sum()) for h in halves)

    def choose(weight):
        return [
            int(np.argmax((n_best.scores + weight * np.asarray(logs)) / length))
            for n_best, logs, length in zip(lists, likelihoods, lengths, strict=True)
        ]

    rates_of = {weight: rates(choose(weight)) for weight in weights}
    weight = min(rates_of, key=lambda weight: (rates_of[weight][0], weight))
    return Reranking(
        weight,
        rates(int(n_best.scores.argmax()) for n_best in lists),
        rates_of[weight],
        rates(int(e.argmin()) for e in errors),
        {weight: dev for weight, (dev, _) in rates_of.items()},
        choose(weight),
    )


def word_errors(text, reference):
    """Counts substituted, inserted and left-out words: the least that explain a text.

    >>> word_errors("the cats sat on", "a cat sat on it")
    3
    """
    return Levenshtein.distance(text.split(), reference.split())
