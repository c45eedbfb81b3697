"""The unit of parallel work: about a megabyte of a source, and its examples.

`prepare_dataset` and the Beam pipeline both cut sources into the same chunks, which
become token ids (`tokenize_chunk`) and examples (`build_chunk`). Neither looks beyond a
chunk, so they build the same examples however many workers there are.
"""

import dataclasses
import random
from collections import Counter
from collections.abc import Iterator
from itertools import islice, starmap
from typing import NamedTuple

import numpy as np

from keras_corrupt.data.examples import Example, build_examples
from keras_corrupt.data.records import serialize
from keras_corrupt.data.sources import Source
from keras_corrupt.data.splits import is_held_out
from keras_corrupt.tokenizers import Tokenizer
from keras_corrupt.tokenizers.flat_ids import unflattened
from keras_corrupt.tokenizers.lost_text import LostText, lost_text

CHUNK_BYTES = 1_000_000


class Document(NamedTuple):
    """The part of one document that a chunk holds.

    Attributes:
        number: The document's number within its source.
        is_start: Whether the document begins here, not in the chunk before.
        num_lines: The number of the document's lines in the chunk.
        text_bytes: The size of these lines, in UTF-8 bytes.
        words: Their words, what blanks separate.
    """

    number: int
    is_start: bool
    num_lines: int
    text_bytes: int
    words: int


@dataclasses.dataclass(frozen=True)
class Chunk:
    """Consecutive lines of a source.

    Attributes:
        source: The source's number within the corpus.
        index: The chunk's number within the source.
        documents: The documents in it, in the order of their lines.
        lines: The lines of all documents.
    """

    source: int
    index: int
    documents: list[Document]
    lines: list[str]


@dataclasses.dataclass(frozen=True)
class TokenizedChunk:
    """A chunk whose lines have become token ids.

    Attributes:
        source: See `Chunk`.
        index: See `Chunk`.
        documents: See `Chunk`.
        token_ids: int32 [tokens], of all lines.
        lengths: int64 [lines], the number of each line's tokens.
        lost: Characters that the vocabulary does not know.
    """

    source: int
    index: int
    documents: list[Document]
    token_ids: np.ndarray
    lengths: np.ndarray
    lost: LostText


class SpecialIds(NamedTuple):
    """The ids of a tokenizer that examples need."""

    classify_id: int
    separate_id: int
    unknown_id: int

    @classmethod
    def of(cls, tokenizer: Tokenizer) -> "SpecialIds":
        """Returns the ids of a tokenizer."""
        return cls(tokenizer.classify_id, tokenizer.separate_id, tokenizer.unknown_id)


@dataclasses.dataclass
class EncodedSplit:
    """The part of a chunk that goes to the training or the validation split.

    Attributes:
        records: Serialised examples.
        documents: Documents that begin in the chunk.
        tokens: Tokens of text, special tokens not counted.
        text_bytes: Text in UTF-8 bytes.
        words: Words of text.
        unknown_examples: Examples left out, for most of their tokens are unknown.
    """

    records: list[bytes] = dataclasses.field(default_factory=list)
    documents: int = 0
    tokens: int = 0
    text_bytes: int = 0
    words: int = 0
    unknown_examples: int = 0

    def add(self, example: Example, special: SpecialIds) -> bool:
        """Adds an example, if most of its tokens are known; returns whether it did."""
        count = example.token_ids.count
        packed = count(special.classify_id) + count(special.separate_id)
        tokens = len(example.token_ids) - packed
        if 2 * count(special.unknown_id) > tokens:
            self.unknown_examples += 1
            return False
        self.tokens += tokens
        self.records.append(serialize(example))
        return True


@dataclasses.dataclass
class EncodedChunk:
    """A chunk's examples.

    Attributes:
        train: The training examples.
        validation: The held-out examples.
        token_ids: The distinct ids of the training text.
        token_counts: How often each occurs.
        lost: Characters that the vocabulary does not know, of all the text.
    """

    train: EncodedSplit
    validation: EncodedSplit
    token_ids: np.ndarray
    token_counts: np.ndarray
    lost: LostText


class Totals:
    """Sums over encoded chunks; sums of parts can be merged.

    Attributes:
        unigrams: int64 [vocabulary], counts of each token in the training text.
        counts: Split -> counts of its documents, examples, tokens, text bytes and
            words.
        unknown_examples: Examples left out, for most of their tokens are unknown.
        lost: The fields of `LostText`, of all text.
    """

    def __init__(self, vocabulary_size: int):
        self.unigrams = np.zeros(vocabulary_size, "int64")
        self.counts = {"train": Counter(), "validation": Counter()}
        self.unknown_examples = 0
        self.lost: Counter[str] = Counter()

    def add(self, chunk: EncodedChunk) -> None:
        """Adds a chunk.

        Args:
            chunk: The chunk.
        """
        self.unigrams[chunk.token_ids] += chunk.token_counts
        self.lost.update(chunk.lost._asdict())
        for name, counts in self.counts.items():
            split = getattr(chunk, name)
            counts.update(
                documents=split.documents,
                examples=len(split.records),
                tokens=split.tokens,
                text_bytes=split.text_bytes,
                words=split.words,
            )
            self.unknown_examples += split.unknown_examples

    def merge(self, other: "Totals") -> None:
        """Adds the sums of other chunks.

        Args:
            other: The sums of these chunks.
        """
        self.unigrams += other.unigrams
        for name, counts in self.counts.items():
            counts.update(other.counts[name])
        self.unknown_examples += other.unknown_examples
        self.lost.update(other.lost)


def read_chunks(
    source: Source, number: int, chunk_bytes: int = CHUNK_BYTES
) -> Iterator[Chunk]:
    """Cuts a source into chunks, between lines; a long document spans several.

    Args:
        source: The source.
        number: Its number within the corpus.
        chunk_bytes: Text of a chunk, passed by one line at most.

    Yields:
        The chunks in order.
    """
    index, last, size, documents, lines = 0, -1, 0, [], []
    for document, line in source.lines():
        if not documents or documents[-1][0] != document:
            documents.append([document, document != last, 0, 0, 0])
            last = document
        line_bytes = len(line.encode("utf-8"))
        documents[-1][2] += 1
        documents[-1][3] += line_bytes
        documents[-1][4] += len(line.split())
        size += line_bytes
        lines.append(line)
        if size >= chunk_bytes:
            yield Chunk(number, index, list(starmap(Document, documents)), lines)
            index, size, documents, lines = index + 1, 0, [], []
    if documents:
        yield Chunk(number, index, list(starmap(Document, documents)), lines)


def tokenize_chunk(chunk: Chunk, tokenizer: Tokenizer) -> TokenizedChunk:
    """Tokenizes the lines of a chunk.

    Args:
        chunk: The text.
        tokenizer: Its tokenizer.

    Returns:
        The token ids.
    """
    token_ids, lengths = tokenizer.encode_flat(chunk.lines)
    lost = lost_text(tokenizer, chunk.lines, token_ids, lengths)
    return TokenizedChunk(
        chunk.source, chunk.index, chunk.documents, token_ids, lengths, lost
    )


def build_chunk(
    chunk: TokenizedChunk,
    *,
    max_length: int,
    validation_fraction: float,
    seed: int,
    special: SpecialIds,
) -> EncodedChunk:
    """Builds the examples of a chunk; the result depends on the arguments alone.

    Args:
        chunk: The token ids.
        max_length: Tokens of the longest example.
        validation_fraction: Share of the documents to hold out.
        seed: Seed of the held-out choice and of the example builder.
        special: The tokenizer's ids.

    Returns:
        The examples and counts.
    """
    rng = random.Random(f"{seed} {chunk.source} {chunk.index}")
    train, validation = EncodedSplit(), EncodedSplit()
    sentences = iter(unflattened(chunk.token_ids, chunk.lengths))
    train_ids: list[int] = []
    for number, is_start, num_lines, text_bytes, words in chunk.documents:
        held_out = is_held_out(
            chunk.source, number, fraction=validation_fraction, seed=seed
        )
        split = validation if held_out else train
        split.documents += is_start
        split.text_bytes += text_bytes
        split.words += words
        for example in build_examples(
            list(islice(sentences, num_lines)),
            max_length=max_length,
            classify_id=special.classify_id,
            separate_id=special.separate_id,
            rng=rng,
        ):
            if split.add(example, special) and not held_out:
                train_ids += example.token_ids
    counts = np.bincount(np.array(train_ids, "int64"), minlength=1)
    ids = np.setdiff1d(
        np.flatnonzero(counts), [special.classify_id, special.separate_id]
    )
    return EncodedChunk(train, validation, ids, counts[ids], chunk.lost)
