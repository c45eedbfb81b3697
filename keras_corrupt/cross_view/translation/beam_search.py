"""Beam search: the likeliest continuations, several kept at each step."""

from keras import ops

#: The log probability of what cannot be.
IMPOSSIBLE = -1e9


def beam_search(step, states, first_id, end_id, limits, length, beam_size):
    """Finds likely sequences, each ended by `end_id`.

    A sequence's score is the sum of its log probabilities, that of its end included.
    At each step the `beam_size` best ones are kept, those that have ended among them.
    Scores only fall, so a search is over when the best one has ended; a sequence that
    reaches its limit is ended there.

    Args:
        step: Function of the last ids, int32 `[batch, beam]`, and states, that returns
            the logits of what follows, `[batch, beam, classes]`, and the next states.
        states: A list of arrays `[batch, beam, size]`: before the first id.
        first_id: Int. What comes before all.
        end_id: Int.
        limits: int32 `[batch]`: ids that a sequence has at most, its end included; 1
            or more.
        length: Int or int32 scalar. The greatest of the limits, or more.
        beam_size: Int. With as many as there are sequences the result is the best one
            of all.

    Returns:
        int32 `[batch, length]`, `end_id` from its first one on, and float32 `[batch]`,
        the score.
    """
    batch = ops.shape(limits)[0]
    kept = (batch, beam_size)
    found = ops.full((*kept, length), end_id, dtype="int32")
    last = ops.full(kept, first_id, dtype="int32")
    # All are the same at first: one goes on.
    scores = ops.where(ops.arange(beam_size) == 0, 0.0, IMPOSSIBLE)
    scores = ops.broadcast_to(ops.cast(scores, "float32"), kept)
    ended = ops.zeros(kept, "bool")
    limits = limits[:, None]

    def goes_on(t, found, last, scores, ended, *states):
        return ops.logical_and(t < length, ops.logical_not(ops.all(ended[:, 0])))

    def extend(t, found, last, scores, ended, *states):
        logits, states = step(last, list(states))
        ways = ops.log_softmax(ops.cast(logits, "float32"), axis=-1)
        classes = logits.shape[-1]
        is_end = ops.arange(classes) == end_id
        only_end = ops.where(is_end, 0.0, IMPOSSIBLE)  # at no cost
        ways = ops.where(ended[..., None], only_end, ways)
        must_end = ops.logical_and(t + 1 >= limits, ops.logical_not(ended))
        no_way = ops.logical_and(must_end[..., None], ops.logical_not(is_end))
        ways = ops.where(no_way, IMPOSSIBLE, ways)
        ways = ops.reshape(scores[..., None] + ways, (batch, beam_size * classes))
        scores, best = ops.top_k(ways, beam_size)
        best = ops.cast(best, "int32")
        parents, last = best // classes, best % classes

        def of_parents(x):
            taken = ops.take_along_axis(x, parents[..., None], axis=1)
            return ops.reshape(taken, ops.shape(x))

        here = ops.arange(length, dtype="int32") == t
        found = ops.where(here, last[..., None], of_parents(found))
        ended = ops.logical_or(
            ops.take_along_axis(ended, parents, axis=1), last == end_id
        )
        return t + 1, found, last, scores, ended, *map(of_parents, states)

    t = ops.zeros((), "int32")
    start = (t, found, last, scores, ended, *states)
    _, found, _, scores, *_ = ops.while_loop(goes_on, extend, start)
    return found[:, 0], scores[:, 0]
