r"""Likelihoods of texts, and of their words and tokens (Clark's thesis, 5.4.5).

    PLL(x) = sum over tokens t of log p(x_t | x_\t)

x_\t is the text without its token t (Wang and Cho, 2019). The sum leaves out special
tokens and padding.

One pass gives the scores of `Electric` (minus its energies, normalised as far as it has
learned to be), of `TwoTower` (exact probabilities of the model) and of `ElectraTT` (an
estimate from generator and discriminator, not normalised). `MaskedLM` takes a pass for
each token, and its probabilities are exact. Token t is masked alone (Salazar et
al., 2020), or, with `mask="rest_of_word"`, with the pieces of its word that follow:
otherwise these give it away (Kauf and Ivanova, 2023).

A text that is longer than the model, or than `max_length`, is read in windows that
overlap by half. A token's score is of the window in which it is farther from the ends.
"""

import math
from typing import NamedTuple

import keras
import numpy as np

from keras_corrupt.devices.guests import invites_guests
from keras_corrupt.models import Pretrainer
from keras_corrupt.models.windows import read_in_batches, window_length, windows_of
from keras_corrupt.presets.registry import known_classes, registered_name
from keras_corrupt.scoring.words import WordScore, joined
from keras_corrupt.tokenizers.texts import listed, text_list

MASKS = ("token", "rest_of_word")
REDUCTIONS = ("sum", "mean")


class ScoredTokens(NamedTuple):
    """A text's tokens, special ones left out, and the logarithm of each's probability.

    Attributes:
        tokens: A list of strings.
        scores: float32 `[tokens]`, NumPy.
    """

    tokens: list
    scores: np.ndarray


def token_scores(
    model,
    texts,
    mask="token",
    base=math.e,
    max_length=None,
    batch_size=32,
    progress=False,
):
    r"""Gives each token of each text the logarithm of its probability in its context.

    Args:
        model: A model that gives tokens probabilities, with a tokenizer.
        texts: A list whose items are strings, pairs of strings, or lists of token ids,
            without special tokens. A pair must fit the model at once.
        mask: What a model that masks tokens masks to score one: the `"token"`, or the
            `"rest_of_word"`, too.
        base: Base of the logarithms: e for nats, 2 for bits.
        max_length: Tokens of a window, special ones included, such as the length of a
            sequence in pretraining; the model's `max_length` if not given.
        batch_size: Texts in a batch. Texts of like length share one.
        progress: Whether a bar is drawn.

    Returns:
        A list of `ScoredTokens`.

    Raises:
        ValueError: The model cannot do it, or lacks its tokenizer; a pair is too long
            for it; `texts` is empty or no list; an option is none.
    """
    scored = _scored(model, texts, mask, base, max_length, batch_size, progress)
    return [
        ScoredTokens(model.tokenizer.tokens(ids[counted]), logs[counted])
        for ids, _, logs, counted in scored
    ]


def score_sentences(model, texts, reduction="sum", **options):
    """Adds up the scores of each text's tokens: its pseudo-log-likelihood.

    Args:
        model: See `token_scores`.
        texts: See there.
        reduction: `"sum"`, or `"mean"` over the tokens; of no token both are 0.
        options: Arguments of `token_scores`.

    Returns:
        float32 `[texts]`, NumPy.

    Raises:
        ValueError: See there.

    Example:

    >>> from keras_corrupt.models import Electric
    >>> from keras_corrupt.tokenizers import SPECIAL_TOKENS, WordPieceTokenizer
    >>> tokenizer = WordPieceTokenizer([*SPECIAL_TOKENS, "a", "cat", "sleeps"])
    >>> model = Electric.from_preset("tiny", tokenizer=tokenizer)
    >>> score_sentences(model, ["a cat sleeps", "sleeps a cat"]).shape
    (2,)
    """
    reduce = _reduction(reduction)
    scored = _scored(model, texts, **options)
    return np.array([reduce(logs[counted]) for *_, logs, counted in scored], "float32")


def conditional_score(model, contexts, texts, reduction="sum", **options):
    """Scores texts that stand behind others: their own tokens, in both texts' context.

    A context and its text are the two segments of a pair.

    Args:
        model: See `token_scores`.
        contexts: A list of strings.
        texts: A list of strings, one for each context.
        reduction: See `score_sentences`.
        options: Arguments of `token_scores`.

    Returns:
        float32 `[texts]`, NumPy.

    Raises:
        ValueError: See there; or there are not as many texts as contexts.
    """
    contexts, texts = text_list(contexts, "contexts"), text_list(texts)
    if len(contexts) != len(texts):
        raise ValueError(
            f"`contexts` and `texts` must be as many; got {len(contexts)} and "
            f"{len(texts)}."
        )
    reduce = _reduction(reduction)
    pairs = list(zip(contexts, texts, strict=True))
    scored = _scored(model, pairs, **options)
    chosen = [logs[counted & (segments == 1)] for _, segments, logs, counted in scored]
    return np.array([reduce(logs) for logs in chosen], "float32")


def word_scores(model, texts, **options):
    """Adds up the scores of each word's pieces.

    Args:
        model: See `token_scores`.
        texts: A list of strings.
        options: Arguments of `token_scores`.

    Returns:
        For each text a list of `WordScore`, in the order of the text. A mark of
        punctuation is a word.

    Raises:
        ValueError: See there.
    """
    check(model)
    texts = text_list(texts)
    encoded = list(model.tokenizer.encode_with_offsets(texts))
    scored = _scored(model, [ids for ids, _ in encoded], **options)
    return [
        [
            WordScore(text[start:end], start, end, float(score))
            for start, end, score in joined(
                offsets, logs, model.tokenizer.word_starts[ids], np.add
            )
        ]
        for text, (ids, offsets), (*_, logs, _) in zip(
            texts, encoded, scored, strict=True
        )
    ]


def check(model):
    """Raises a `ValueError` unless a model gives probabilities, and has a tokenizer."""
    if not gives_probabilities(type(model)):
        able = sorted(
            registered_name(cls)
            for cls in known_classes(Pretrainer)
            if gives_probabilities(cls)
        )
        raise ValueError(
            f"{type(model).__name__} gives tokens no probabilities. Use one of the "
            f"models that do: {', '.join(able)}."
        )
    if model.tokenizer is None:
        raise ValueError(
            "Raw strings need the model's tokenizer: load a saved preset, or pass "
            "`tokenizer` to `from_preset`."
        )


def gives_probabilities(cls):
    """Returns whether models of a class give tokens probabilities."""
    base = Pretrainer.token_log_probabilities
    return getattr(cls, "token_log_probabilities", base) is not base


def _reduction(name):
    if name not in REDUCTIONS:
        raise ValueError(f"`reduction` must be one of {REDUCTIONS}; got {name!r}.")
    return np.sum if name == "sum" else lambda logs: logs.sum() / max(1, len(logs))


def _scored(
    model,
    texts,
    mask="token",
    base=math.e,
    max_length=None,
    batch_size=32,
    progress=False,
):
    """Scores the tokens of texts, as `token_scores` says.

    Returns:
        For each text its token ids, their segments, their scores, 0 for special tokens,
        and which are none: arrays `[tokens]`.
    """
    check(model)
    if mask not in MASKS:
        raise ValueError(f"`mask` must be one of {MASKS}; got {mask!r}.")
    if mask != "token" and not model.masks_each_token:
        raise ValueError(
            f"{type(model).__name__} masks nothing to score a text: leave out "
            f"`mask={mask!r}`."
        )
    if isinstance(base, str) or not base > 1:
        raise ValueError(f"`base` must be more than 1; got {base!r}.")
    if not batch_size >= 1:
        raise ValueError(f"`batch_size` must be 1 or more; got {batch_size!r}.")
    max_length = window_length(max_length, model)
    texts = listed(texts, "texts")
    windows = windows_of(texts, model.tokenizer, max_length)
    logs = _logs(model, windows, mask, batch_size, progress)
    parts = [[] for _ in texts]
    for window, values in zip(windows, logs, strict=True):
        parts[window.text].append(
            (window.ids[window.kept], window.segments[window.kept], values[window.kept])
        )
    scored = []
    for part in parts:
        ids, segments, values = map(np.concatenate, zip(*part, strict=True))
        counted = ~np.isin(ids, model.unmaskable_ids)
        values = np.where(counted, values / math.log(base), 0.0).astype("float32")
        scored.append((ids, segments, values, counted))
    return scored


def _logs(model, windows, mask, batch_size, progress):
    """Returns what the model says of each token of each window, in nats."""
    words = model.tokenizer.word_starts if mask == "rest_of_word" else None
    numbered = read_in_batches(
        windows, _predictor(model), model, batch_size, progress, words
    )
    logs = [None] * len(windows)
    for number, token_logs in numbered:
        logs[number] = token_logs
    return logs


def _predictor(model):
    """Returns the model's `_TokenLogs.predict_on_batch`, made once: it is compiled."""
    # Not as Keras sets attributes: it would save the network as a part of the model.
    kept = vars(model)
    if "_predict_token_logs" not in kept:
        kept["_predict_token_logs"] = _TokenLogs(model).predict_on_batch
    return kept["_predict_token_logs"]


@invites_guests
class _TokenLogs(keras.Model):
    """A model's probabilities of tokens, so that Keras compiles them as a whole."""

    def __init__(self, model):
        super().__init__(name="token_logs")  # TensorFlow wants no leading underscore
        self.model = model
        self.built = True

    def call(self, inputs):
        return self.model.token_log_probabilities(inputs)
