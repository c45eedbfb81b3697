"""The span of a context that answers a question (Clark's thesis, 5.2.4)."""

import keras
import numpy as np
from keras import ops
from scipy.special import expit, softmax

from keras_corrupt.downstream.model import DownstreamModel
from keras_corrupt.downstream.soft_targets import cross_entropy
from keras_corrupt.downstream.span_heads import BertSpanHead, XLNetSpanHead
from keras_corrupt.downstream.span_windows import (
    Window,
    collect_spans,
    targets_of,
    token_span,
    visible,
    window_starts,
)
from keras_corrupt.tasks.question_answering import Answer, Question
from keras_corrupt.tokenizers.texts import text_list, text_tuples

HEADS = {"xlnet": XLNetSpanHead, "bert": BertSpanHead}

#: The weight of the answerability loss beside the span's loss (XLNet's code).
ANSWERABILITY_WEIGHT = 0.5
#: How many spans an `Answer` lists.
MAX_CANDIDATES = 20


@keras.saving.register_keras_serializable(package="keras_corrupt")
class SpanExtractor(DownstreamModel):
    """Answers questions with spans of a context, or finds that it has no answer.

    A sequence is `[CLS] question [SEP] context [SEP]`. A context that is too long is
    read in overlapping windows, and the best span of all windows is the answer. A
    window that lacks the answer trains the model to choose `[CLS]` as start and end,
    as with BERT and the released ELECTRA: otherwise nothing would teach it to score
    spans lower where the answer is elsewhere. With `answerability` such a window also
    counts as unanswerable, as in XLNet.

    Args:
        head_type: `"xlnet"` (the end depends on the start) or `"bert"`.
        answerability: Whether a question may have no answer, as in SQuAD 2.0.
        stride: Tokens from one window's start to the next one's. At most half a
            window is used, so that no answer falls between two windows.
        max_question_length: Tokens of the question to read, at most half of the
            sequence.
        max_answer_length: The longest answer to give, in tokens.
        beam_size: How many starts to follow, and how many ends for each.
        kwargs: Arguments of `DownstreamModel`.

    Example:

    >>> from keras_corrupt.tokenizers import SPECIAL_TOKENS, WordPieceTokenizer
    >>> words = "who sat on the mat ? cat".split()
    >>> tokenizer = WordPieceTokenizer([*SPECIAL_TOKENS, *words])
    >>> extractor = SpanExtractor.from_preset("tiny", tokenizer=tokenizer)
    >>> answer = extractor.answer(["Who sat?"], ["The  Cat sat on the mat."])[0]
    >>> answer in "The  Cat sat on the mat."
    True
    """

    can_average = False  # each model follows a beam of places of its own

    head_arguments = ("head_type", "answerability")
    further_inputs = ("selectable",)
    soft_targets_of_tokens = ("start", "end")
    row_format = {"columns": ("question", "context")}

    def __init__(
        self,
        encoder,
        tokenizer,
        head_type="xlnet",
        answerability=False,
        stride=128,
        max_question_length=64,
        max_answer_length=30,
        beam_size=20,
        **kwargs,
    ):
        super().__init__(encoder, tokenizer, **kwargs)
        if head_type not in HEADS:
            raise ValueError(
                f"`head_type` must be one of {sorted(HEADS)}; got {head_type!r}."
            )
        counts = {
            "stride": stride,
            "max_question_length": max_question_length,
            "max_answer_length": max_answer_length,
            "beam_size": beam_size,
        }
        for name, value in counts.items():
            if value < 1:
                raise ValueError(f"`{name}` must be 1 or more; got {value}.")
        self.head_type = head_type
        self.answerability = answerability
        self.stride = stride
        self.max_question_length = max_question_length
        self.max_answer_length = max_answer_length
        self.beam_size = beam_size
        self.head = HEADS[head_type](
            self.encoder.hidden_size,
            answerability=answerability,
            beam_size=beam_size,
            max_answer_length=max_answer_length,
            dropout=self.dropout,
            initializer_range=self.encoder.initializer_range,
            name="head",
        )
        self.head.build((None, None, self.encoder.hidden_size))
        self.built = True

    def features(self, examples, labels=None):
        """Cuts examples into windows; see `DownstreamModel.features`.

        Args:
            examples: `Question`s, or pairs of strings.
            labels: The gold answers of each example as (text, first character); an
                empty list where there is no answer. The first answer is learned.

        Returns:
            A list of `Window`.
        """
        examples = [Question(*e) for e in text_tuples(examples, "examples", (2,))]
        questions = self.tokenizer.encode_batch([e.question for e in examples])
        # Several questions share a context.
        contexts = list(dict.fromkeys(e.context for e in examples))
        encodings = self.tokenizer.encode_with_offsets(contexts)
        encoded = dict(zip(contexts, encodings, strict=True))
        labels = [None] * len(examples) if labels is None else labels
        features = []
        for i, (example, label) in enumerate(zip(examples, labels, strict=True)):
            token_ids, offsets = encoded[example.context]
            if not visible(offsets).any():
                raise ValueError(f"`examples[{i}]` has a context without any text.")
            span = None
            if label is not None:
                span = self._gold_span(i, example.context, label, offsets)
            question = questions[i][: min(self.max_question_length, self._room // 2)]
            room = self._room - len(question)
            for first in window_starts(len(token_ids), room, self.stride):
                part = slice(first, first + room)
                inputs = self._inputs(question, token_ids[part], visible(offsets[part]))
                targets = {}
                if label is not None:
                    shift = len(question) + 2 - first
                    targets = targets_of(span, part, shift)
                    # The end is learned given the start.
                    inputs["start"] = targets["start"]
                features.append(Window(inputs, targets, i, first, offsets[part]))
        return features

    @property
    def _room(self):
        return self.max_length - 3  # [CLS] and two [SEP]

    def _inputs(self, question, context, selectable_context):
        ids = self.tokenizer
        before, after = len(question) + 2, len(context) + 1
        end = [ids.separate_id]
        token_ids = [ids.classify_id, *question, *end, *context, *end]
        segment_ids = np.repeat(np.array([0, 1], "int32"), [before, after])
        selectable = np.zeros_like(segment_ids)
        selectable[0], selectable[before:-1] = 1, selectable_context
        return {
            "token_ids": np.array(token_ids, "int32"),
            "segment_ids": segment_ids,
            "selectable": selectable,
        }

    def _gold_span(self, i, context, answers, offsets):
        """Returns the first and the last token of the first answer, or `None`."""
        if not len(answers):
            if not self.answerability:
                raise ValueError(
                    f"`labels[{i}]` has no answer; make the model with "
                    "`answerability=True` to learn from unanswerable questions."
                )
            return None
        try:
            text, start = answers[0]
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(
                f"`labels[{i}]` is a list of answers, each its text and the character "
                f"where it starts; got {answers!r}."
            ) from error
        if not 0 <= start <= start + len(text) <= len(context) or not (
            context.startswith(text, start)
        ):
            raise ValueError(
                f"`labels[{i}]` is {text!r} at character {start}, but its context has "
                f"{context[max(start, 0) :][: len(text)]!r} there."
            )
        span = token_span(offsets, start, start + len(text))
        if span is None:
            raise ValueError(f"`labels[{i}]`, {text!r}, is no text to the tokenizer.")
        return span

    def head_outputs(self, hidden, inputs, training=False):
        hidden = ops.cast(hidden, "float32")
        start = inputs.get("start")
        return self.head(hidden, inputs["selectable"], start, training=training)

    def sequence_losses(self, outputs, targets):
        """Mean cross-entropy of start and end, and of answerability if any."""
        start, end = (
            cross_entropy(targets[name], outputs[f"{name}_logits"])
            for name in ("start", "end")
        )
        loss = (start + end) / 2
        if "null_score" in outputs:
            loss = loss + ANSWERABILITY_WEIGHT * ops.binary_crossentropy(
                ops.cast(targets["unanswerable"], "float32"),
                outputs["null_score"],
                from_logits=True,
            )
        return loss

    def soft_targets(self, features, outputs):
        rows = []
        for feature, output in zip(features, outputs, strict=True):
            tokens = len(feature.inputs["token_ids"])
            targets = {
                name: softmax(output[f"{name}_logits"][:tokens], axis=-1)
                for name in ("start", "end")
            }
            if "null_score" in output:
                targets["unanswerable"] = expit(output["null_score"])
            rows.append(targets)
        return rows

    def decode(self, examples, features, outputs):
        """Returns an `Answer` for each example."""
        windows = [[] for _ in examples]
        for window, output in zip(features, outputs, strict=True):
            windows[window.example].append((window, output))
        return [
            self._answer(context, *zip(*pairs, strict=True))
            for (_, context), pairs in zip(examples, windows, strict=True)
        ]

    def _answer(self, context, windows, outputs):
        owner, start, end, score = collect_spans(windows, outputs)
        texts = {}
        for i in np.argsort(-score, kind="stable"):
            offsets = windows[owner[i]].offsets
            first = windows[owner[i]].first
            begin, stop = offsets[start[i] - first, 0], offsets[end[i] - first, 1]
            text = context[begin:stop]
            texts.setdefault(text, (text, int(begin), float(score[i])))
            if len(texts) == MAX_CANDIDATES:
                break
        candidates = tuple(texts.values())
        null_odds = None
        if self.answerability:
            null_score = np.min([output["null_score"] for output in outputs])
            null_odds = float(self.head.null_odds(null_score, candidates[0][2]))
        return Answer(*candidates[0], null_odds, candidates)

    def written(self, examples, predictions, features, outputs):
        """Returns each answer, its place and score, and the probability of no answer.

        The answer is `""`, without a place, where no answer is more likely.
        """
        rows = []
        for answer in predictions:
            text = answer.final_text()
            start = answer.start if text else None
            row = {"answer": text, "start": start, "score": answer.score}
            if self.answerability:
                row["null_probability"] = answer.null_probability
            rows.append(row)
        return rows

    def answer(self, questions, contexts, threshold=0.5, batch_size=64):
        """Answers questions.

        Args:
            questions: Strings.
            contexts: For each question the text to search.
            threshold: With answerability, the probability of no answer above which
                the answer is `""`, from 0 to 1. SQuAD 2.0's metrics tell the best one,
                in percent.
            batch_size: Windows to read at once.

        Returns:
            A list of strings: parts of the contexts, or `""`.

        Raises:
            ValueError: There is not one context for each question, something is no
                text, or `threshold` is no probability.
        """
        if not 0 <= threshold <= 1:
            raise ValueError(
                f"`threshold` is a probability, from 0 to 1; got {threshold!r}."
            )
        questions = text_list(questions, "questions")
        contexts = text_list(contexts, "contexts")
        if len(questions) != len(contexts):
            raise ValueError(
                f"`questions` and `contexts` must be as many; got {len(questions)} and "
                f"{len(contexts)}."
            )
        examples = [Question(*pair) for pair in zip(questions, contexts, strict=True)]
        answers = self.predictions(examples, batch_size)
        return [answer.final_text(threshold) for answer in answers]

    def get_config(self):
        return {
            **super().get_config(),
            "head_type": self.head_type,
            "answerability": self.answerability,
            "stride": self.stride,
            "max_question_length": self.max_question_length,
            "max_answer_length": self.max_answer_length,
            "beam_size": self.beam_size,
        }
