"""WNLI as candidate ranking (Clark's thesis, 5.2.4).

A row of WNLI is a text with a pronoun, and a sentence that puts a candidate in the
pronoun's place. Rules find the two; the model then reads the text with the candidate
in place, and gives the candidate's tokens a high score if it is what is meant.
"""

import re
from collections import defaultdict
from itertools import compress, pairwise
from typing import NamedTuple

import keras
import numpy as np
from keras import ops

from keras_corrupt.downstream.model import DownstreamModel, Feature
from keras_corrupt.downstream.span_windows import token_span
from keras_corrupt.downstream.text_classifier import ClassificationHead
from keras_corrupt.tasks.glue import GlueTask
from keras_corrupt.tasks.metrics import majority_label
from keras_corrupt.tasks.task import Split

PRONOUNS = frozenset("he him his she her hers it its they them their theirs".split())
DETERMINERS = frozenset("a an the my our your his her its their some".split())
#: Words that end a noun phrase, and are no name when they begin a sentence.
FUNCTION_WORDS = PRONOUNS | DETERMINERS
FUNCTION_WORDS |= set(
    """
    about above after again against all although always am among and any are as at
    be because been before behind below beneath beside between both but by can could
    couldn did didn do does doesn don down during each even every for from had has
    have here how i if in into is isn just like look may me might more most much
    must never next no none not now of off on once one only or out over should since
    so still than that then there these this those though through to today too
    toward under until up upon was wasn we were weren what when where which while
    who whom whose why will with without won would wouldn yet you
    """.split()
)
#: A word, or what an apostrophe adds to one: `Ann's` is two, as is `he'd`.
WORD = re.compile(r"\w+|['’]\w+")
#: Words of a phrase after its determiner.
LONGEST_PHRASE = 3
LABELS = ("0", "1")


class Schema(NamedTuple):
    """A text, the place of a pronoun in it, and a candidate to stand there.

    `text[start:end]` is the pronoun.
    """

    text: str
    start: int
    end: int
    candidate: str

    @property
    def pronoun(self):
        """What other candidates for the same place share."""
        return self.text, self.start

    @property
    def parts(self):
        """The text before the candidate, the candidate, the text after it."""
        return self.text[: self.start], self.candidate, self.text[self.end :]


def find_schema(text, sentence):
    """Finds the pronoun of `text` and what `sentence` puts in its place.

    The sentence must be a stretch of the text, but for the pronoun. Punctuation and
    case don't matter. The pronoun is the one with the most words around it that the
    sentence has too. If these are fewer than three, then the words of the candidate
    must be words of the text.

    Returns:
        A `Schema`, or `None` if the rule finds none.

    >>> find_schema("The cup fell on the plate and it broke.", "The cup broke.")
    Schema(text='The cup fell on the plate and it broke.', start=30, end=32, \
candidate='the cup')
    """
    matches = list(WORD.finditer(text))
    words = [match.group().lower() for match in matches]
    parts = list(WORD.finditer(sentence))
    target = [part.group().lower() for part in parts]
    best, schema = 0, None
    if not target:
        return None
    for i, word in enumerate(words):
        if word not in PRONOUNS:
            continue
        # Words after the pronoun count first: "Bo fell. He cried." has "Bo" before it.
        after = max(
            n
            for n in range(len(target))
            if words[i + 1 : i + 1 + n] == target[len(target) - n :]
        )
        before = max(
            n
            for n in range(min(i + 1, len(target) - after))
            if words[i - n : i] == target[:n]
        )
        inside = target[before : len(target) - after]
        known = set(inside) <= {*words, *DETERMINERS, "'s", "’s"}
        enough = before + after >= 3 or known
        if inside == [word] or before + after <= best or not enough:
            continue
        best = before + after
        first, last = parts[before], parts[before + len(inside) - 1]
        candidate = sentence[first.start() : last.end()]
        pronoun = matches[i]
        candidate = _with_case_of(pronoun.group(), candidate)
        schema = Schema(text, pronoun.start(), pronoun.end(), candidate)
    return schema


def other_candidates(schema):
    """Extracts other phrases of the text that the pronoun might stand for.

    They are runs of capitalised words, and determiners with the words that follow up to
    a function word or a punctuation mark. Phrases that share a word with the
    candidate, which may well be what it is, are left out.

    Returns:
        A list of strings, in the possessive case if the schema's candidate is.

    >>> schema = find_schema("Ann saw that the dog bit Bo. He cried.", "Bo cried.")
    >>> other_candidates(schema)
    ['Ann', 'The dog bit']
    """
    pronoun = schema.text[schema.start : schema.end]
    ending = re.search(r"['’]s$", schema.candidate)
    taken = _content(schema.candidate)
    phrases = {}
    for start, end in _phrases(schema.text):
        phrase = schema.text[start:end]
        content = _content(phrase)
        if start < schema.end and schema.start < end or not content or content & taken:
            continue
        phrase = _with_case_of(pronoun, phrase) + (ending.group() if ending else "")
        phrases.setdefault(phrase.lower(), phrase)
    return list(phrases.values())


def _phrases(text):
    """Yields where the noun phrases of a text are, as far as rules tell."""
    words = list(WORD.finditer(text))
    adjacent = [text[a.end() : b.start()].isspace() for a, b in pairwise(words)]
    i = 0
    while i < len(words):
        first, last = words[i], i
        determiner = first.group().lower() in DETERMINERS
        if determiner or _is_name(first):
            while (
                last + 1 < len(words) and adjacent[last] and last - i < LONGEST_PHRASE
            ):
                word = words[last + 1]
                if word.group().lower() in FUNCTION_WORDS:
                    break
                # "the dog bit Ann" has two: a name after a word in lower case is new.
                after_determiner = determiner and last == i
                if not after_determiner and _is_name(word) != _is_name(words[last]):
                    break
                last += 1
            if last > i or not determiner:
                yield first.start(), words[last].end()
        i = last + 1


def _is_name(word):
    text = word.group()
    return text[0].isupper() and text.lower() not in FUNCTION_WORDS


def _content(phrase):
    return (
        {word.lower() for word in WORD.findall(phrase)} - FUNCTION_WORDS - {"'s", "’s"}
    )


def _with_case_of(pronoun, phrase):
    first, rest = phrase[0], phrase[1:]
    if pronoun[0].isupper():
        return first.upper() + rest
    if WORD.match(phrase).group().lower() in DETERMINERS:
        return first.lower() + rest
    return phrase


@keras.saving.register_keras_serializable(package="keras_corrupt")
class CandidateRanker(DownstreamModel):
    """Tells whether a candidate is what a pronoun stands for.

    Examples are pairs of strings, a text and a sentence with a candidate in the place
    of a pronoun of the text; see `find_schema`. The head is one linear layer on each
    last hidden vector, as the discriminator's output; a candidate's score is the mean
    over its tokens. It trains as a binary classifier of candidates, and where the right
    one is known, the other phrases of the text are wrong ones.

    Of several candidates for the same pronoun, the one with the highest score is
    right. A single one is right if it scores higher than the other phrases of the
    text; if there are none, if its score is positive.

    Args:
        fallback: The label, `"0"` or `"1"`, where no pronoun is found.
        kwargs: Those of `DownstreamModel`.
    """

    head_arguments = ("fallback",)

    def __init__(self, encoder, tokenizer, fallback="0", **kwargs):
        super().__init__(encoder, tokenizer, **kwargs)
        if fallback not in LABELS:
            raise ValueError(f"`fallback` must be one of {LABELS}; got {fallback!r}.")
        self.fallback = fallback
        self.head = ClassificationHead(
            1, self.dropout, self.encoder.initializer_range, name="head"
        )
        self.head.build((None, None, self.encoder.hidden_size))
        self.built = True

    def features(self, examples, labels=None):
        """Puts candidates in place; see `DownstreamModel.features`.

        The first feature of an example is its own candidate's, those of other phrases
        follow. Examples without a pronoun have none.
        """
        rows = []  # (example, text with the candidate in place, targets)
        for i, example in enumerate(examples):
            label = None if labels is None else labels[i]
            if label is not None and label not in LABELS:
                raise ValueError(f"A label must be one of {LABELS}; got {label!r}.")
            schema = find_schema(*example)
            if schema is None:
                continue
            targets = {} if label is None else {"right": float(label)}
            rows.append((i, schema, targets))
            if label != "0":  # of a wrong candidate's rivals, nothing is known
                targets = {} if label is None else {"right": 0.0}
                for other in other_candidates(schema):
                    rows.append((i, schema._replace(candidate=other), targets))
        texts = ["".join(schema.parts) for _, schema, _ in rows]
        encoded = self.tokenizer.encode_with_offsets(texts)
        features = []
        for (i, schema, targets), (ids, offsets) in zip(rows, encoded, strict=True):
            end = schema.start + len(schema.candidate)
            first, last = token_span(offsets, schema.start, end)
            before, candidate, after = window(
                *np.split(ids, [first, last + 1]), self.max_length - 2
            )
            token_ids = [self.tokenizer.classify_id, *before, *candidate, *after]
            token_ids = np.array([*token_ids, self.tokenizer.separate_id], "int32")
            in_candidate = np.zeros_like(token_ids)
            in_candidate[len(before) + 1 :][: len(candidate)] = 1
            inputs = {
                "token_ids": token_ids,
                "segment_ids": np.zeros_like(token_ids),
                "candidate": in_candidate,
            }
            features.append(Feature(inputs, targets, i))
        return features

    def call(self, inputs, training=False):
        hidden = self.encoder(inputs, training=training)
        logits = self.head(hidden, training=training)[..., 0]  # [batch, length]
        candidate = ops.cast(inputs["candidate"], logits.dtype)
        count = ops.maximum(ops.sum(candidate, axis=1), 1)
        return {"score": ops.sum(logits * candidate, axis=1) / count}

    def sequence_losses(self, outputs, targets):
        """Binary cross-entropy."""
        return ops.binary_crossentropy(
            targets["right"], outputs["score"], from_logits=True
        )

    def outputs(self, features, batch_size=64):
        # None where no example has a pronoun.
        return super().outputs(features, batch_size) if features else []

    def decode(self, examples, features, outputs):
        """Returns a label for each example."""
        scores = defaultdict(list)
        for feature, output in zip(features, outputs, strict=True):
            scores[feature.example].append(float(output["score"]))
        schemas = [find_schema(*example) for example in examples]
        rivals = defaultdict(dict)
        for i, schema in enumerate(schemas):
            if schema is not None:
                rivals[schema.pronoun][schema.candidate.lower()] = scores[i][0]
        labels = []
        for i, schema in enumerate(schemas):
            if schema is None:
                labels.append(self.fallback)
                continue
            own = rivals[schema.pronoun][schema.candidate.lower()]
            if len(rivals[schema.pronoun]) > 1:
                right = own == max(rivals[schema.pronoun].values())
            else:
                right = own > max(scores[i][1:], default=0.0)
            labels.append(LABELS[right])
        return labels

    def get_config(self):
        return {**super().get_config(), "fallback": self.fallback}


def window(before, candidate, after, room):
    """Cuts a text to `room` tokens around a candidate, evenly on both sides.

    >>> window([1, 2, 3], [4], [5, 6, 7], 5)
    ([2, 3], [4], [5, 6])
    """
    candidate = candidate[:room]
    room -= len(candidate)
    kept = min(len(before), max(room - len(after), room // 2))
    return before[len(before) - kept :], candidate, after[: room - kept]


class WinogradTask(GlueTask):
    """WNLI for `CandidateRanker`.

    Training rows in which no pronoun is found are left out; other rows of this kind
    get the most frequent training label.

    Args:
        source: As for `GlueTask`.

    Attributes:
        without_pronoun: Split -> number of rows in which no pronoun is found.

    Raises:
        ValueError: As for `GlueTask`; or no training row has a pronoun.
    """

    model = CandidateRanker

    def __init__(self, source):
        super().__init__("WNLI", source)
        train = self.splits["train"]
        self.model_arguments = {"fallback": majority_label(train.labels)}
        found = {
            name: [find_schema(*example) is not None for example in split.examples]
            for name, split in self.splits.items()
        }
        self.without_pronoun = {name: rows.count(False) for name, rows in found.items()}
        if not any(found["train"]):
            raise ValueError(f"No pronoun was found in WNLI's training rows, {source}.")
        if self.without_pronoun["train"]:
            first = f"row {train.ids[found['train'].index(False)]}"
            train.skipped["no pronoun found"] = (self.without_pronoun["train"], first)
        columns = (train.examples, train.labels, train.ids)
        kept = ([*compress(values, found["train"])] for values in columns)
        self.splits["train"] = Split(*kept, skipped=train.skipped)
