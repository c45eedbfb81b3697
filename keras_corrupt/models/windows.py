"""Texts as models can read them: packed, and cut into windows where they are long."""

from typing import NamedTuple

import numpy as np
from tqdm import tqdm

from keras_corrupt.tokenizers.packing import joined, padded
from keras_corrupt.tokenizers.texts import text_tuple

#: Lengths are rounded up to a multiple of this: a program is compiled for each.
LENGTH_STEP = 8


class Window(NamedTuple):
    """What a model reads at once of a text.

    Attributes:
        text: The number of the text.
        ids: int32 `[tokens]`, special tokens included.
        segments: int32 `[tokens]`.
        kept: Which tokens are scored here, booleans `[tokens]`. The others are scored
            in another window, or, as special tokens, in none.
    """

    text: int
    ids: np.ndarray
    segments: np.ndarray
    kept: np.ndarray


def windows_of(texts, tokenizer, max_length, special=False):
    """Cuts texts into windows.

    Args:
        texts: A list of strings, pairs of strings, and lists of token ids.
        tokenizer: A `Tokenizer`.
        max_length: Tokens that a model reads at once, special tokens included.
        special: Whether special tokens are scored, too: those at the ends of a text,
            and between the texts of a pair.

    Returns:
        A list of `Window`; windows of a text stand in its order.

    Raises:
        ValueError: There is no text, or one is something else, or a pair is too long.
    """
    if not texts:
        raise ValueError("`texts` is empty: there is nothing to score.")
    windows = []
    for number, parts in enumerate(_encoded(texts, tokenizer)):
        if len(parts) == 2:
            windows.append(_packed(number, parts, tokenizer, special))
            if len(windows[-1].ids) > max_length:
                raise ValueError(
                    f"texts[{number}], a pair, has {len(windows[-1].ids)} tokens with "
                    f"the special tokens, more than the {max_length} that the model "
                    "reads at once. Shorten it."
                )
            continue
        (ids,) = parts
        for start, end, first, last in cuts(len(ids), max_length - 2):
            window = _packed(number, [ids[start:end]], tokenizer, special)
            if start > 0:
                window.kept[: 1 + first - start] = False
            if end < len(ids):
                window.kept[1 + last - start :] = False
            windows.append(window)
    return windows


def window_length(max_length, model):
    """Returns how many tokens a window has.

    Args:
        max_length: What a caller asks for, special tokens included, or `None`.
        model: What has the longest `max_length`.

    Raises:
        ValueError: The model does not read so many, or too few are left of a text.
    """
    if max_length is None:
        return model.max_length
    if not 4 <= max_length <= model.max_length:
        raise ValueError(
            f"`max_length` must be from 4 to the model's {model.max_length}; got "
            f"{max_length!r}."
        )
    return max_length


def cuts(length, size):
    """Returns where windows of `size` start and end, and which part of each is kept.

    They overlap by half, the last by more. The kept parts meet in the middles of the
    overlaps.

    >>> cuts(10, 10)
    [(0, 10, 0, 10)]
    >>> cuts(12, 8)
    [(0, 8, 0, 6), (4, 12, 6, 12)]
    """
    if length <= size:
        return [(0, length, 0, length)]
    step = max(1, size // 2)
    starts = [*range(0, length - size, step), length - size]
    ends = [start + size for start in starts]
    middles = [
        (start + end) // 2 for start, end in zip(starts[1:], ends[:-1], strict=True)
    ]
    return list(zip(starts, ends, [0, *middles], [*middles, length], strict=True))


def pack_all(windows, length, padding_id, word_starts=None):
    """Puts windows below each other, as a model's inputs.

    Args:
        windows: A list of `Window`.
        length: Tokens of a row, as many as the longest has or more.
        padding_id: What stands behind them.
        word_starts: bool `[vocabulary]`, whether a token begins a word: if given, there
            are `word_ids`, int32 `[windows, length]`, the number of each token's word.

    Returns:
        A dict of int32 arrays `[windows, length]`.
    """
    rows = [(window.ids, window.segments) for window in windows]
    packed = padded(rows, padding_id, length)
    if word_starts is not None:
        packed["word_ids"] = np.zeros_like(packed["token_ids"])
        for words, window in zip(packed["word_ids"], windows, strict=True):
            words[: len(window.ids)] = np.cumsum(word_starts[window.ids])
    return packed


def read_in_batches(
    windows, predict, model, batch_size, progress=False, word_starts=None
):
    """Runs a function on windows, on windows of like length together.

    Args:
        windows: A list of `Window`.
        predict: A function of a model's inputs that returns `[batch, length, ...]`.
        model: What has the longest `max_length`, and the `padding_id`.
        batch_size: Windows of a batch.
        progress: Whether a bar is drawn.
        word_starts: See `pack_all`.

    Yields:
        The number of each window, in any order, and `[tokens, ...]`.
    """
    lengths = np.array([len(window.ids) for window in windows])
    order = np.argsort(-lengths, kind="stable")  # the longest first: memory will do
    batch_size = min(batch_size, len(order))
    with tqdm(total=len(order), unit="text", disable=not progress) as bar:
        for start in range(0, len(order), batch_size):
            rows = order[start : start + batch_size]
            # The last batch is filled up, so that it needs no program of its own.
            filled = [windows[row] for row in np.resize(rows, batch_size)]
            length = -(-lengths[rows[0]] // LENGTH_STEP) * LENGTH_STEP
            length = min(length, model.max_length)
            batch = pack_all(filled, length, model.padding_id, word_starts)
            for row, output in zip(rows, predict(batch), strict=False):
                yield row, output[: lengths[row]]
            bar.update(len(rows))


def _encoded(texts, tokenizer):
    """Yields the token ids of each text in a list, or of both texts of a pair."""
    vocabulary, items = range(tokenizer.vocabulary_size), []
    for number, text in enumerate(texts):
        if not _is_ids(text):
            items.append(text_tuple(text, f"texts[{number}]"))
            continue
        items.append(list(text))
        if lost := [i for i in items[-1] if int(i) not in vocabulary]:
            raise ValueError(
                f"`texts[{number}]` has the token id {lost[0]}; the ids of the "
                f"vocabulary are from 0 to {vocabulary[-1]}."
            )
    strings = [part for item in items if isinstance(item, tuple) for part in item]
    encoded = iter(tokenizer.encode_batch(strings))
    for item in items:
        yield [next(encoded) for _ in item] if isinstance(item, tuple) else [item]


def _is_ids(text):
    if not isinstance(text, (list, tuple, np.ndarray)):
        return False
    return all(isinstance(i, (int, np.integer)) for i in text)


def _packed(number, parts, tokenizer, special):
    """Returns a window of one part or of two, with the special tokens around them."""
    ids, segments = joined(parts, tokenizer.classify_id, tokenizer.separate_id)
    kept = [special]
    for part in parts:
        kept += [True] * len(part) + [special]
    arrays = np.array(ids, "int32"), np.array(segments, "int32"), np.array(kept)
    return Window(number, *arrays)
