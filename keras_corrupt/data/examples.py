"""ELECTRA's example builder: a document's sentences to training examples."""

import random
from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

SINGLE_SEGMENT_PROBABILITY = 0.1
SHORT_EXAMPLE_PROBABILITY = 0.05
MIN_LENGTH = 5


class Example(NamedTuple):
    """One training example, not padded.

    Attributes:
        token_ids: `[CLS] a [SEP]` or `[CLS] a [SEP] b [SEP]`.
        segment_ids: 0 up to the first `[SEP]`, 1 after it.
    """

    token_ids: list[int]
    segment_ids: list[int]


def build_examples(
    sentences: Iterable[Sequence[int]],
    *,
    max_length: int,
    classify_id: int,
    separate_id: int,
    rng: random.Random,
) -> Iterator[Example]:
    """Packs one document's sentences into examples of one or two segments.

    Sentences are gathered until they hold as many tokens as the target length, which
    is `max_length`, or for 5% of the examples uniform between 5 and `max_length`. The
    first segment takes sentences up to half the target (one that crosses the half by a
    coin toss) and the second the others; 10% of the examples have one segment only.
    The sentences that are left at the end of the document become an example too.

    Tokens that do not fit an example begin the next one, so every token of the document
    stands in exactly one example, in order. The builder released with ELECTRA throws
    these tokens away, which with a paragraph a line is much of the text.

    Args:
        sentences: The token ids of each sentence (or line), without special tokens.
        max_length: Tokens of the longest example, special tokens included.
        classify_id: The id of `[CLS]`.
        separate_id: The id of `[SEP]`.
        rng: Source of all random choices.

    Yields:
        The examples.

    Raises:
        ValueError: If `max_length` is below 5.

    Source:
        Clark's thesis, section 5.2, trains on BERT's data; the scheme is the
        released ELECTRA builder's.

    Example:
    >>> builder = build_examples(
    ...     [[7, 8], [9]], max_length=8, classify_id=2, separate_id=3,
    ...     rng=random.Random(0))
    >>> next(builder)
    Example(token_ids=[2, 7, 8, 3, 9, 3], segment_ids=[0, 0, 0, 0, 1, 1])
    """
    if max_length < MIN_LENGTH:
        raise ValueError(f"max_length={max_length}: the least is {MIN_LENGTH}.")
    gathered: list[Sequence[int]] = []
    length, target = 0, _target_length(max_length, rng)
    for sentence in sentences:
        if not sentence:
            continue
        if len(sentence) > max_length:
            # Its part behind each example is then a view, not a copy.
            sentence = memoryview(array("q", sentence))
        gathered.append(sentence)
        length += len(sentence)
        while length >= target:
            first, second, gathered = _take_segments(gathered, target, max_length, rng)
            yield _join(first, second, classify_id, separate_id)
            length -= len(first) + len(second)
            target = _target_length(max_length, rng)
    while gathered:
        first, second, gathered = _take_segments(gathered, target, max_length, rng)
        yield _join(first, second, classify_id, separate_id)


def _target_length(max_length: int, rng: random.Random) -> int:
    if rng.random() < SHORT_EXAMPLE_PROBABILITY:
        return rng.randint(MIN_LENGTH, max_length)
    return max_length


def _take_segments(
    sentences: list[Sequence[int]], target: int, max_length: int, rng: random.Random
) -> tuple[list[int], list[int], list[Sequence[int]]]:
    """Fills the two segments; returns them and the sentences that are left."""
    single = rng.random() < SINGLE_SEGMENT_PROBABILITY
    half = max_length if single else (target - 3) // 2
    split, length = 1, len(sentences[0])
    for sentence in sentences[1:]:
        fits = length + len(sentence) < half
        crosses = length < half and (single or rng.random() < 0.5)
        if not (fits or crosses):
            break
        split, length = split + 1, length + len(sentence)
    first, left = _take(sentences[:split], max_length - 2)
    if left:
        return first, [], left + sentences[split:]
    second, left = _take(sentences[split:], max(0, max_length - 3 - len(first)))
    return first, second, left


def _take(
    sentences: list[Sequence[int]], room: int
) -> tuple[list[int], list[Sequence[int]]]:
    """Joins as many tokens as there is room for; returns them and the rest."""
    tokens: list[int] = []
    for index, sentence in enumerate(sentences):
        cut = room - len(tokens)
        if cut < len(sentence):
            tokens += sentence[:cut]
            return tokens, [sentence[cut:], *sentences[index + 1 :]]
        tokens += sentence
    return tokens, []


def _join(
    first: list[int], second: list[int], classify_id: int, separate_id: int
) -> Example:
    token_ids = [classify_id, *first, separate_id]
    segment_ids = [0] * len(token_ids)
    if second:
        token_ids += [*second, separate_id]
        segment_ids += [1] * (len(second) + 1)
    return Example(token_ids, segment_ids)
