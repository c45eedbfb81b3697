"""`SpanExtractor` as TensorFlow operations: from questions to answers."""

import tensorflow as tf

from keras_corrupt.downstream.span_heads import IMPOSSIBLE
from keras_corrupt.tokenizers.in_graph import pack


def extractor_signatures(model, tokenize):
    """Returns signature name -> function of a `SpanExtractor`."""
    room_of_both = model.max_length - 3  # [CLS] and two [SEP]
    longest_question = min(model.max_question_length, room_of_both // 2)

    @tf.function(
        input_signature=[
            tf.TensorSpec([None], tf.string, name="question"),
            tf.TensorSpec([None], tf.string, name="context"),
        ]
    )
    def answer(question, context):
        tf.debugging.assert_equal(
            tf.size(question), tf.size(context), "Each question needs its context."
        )
        asked = tokenize(question)[:, :longest_question]
        tokens, token_starts, token_ends = tokenize.encode_with_offsets(context)
        length = tokens.row_lengths()
        room = room_of_both - asked.row_lengths()
        stride = tf.minimum(tf.constant(model.stride, tf.int64), room // 2)
        # As `span_extractor.window_starts`: ragged [batch, windows].
        firsts = tf.ragged.range(0, tf.maximum(length - room, 0) + stride, stride)

        first, example = firsts.values, firsts.value_rowids()
        asked, room, stride, length = (
            tf.gather(values, example) for values in (asked, room, stride, length)
        )
        shown = tf.ragged.range(first, tf.minimum(first + room, length))
        shown += tf.gather(tokens.row_starts(), example)[:, None]
        inputs = pack([asked, tf.gather(tokens.values, shown)], model.tokenizer)
        inputs["selectable"] = selectable(inputs["segment_ids"])
        outputs = model(inputs, training=False)

        # [windows, beam, beam]; from places in the sequence to tokens of the context.
        score = outputs["start_scores"][:, :, None] + outputs["end_scores"]
        shift = (first - asked.row_lengths() - 2)[:, None, None]
        end = tf.cast(outputs["ends"], tf.int64) + shift
        start = tf.cast(outputs["starts"], tf.int64)[:, :, None] + shift
        start = tf.broadcast_to(start, tf.shape(end))
        sizes = (size[:, None, None] for size in (first, room, stride, length))
        best = best_spans(score, shown_best(start, end, *sizes), firsts.row_lengths())
        start, end, score = (
            tf.gather(tf.reshape(values, [-1]), best) for values in (start, end, score)
        )
        # A context without any text has no span; its answer has no bytes.
        real = score > IMPOSSIBLE / 2
        text_start, text_end = (
            tf.gather(
                tf.pad(offsets.values, [[0, 1]]),
                tf.where(real, offsets.row_starts() + token, offsets.row_splits[-1]),
            )
            for offsets, token in ((token_starts, start), (token_ends, end))
        )
        text = tf.strings.substr(context, text_start, text_end - text_start)
        null_probability = tf.zeros_like(score)
        if model.answerability:
            null_score = tf.math.segment_min(outputs["null_score"], example)
            null_odds = model.head.null_odds(null_score, score)
            text = tf.where(null_odds > 0, "", text)
            null_probability = tf.sigmoid(null_odds)
        return {"answer": text, "score": score, "null_probability": null_probability}

    return {"serving_default": answer}


def selectable(segment_ids):
    """Returns 1 at `[CLS]` and in the second segment but for its last `[SEP]`.

    >>> selectable(tf.constant([[0, 0, 0, 1, 1, 1, 0]])).numpy().tolist()
    [[1, 0, 0, 1, 1, 0, 0]]
    """
    context = segment_ids[:, 1:-1] * segment_ids[:, 2:]
    context = tf.pad(context, [[0, 0], [0, 1]])
    return tf.pad(context, [[0, 0], [1, 0]], constant_values=1)


def shown_best(start, end, first, room, stride, length):
    """Tells for which spans their window is the one that `collect_spans` prefers.

    From one window to the next, a span has less of the context on its left and more
    on its right. So the lesser of the two first rises and then falls, and a window
    that is better than its neighbours is the best of all.

    Args:
        start: The span's first token, counted in the whole context. All are int64
            of shapes that broadcast.
        end: Its last token.
        first: The first token of its window.
        room: Tokens that each window of the context can hold.
        stride: Tokens from one window's start to the next one's.
        length: Tokens of the context.

    Returns:
        Booleans; of equally good windows the first one is the best.
    """

    def surroundings(first):
        last = tf.minimum(first + room, length) - 1
        return tf.minimum(start - first, last - end)

    own = surroundings(first)
    is_first, is_last = first == 0, first + room >= length
    beats_previous = is_first | (own > surroundings(first - stride))
    beats_next = is_last | (own >= surroundings(first + stride))
    return beats_previous & beats_next


def best_spans(scores, preferred, windows):
    """Finds the best span of each context: a preferred one if it has any.

    Args:
        scores: Float32 `[all windows, beam, beam]`, `IMPOSSIBLE` or less for none.
        preferred: Booleans of the same shape.
        windows: Windows of each context, int64 `[batch]`.

    Returns:
        Indices into the flattened scores, int64 `[batch]`.
    """
    spans = windows * tf.size(scores[0], tf.int64)

    def by_context(values):
        ragged = tf.RaggedTensor.from_row_lengths(tf.reshape(values, [-1]), spans)
        return ragged.to_tensor(scores.dtype.min)

    preferred &= scores > IMPOSSIBLE / 2
    preferred = by_context(tf.where(preferred, scores, scores.dtype.min))
    has_preferred = tf.reduce_max(preferred, axis=1, keepdims=True) > IMPOSSIBLE / 2
    best = tf.argmax(tf.where(has_preferred, preferred, by_context(scores)), axis=1)
    return tf.cumsum(spans, exclusive=True) + best
