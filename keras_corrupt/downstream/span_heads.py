"""Heads that choose a span of tokens: XLNet's, its end given its start, and BERT's."""

import keras
from keras import ops

from keras_corrupt.encoders.embeddings import initializer

#: The score of what must not be chosen.
IMPOSSIBLE = -1e9


class SpanHead(keras.Model):
    """The base of both heads, which compute in float32.

    Called with the gold starts, a head returns what the loss needs, and without them
    the best spans of each window:

    - `start_logits`, `end_logits`: `[batch, length]`, or else
    - `starts`, `start_scores`: `[batch, beam]`, the best first tokens;
    - `ends`, `end_scores`: `[batch, beam, beam]`, the best last tokens for each;
    - `null_score`: `[batch]`, with `answerability`; greater where the window is
      less likely to hold an answer.

    A score of `IMPOSSIBLE` marks what fills up the beam where a window has too few
    spans.

    Args:
        hidden_size: Width of the encoder.
        answerability: Whether a question may have no answer.
        beam_size: How many starts to follow, and how many ends for each.
        max_answer_length: The longest span to return, in tokens.
        dropout: Dropout rate.
        initializer_range: Standard deviation of the initial weights.
    """

    def __init__(
        self,
        hidden_size,
        answerability=False,
        beam_size=20,
        max_answer_length=30,
        dropout=0.1,
        initializer_range=0.02,
        **kwargs,
    ):
        super().__init__(dtype="float32", **kwargs)
        self.hidden_size = hidden_size
        self.answerability = answerability
        self.beam_size = beam_size
        self.max_answer_length = max_answer_length
        self.dropout = keras.layers.Dropout(dropout)
        self.initializer_range = initializer_range

    def dense(self, units, **kwargs):
        return keras.layers.Dense(
            units, kernel_initializer=initializer(self.initializer_range), **kwargs
        )

    def call(self, hidden, selectable, start=None, training=False):
        """Scores the spans of windows.

        Args:
            hidden: What the encoder returned, `[batch, length, hidden_size]`.
            selectable: 1 at `[CLS]` and at the context's tokens, int
                `[batch, length]`.
            start: For the loss, the gold first tokens, int `[batch]`.
            training: Whether dropout is active.

        Returns:
            A dict: see the class.
        """
        raise NotImplementedError

    def null_odds(self, null_score, best_score):
        """Returns how much likelier than the best span no answer is, as a log-odds.

        Args:
            null_score: The least `null_score` of a context's windows: it has an
                answer where one of its windows has.
            best_score: The score of the best span in any of them.
        """
        raise NotImplementedError

    def best_spans(self, start_scores, end_scores, selectable):
        """Follows the best starts to the best ends that each can reach.

        Args:
            start_scores: `[batch, length]`.
            end_scores: A function of starts, int `[batch, beam]`, that returns the
                scores of ends, `[batch, beam, length]`.
            selectable: See `call`.
        """
        position = positions(selectable)
        # [CLS] takes part in the softmax, but is no answer.
        context = ops.logical_and(selectable > 0, position > 0)
        start_scores, starts = self.top(masked(start_scores, context))
        ahead = position[:, None] - starts[:, :, None]
        reached = ops.logical_and(ahead >= 0, ahead < self.max_answer_length)
        reached = ops.logical_and(reached, context[:, None])
        end_scores, ends = self.top(masked(end_scores(starts), reached))
        return {
            "starts": starts,
            "start_scores": start_scores,
            "ends": ends,
            "end_scores": end_scores,
        }

    def top(self, scores):
        """Returns the best of the last axis and their indices, `[..., beam]`."""
        # A sequence may be shorter than the beam.
        padding = [[0, 0]] * (len(scores.shape) - 1) + [[0, self.beam_size]]
        scores = ops.pad(scores, padding, constant_values=IMPOSSIBLE)
        values, indices = ops.top_k(scores, self.beam_size)
        return values, ops.cast(indices, "int32")


class XLNetSpanHead(SpanHead):
    """XLNet's question-answering module (Clark's thesis, 5.2.4).

    With `h_i` the encoder's vectors and `[a; b]` a concatenation,

        p(start = i)           = softmax_i(u . h_i)
        p(end = j | start = i) = softmax_j(v . norm(tanh(W [h_j; h_i])))
        null score             = z . tanh(V [sum_i p(start = i) h_i; h_CLS])

    Training takes the gold start for `i`; inference takes the best few. A span's
    score is the logarithm of its probability, and the null score is the logit of "no
    answer". (Yang et al., 2019, "XLNet", and its released code; the released ELECTRA
    has gelu, 512 hidden units and no layer norm in the place of tanh and norm.)

    Args:
        kwargs: Arguments of `SpanHead`.
    """

    def __init__(self, hidden_size, **kwargs):
        super().__init__(hidden_size, **kwargs)
        self.start = self.dense(1, name="start")
        # The two halves of W: the first is the same for every start.
        self.end_of_token = self.dense(hidden_size, name="end_of_token")
        self.end_of_start = self.dense(hidden_size, use_bias=False, name="end_of_start")
        self.end_norm = keras.layers.LayerNormalization(epsilon=1e-12, name="end_norm")
        self.end = self.dense(1, name="end")
        if self.answerability:
            self.null_hidden = self.dense(
                hidden_size, activation="tanh", name="null_hidden"
            )
            self.null = self.dense(1, use_bias=False, name="null")

    def build(self, input_shape):
        size = self.hidden_size
        for layer in (self.start, self.end_of_token, self.end_norm, self.end):
            layer.build((None, None, size))
        self.end_of_start.build((None, size))
        if self.answerability:
            self.null_hidden.build((None, 2 * size))
            self.null.build((None, size))
        self.built = True

    def call(self, hidden, selectable, start=None, training=False):
        start_logits = masked(self.start(hidden)[..., 0], selectable > 0)
        of_token = self.end_of_token(hidden)

        def end_logits(starts):
            one_hot = ops.cast(positions(selectable) == starts[:, None], "float32")
            of_start = self.end_of_start(ops.einsum("bl,blh->bh", one_hot, hidden))
            inner = self.end_norm(ops.tanh(of_token + of_start[:, None]))
            return masked(self.end(inner)[..., 0], selectable > 0)

        def end_scores(starts):
            # One start after the other: all at once take beam x as much memory.
            scores = ops.map(
                lambda start: ops.log_softmax(end_logits(start)),
                ops.transpose(starts),
            )
            return ops.transpose(scores, (1, 0, 2))

        if start is None:
            start_scores = ops.log_softmax(start_logits)
            outputs = self.best_spans(start_scores, end_scores, selectable)
        else:
            outputs = {"start_logits": start_logits, "end_logits": end_logits(start)}
        if self.answerability:
            expected = ops.einsum("bl,blh->bh", ops.softmax(start_logits), hidden)
            inner = self.null_hidden(ops.concatenate([expected, hidden[:, 0]], -1))
            inner = self.dropout(inner, training=training)
            outputs["null_score"] = self.null(inner)[:, 0]
        return outputs

    def null_odds(self, null_score, best_score):
        return null_score


class BertSpanHead(SpanHead):
    """BERT's head: two linear layers, start and end independent (Devlin et al., 2019).

    A span's score is the sum of its two logits; the score of no answer is the score
    of the span `[CLS]` alone.

    Args:
        kwargs: Arguments of `SpanHead`.
    """

    def __init__(self, hidden_size, **kwargs):
        super().__init__(hidden_size, **kwargs)
        self.start_and_end = self.dense(2, name="start_and_end")

    def build(self, input_shape):
        self.start_and_end.build((None, None, self.hidden_size))
        self.built = True

    def call(self, hidden, selectable, start=None, training=False):
        logits = self.start_and_end(hidden)
        start_logits = masked(logits[..., 0], selectable > 0)
        end_logits = masked(logits[..., 1], selectable > 0)
        if start is not None:
            return {"start_logits": start_logits, "end_logits": end_logits}

        def end_scores(starts):
            return ops.repeat(end_logits[:, None], self.beam_size, axis=1)

        outputs = self.best_spans(start_logits, end_scores, selectable)
        if self.answerability:
            outputs["null_score"] = start_logits[:, 0] + end_logits[:, 0]
        return outputs

    def null_odds(self, null_score, best_score):
        return null_score - best_score


def positions(selectable):
    """Returns 0, 1, 2, ... along each row; the length may be unknown yet."""
    return ops.cumsum(ops.ones_like(selectable), axis=1) - 1


def masked(scores, allowed):
    """Returns the scores, `IMPOSSIBLE` where not allowed."""
    return ops.where(allowed, scores, IMPOSSIBLE)
