"""The unit of parallel work: about a megabyte of a source, and its examples.

`prepare_dataset` and the Beam pipeline both cut sources into the same chunks and call
`encode_chunk` on each, so they build the same examples however many workers there are.
"""

import dataclasses
import random
from collections import Counter
from collections.abc import Iterator

import numpy as np

from keras_corrupt.data.corpus import Source
from keras_corrupt.data.examples import Example, build_examples
from keras_corrupt.data.records import serialize
from keras_corrupt.data.splits import is_held_out
from keras_corrupt.tokenizers import Tokenizer
from keras_corrupt.tokenizers.lost_text import LostText, lost_text

CHUNK_BYTES = 1_000_000


@dataclasses.dataclass(frozen=True)
class Document:
    """The part of one document that a chunk holds.

    Attributes:
        number: The document's number within its source.
        lines: Its lines in this chunk.
        is_start: Whether the document begins here, not in the chunk before.
    """

    number: int
    lines: list[str]
    is_start: bool


@dataclasses.dataclass(frozen=True)
class Chunk:
    """Consecutive lines of a source.

    Attributes:
        source: The source's number within the corpus.
        index: The chunk's number within the source.
        documents: The lines by document.
        text_bytes: Their size in UTF-8.
    """

    source: int
    index: int
    documents: list[Document]
    text_bytes: int


@dataclasses.dataclass
class EncodedSplit:
    """What a chunk adds to the training or the validation split.

    Attributes:
        records: Serialised examples.
        documents: Documents that begin in the chunk.
        tokens: Tokens of text, special tokens not counted.
        text_bytes: Text in UTF-8 bytes.
        unknown_examples: Examples left out, for most of their tokens are unknown.
    """

    records: list[bytes] = dataclasses.field(default_factory=list)
    documents: int = 0
    tokens: int = 0
    text_bytes: int = 0
    unknown_examples: int = 0

    def add(self, example: Example, tokenizer: Tokenizer) -> bool:
        """Adds an example, if most of its tokens are known; returns whether it did."""
        count = example.token_ids.count
        special = count(tokenizer.classify_id) + count(tokenizer.separate_id)
        tokens = len(example.token_ids) - special
        if 2 * count(tokenizer.unknown_id) > tokens:
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
        counts: By split: its documents, examples, tokens and text bytes.
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
            )
            self.unknown_examples += split.unknown_examples

    def merge(self, other: "Totals") -> None:
        """Adds the sums of other chunks.

        Args:
            other: Those sums.
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
    index, size, documents, last = 0, 0, [], -1
    for document, line in source.lines():
        if not documents or documents[-1].number != document:
            documents.append(Document(document, [], is_start=document != last))
            last = document
        documents[-1].lines.append(line)
        size += len(line.encode("utf-8"))
        if size >= chunk_bytes:
            yield Chunk(number, index, documents, size)
            index, size, documents = index + 1, 0, []
    if documents:
        yield Chunk(number, index, documents, size)


def encode_chunk(
    chunk: Chunk,
    tokenizer: Tokenizer,
    *,
    max_length: int,
    validation_fraction: float,
    seed: int,
) -> EncodedChunk:
    """Builds the examples of a chunk; the result depends on the arguments alone.

    Args:
        chunk: The text.
        tokenizer: Its tokenizer.
        max_length: Tokens of the longest example.
        validation_fraction: Share of the documents to hold out.
        seed: Seed of the held-out choice and of the example builder.

    Returns:
        The examples and counts.
    """
    rng = random.Random(f"{seed} {chunk.source} {chunk.index}")
    train, validation = EncodedSplit(), EncodedSplit()
    texts = [line for document in chunk.documents for line in document.lines]
    encoded = tokenizer.encode_batch(texts)
    lost, encoded = lost_text(tokenizer, texts, encoded), iter(encoded)
    train_ids: list[int] = []
    for document in chunk.documents:
        sentences = [next(encoded) for _ in document.lines]
        held_out = is_held_out(
            chunk.source, document.number, fraction=validation_fraction, seed=seed
        )
        split = validation if held_out else train
        split.documents += document.is_start
        split.text_bytes += sum(len(line.encode("utf-8")) for line in document.lines)
        for example in build_examples(
            sentences,
            max_length=max_length,
            classify_id=tokenizer.classify_id,
            separate_id=tokenizer.separate_id,
            rng=rng,
        ):
            if split.add(example, tokenizer) and not held_out:
                train_ids += example.token_ids
    counts = np.bincount(np.array(train_ids, "int64"), minlength=1)
    packed = [tokenizer.classify_id, tokenizer.separate_id]
    ids = np.setdiff1d(np.flatnonzero(counts), packed)
    return EncodedChunk(train, validation, ids, counts[ids], lost)
