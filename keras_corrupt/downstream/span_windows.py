"""Overlapping windows over a long context, and the spans found in them."""

from typing import NamedTuple

import numpy as np

from keras_corrupt.downstream.span_heads import IMPOSSIBLE


class Window(NamedTuple):
    """A `Feature` that knows which part of the context it holds.

    Attributes:
        inputs: See `Feature`; besides, `selectable`, which is 1 at `[CLS]` and at the
            context's tokens but white space, and for training `start`, the gold start.
        targets: `start` and `end`, the places of the answer's first and last token,
            and `unanswerable`. Where the window lacks the answer all of it, they are
            0, 0 and 1.
        example: See `Feature`.
        first: The window's first token, counted in the whole context.
        offsets: The characters of its tokens in the context, int `[tokens, 2]`.
    """

    inputs: dict
    targets: dict
    example: int
    first: int
    offsets: np.ndarray


def window_starts(length, room, stride):
    """Returns where the windows of a context begin.

    An answer of up to `room - stride + 1` tokens is whole in one of them.

    Args:
        length: Tokens of the context.
        room: Tokens of a window, 2 or more.
        stride: Tokens between two windows' starts; at most half of `room` is used.

    >>> list(window_starts(25, room=10, stride=5))
    [0, 5, 10, 15]
    """
    stride = min(stride, room // 2)
    return range(0, max(length - room, 0) + stride, stride)


def visible(offsets):
    """Tells which tokens have characters; white space has none.

    Args:
        offsets: Start and end character of each token, int `[tokens, 2]`.

    Returns:
        Booleans `[tokens]`: where an answer may begin and end.
    """
    return offsets[:, 0] < offsets[:, 1]


def token_span(offsets, start, end):
    """Returns the first and the last token that have some of `start` to `end`.

    Args:
        offsets: Start and end character of each token, int `[tokens, 2]`.
        start: The first character.
        end: The one after the last.

    Returns:
        Two indices; `None` if no token does.
    """
    touched = (offsets[:, 1] > start) & (offsets[:, 0] < end)
    touched = np.flatnonzero(touched & visible(offsets))
    return (int(touched[0]), int(touched[-1])) if len(touched) else None


def collect_spans(windows, outputs):
    """Gathers the spans that a context's windows propose.

    Where windows overlap, a span is taken from the one that shows most of what
    surrounds it: the greatest minimum of the tokens to its left and to its right.
    (BERT's rule looks at the start alone, and so can choose a window that ends before
    the answer does.)

    Args:
        windows: The `Window`s of a context.
        outputs: What the head returned for each.

    Returns:
        Arrays `[spans]`: the index of the window, the first and the last token
        counted in the whole context, and the score.
    """
    owners, starts, ends, scores = [], [], [], []
    for i, (window, output) in enumerate(zip(windows, outputs, strict=True)):
        score = output["start_scores"][:, None] + output["end_scores"]
        possible = score > IMPOSSIBLE / 2
        # From places in the sequence to tokens of the context.
        shift = window.first - int(np.flatnonzero(window.inputs["segment_ids"])[0])
        start = np.broadcast_to(output["starts"][:, None], score.shape)
        owners.append(np.full(possible.sum(), i))
        starts.append(start[possible] + shift)
        ends.append(output["ends"][possible] + shift)
        scores.append(score[possible])
    spans = [np.concatenate(part) for part in (owners, starts, ends, scores)]
    owner, start, end, _ = spans
    first = np.array([window.first for window in windows])[:, None]
    last = first + np.array([[len(window.offsets) - 1] for window in windows])
    surroundings = np.minimum(start - first, last - end)  # [windows, spans]
    best = owner == surroundings.argmax(axis=0)
    # Each window may have put its beam on spans that another one shows better.
    return [part[best] for part in spans] if best.any() else spans


def targets_of(span, part, shift):
    """Returns a window's targets; see `Window`.

    Args:
        span: The answer's first and last token in the context; `None` if it has none.
        part: The window, a slice of the context's tokens.
        shift: What to add to make places in the sequence of them.
    """
    if span is None or span[0] < part.start or span[1] >= part.stop:
        return {"start": 0, "end": 0, "unanswerable": 1}
    return {"start": span[0] + shift, "end": span[1] + shift, "unanswerable": 0}
