"""Beam search: the likeliest continuations, several kept at each step."""

from keras import ops

#: The log probability of what cannot be.
IMPOSSIBLE = -1e9


def beam_search(
    step, states, first_id, end_id, limits, length, beam_size, length_penalty=0.0
):
    """Finds likely sequences, each ended by `end_id`.

    A sequence's score is the sum of its log probabilities, its end's included, divided
    by ((5 + ids) / 6) ** length_penalty (Wu et al., 2016, equation 14). At each
    step the `beam_size` best ones are kept, those that have ended among them. Sums only
    fall, so a search is over when the best one has ended and no other one could be
    better at its limit. A sequence that reaches its limit is ended there.

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
        length_penalty: Float. At 0 short sequences are the likelier ones.

    Returns:
        int32 `[batch, length]`, `end_id` from its first one on; and float32 `[batch]`
        each, the score, and the mean log probability of the ids.
    """
    batch = ops.shape(limits)[0]
    kept = (batch, beam_size)
    sequences = ops.full((*kept, length), end_id, dtype="int32")
    last = ops.full(kept, first_id, dtype="int32")
    # All are the same at first: one goes on.
    sums = ops.where(ops.arange(beam_size) == 0, 0.0, IMPOSSIBLE)
    sums = ops.broadcast_to(ops.cast(sums, "float32"), kept)
    sizes, ended = ops.zeros(kept, "int32"), ops.zeros(kept, "bool")
    limits = limits[:, None]

    def score(sums, sizes):
        share = (5.0 + ops.cast(sizes, "float32")) / 6.0
        return sums / ops.power(share, length_penalty)

    def goes_on(t, sequences, last, sums, sizes, ended, *states):
        others = ops.where(ended, IMPOSSIBLE, score(sums, limits))
        best = score(sums, sizes)[:, 0] >= ops.max(others, axis=1)
        over = ops.all(ops.logical_and(ended[:, 0], best))
        return ops.logical_and(t < length, ops.logical_not(over))

    def extend(t, sequences, last, sums, sizes, ended, *states):
        logits, states = step(last, list(states))
        ways = ops.log_softmax(ops.cast(logits, "float32"), axis=-1)
        classes = logits.shape[-1]
        is_end = ops.arange(classes) == end_id
        only_end = ops.where(is_end, 0.0, IMPOSSIBLE)  # at no cost
        ways = ops.where(ended[..., None], only_end, ways)
        must_end = ops.logical_and(t + 1 >= limits, ops.logical_not(ended))
        forbidden = ops.logical_and(must_end[..., None], ops.logical_not(is_end))
        ways = sums[..., None] + ops.where(forbidden, IMPOSSIBLE, ways)
        sizes = sizes + ops.cast(ops.logical_not(ended), "int32")
        flat = (batch, beam_size * classes)
        _, best = ops.top_k(ops.reshape(score(ways, sizes[..., None]), flat), beam_size)
        best = ops.cast(best, "int32")
        parents, last = best // classes, best % classes

        def of_parents(x):
            rows = ops.take_along_axis(x, parents[..., None], axis=1)
            return ops.reshape(rows, ops.shape(x))

        is_now = ops.arange(length, dtype="int32") == t
        sequences = ops.where(is_now, last[..., None], of_parents(sequences))
        sums = ops.take_along_axis(ops.reshape(ways, flat), best, axis=1)
        sizes, ended = (ops.take_along_axis(x, parents, axis=1) for x in (sizes, ended))
        ended = ops.logical_or(ended, last == end_id)
        return t + 1, sequences, last, sums, sizes, ended, *map(of_parents, states)

    t = ops.zeros((), "int32")
    start = (t, sequences, last, sums, sizes, ended, *states)
    _, sequences, _, sums, sizes, *_ = ops.while_loop(goes_on, extend, start)
    means = sums / ops.cast(sizes, "float32")
    return sequences[:, 0], score(sums, sizes)[:, 0], means[:, 0]
