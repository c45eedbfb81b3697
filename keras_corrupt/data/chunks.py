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

from keras_corrupt.data.corpus import Source
from keras_corrupt.data.examples import build_examples
from keras_corrupt.data.records import serialize
from keras_corrupt.data.splits import is_held_out
from keras_corrupt.tokenizers import Tokenizer
from keras_corrupt.tokenizers.flat_ids import unflattened

CHUNK_BYTES = 1_000_000


class Document(NamedTuple):
    """The part of one document that a chunk holds.

    Attributes:
        number: The document's number within its source.
        is_start: Whether the document begins here, not in the chunk before.
        num_lines: How many of the chunk's lines are its.
        text_bytes: Their size in UTF-8.
    """

    number: int
    is_start: bool
    num_lines: int
    text_bytes: int


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
        token_ids: int32 [tokens], those of all lines.
        lengths: int64 [lines], how many are each line's.
    """

    source: int
    index: int
    documents: list[Document]
    token_ids: np.ndarray
    lengths: np.ndarray


@dataclasses.dataclass
class EncodedSplit:
    """What a chunk adds to the training or the validation split.

    Attributes:
        records: Serialised examples.
        documents: Documents that begin in the chunk.
        tokens: Tokens of text, special tokens not counted.
        text_bytes: Text in UTF-8 bytes.
    """

    records: list[bytes] = dataclasses.field(default_factory=list)
    documents: int = 0
    tokens: int = 0
    text_bytes: int = 0


@dataclasses.dataclass
class EncodedChunk:
    """A chunk's examples.

    Attributes:
        train: The training examples.
        validation: The held-out examples.
        token_ids: The distinct ids of the training text.
        token_counts: How often each occurs.
    """

    train: EncodedSplit
    validation: EncodedSplit
    token_ids: np.ndarray
    token_counts: np.ndarray


class Totals:
    """Sums over encoded chunks; sums of parts can be merged.

    Attributes:
        unigrams: int64 [vocabulary], counts of each token in the training text.
        counts: By split: its documents, examples, tokens and text bytes.
    """

    def __init__(self, vocabulary_size: int):
        self.unigrams = np.zeros(vocabulary_size, "int64")
        self.counts = {"train": Counter(), "validation": Counter()}

    def add(self, chunk: EncodedChunk) -> None:
        """Adds a chunk.

        Args:
            chunk: The chunk.
        """
        self.unigrams[chunk.token_ids] += chunk.token_counts
        for name, counts in self.counts.items():
            split = getattr(chunk, name)
            counts.update(
                documents=split.documents,
                examples=len(split.records),
                tokens=split.tokens,
                text_bytes=split.text_bytes,
            )

    def merge(self, other: "Totals") -> None:
        """Adds the sums of other chunks.

        Args:
            other: Those sums.
        """
        self.unigrams += other.unigrams
        for name, counts in self.counts.items():
            counts.update(other.counts[name])


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
            documents.append([document, document != last, 0, 0])
            last = document
        line_bytes = len(line.encode("utf-8"))
        documents[-1][2] += 1
        documents[-1][3] += line_bytes
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
    return TokenizedChunk(
        chunk.source,
        chunk.index,
        chunk.documents,
        *tokenizer.encode_flat(chunk.lines),
    )


def build_chunk(
    chunk: TokenizedChunk,
    *,
    max_length: int,
    validation_fraction: float,
    seed: int,
    classify_id: int,
    separate_id: int,
) -> EncodedChunk:
    """Builds the examples of a chunk; the result depends on the arguments alone.

    Args:
        chunk: The token ids.
        max_length: Tokens of the longest example.
        validation_fraction: Share of the documents to hold out.
        seed: Seed of the held-out choice and of the example builder.
        classify_id: The id of `[CLS]`.
        separate_id: The id of `[SEP]`.

    Returns:
        The examples and counts.
    """
    rng = random.Random(f"{seed} {chunk.source} {chunk.index}")
    train, validation = EncodedSplit(), EncodedSplit()
    sentences = iter(unflattened(chunk.token_ids, chunk.lengths))
    in_train = []
    for number, is_start, num_lines, text_bytes in chunk.documents:
        of_document = list(islice(sentences, num_lines))
        held_out = is_held_out(
            chunk.source, number, fraction=validation_fraction, seed=seed
        )
        in_train += [not held_out] * num_lines
        split = validation if held_out else train
        split.documents += is_start
        split.tokens += sum(map(len, of_document))
        split.text_bytes += text_bytes
        split.records += map(
            serialize,
            build_examples(
                of_document,
                max_length=max_length,
                classify_id=classify_id,
                separate_id=separate_id,
                rng=rng,
            ),
        )
    counts = np.bincount(chunk.token_ids[np.repeat(in_train, chunk.lengths)])
    ids = np.flatnonzero(counts)
    return EncodedChunk(train, validation, ids, counts[ids])
