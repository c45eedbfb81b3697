"""WNLI as candidate ranking (Clark's thesis, 5.2.4).

A row of WNLI is a text with a pronoun, and a sentence that puts a candidate in the
pronoun's place. Rules find the two, and other phrases that the pronoun might stand for.
"""

import re
from itertools import pairwise
from typing import NamedTuple

from keras_corrupt.tasks.glue.glue import GlueTask
from keras_corrupt.tasks.metrics import majority_label

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
#: A word, or the ending that an apostrophe adds to it: `Ann's` and `he'd` are two each.
WORD = re.compile(r"\w+|['’]\w+")
#: Words of a phrase after its determiner.
LONGEST_PHRASE = 3


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
        """The key that all candidates for the same place share."""
        return self.text, self.start

    @property
    def parts(self):
        """The text before the candidate, the candidate, the text after it."""
        return self.text[: self.start], self.candidate, self.text[self.end :]


def find_schema(text, sentence):
    """Finds the pronoun of `text` and the candidate that `sentence` puts in its place.

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
        plain = set(inside) <= {*words, *DETERMINERS, "'s", "’s"}
        enough = before + after >= 3 or plain
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
    candidate are left out, because they may well be the candidate.

    Returns:
        A list of strings, in the possessive case if the schema's candidate is.

    >>> schema = find_schema("Ann saw that the dog bit Bo. He cried.", "Bo cried.")
    >>> other_candidates(schema)
    ['Ann', 'The dog bit']
    """
    pronoun = schema.text[schema.start : schema.end]
    ending = re.search(r"['’]s$", schema.candidate)
    own = _content(schema.candidate)
    phrases = {}
    for start, end in _phrases(schema.text):
        phrase = schema.text[start:end]
        content = _content(phrase)
        if start < schema.end and schema.start < end or not content or content & own:
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


class WinogradTask(GlueTask):
    """WNLI as a choice among candidates.

    Training rows in which no pronoun is found are left out; other rows of this kind
    get the most frequent training label.

    Args:
        source: As for `GlueTask`.

    Attributes:
        without_pronoun: Split -> number of rows in which no pronoun is found.

    Raises:
        ValueError: As for `GlueTask`; or no training row has a pronoun.
    """

    kind = "candidate_ranking"

    def __init__(self, source):
        super().__init__("WNLI", source)
        train = self.splits["train"]
        self.model_arguments = {"fallback": majority_label(train.labels)}
        usable = {
            name: [find_schema(*example) is not None for example in split.examples]
            for name, split in self.splits.items()
        }
        self.without_pronoun = {
            name: rows.count(False) for name, rows in usable.items()
        }
        if not any(usable["train"]):
            raise ValueError(f"No pronoun was found in WNLI's training rows, {source}.")
        if self.without_pronoun["train"]:
            first = f"row {train.ids[usable['train'].index(False)]}"
            train.skipped["no pronoun found"] = (self.without_pronoun["train"], first)
        with_pronoun = [i for i, found in enumerate(usable["train"]) if found]
        self.splits["train"] = train.rows(with_pronoun)
