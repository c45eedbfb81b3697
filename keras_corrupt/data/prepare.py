"""Corpus to a directory of examples, on one machine with several processes."""

import os
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from keras_corrupt.commands.bounds import Bounds, check_bounds
from keras_corrupt.data.chunks import Chunk, EncodedChunk, Totals, read_chunks
from keras_corrupt.data.info import DatasetInfo, Shard, load_dataset_info
from keras_corrupt.data.plan import Plan
from keras_corrupt.data.prepared_directory import (
    ShardWriter,
    describe_sources,
    find_prepared,
    finish_directory,
    new_directory,
)
from keras_corrupt.data.segmentation import (
    check_lost_text,
    describe_segmentation,
    summary,
    unknown_examples,
    warnings,
)
from keras_corrupt.data.settings import BOUNDS
from keras_corrupt.data.sources import Source
from keras_corrupt.data.workers import default_workers, encode_chunks
from keras_corrupt.tokenizers import Tokenizer


def prepare_dataset(
    corpus: str | Sequence[str],
    output: str | os.PathLike,
    *,
    shard_bytes: int = 100_000_000,
    workers: int | None = None,
    progress: bool = True,
    **settings,
) -> DatasetInfo:
    """Builds a directory of training examples from a corpus, once.

    The directory gets the tokenizer's files, TFRecord files `train-00000.tfrecord` and
    so on, `validation.tfrecord` with held-out documents, `unigrams.npy` with the token
    counts of the training text, and `dataset.json`. It appears when it is complete.
    Called again with the same arguments the function returns at once. The result does
    not depend on the number of workers.

    A script that calls this with several workers needs the usual
    `if __name__ == "__main__":` around its code. Each worker imports the script, and
    with it what the script imports at its top.

    Args:
        corpus: The sources to read; see `open_corpus`.
        output: The directory; missing, empty, or made by an earlier call.
        shard_bytes: Size of a training shard, passed by one record at most.
        workers: Processes, this one included; by default one for each available CPU,
            four at most, and one for little text.
        progress: Whether to print a line of progress, how held-out text is cut into
            tokens, and the faults of the vocabulary.
        settings: Fields of `Plan`: how the text becomes examples.

    Returns:
        The description of the directory.

    Raises:
        CorpusError: If the corpus cannot be read.
        DatasetError: If `output` holds something else or cannot be written, or a split
            would be empty, or the vocabulary does not know more than 5% of the
            text's characters.
        ValueError: If an argument is out of range or the vocabulary is unusable.
    """
    plan = Plan(corpus, **settings)
    bounds = {"workers": BOUNDS["workers"], "shard_bytes": Bounds(1)}
    check_bounds({"workers": workers, "shard_bytes": shard_bytes}, bounds)
    output = Path(output)
    sources = plan.sources()
    given_tokenizer = plan.given_tokenizer()
    dataset_settings = plan.settings(given_tokenizer) | {"shard_bytes": shard_bytes}
    if prepared := find_prepared(output, dataset_settings, sources):
        return prepared
    with new_directory(output) as partial:
        report = _Progress(progress)
        corpus_read = describe_sources(sources)
        held_out = plan.held_out_lines(sources)
        if given_tokenizer is None:
            report.say(f"training a vocabulary of {plan.vocabulary_size} tokens")
        if plan.grow_vocabulary:
            old = summary(describe_segmentation(given_tokenizer, held_out))
            report.say(f"growing by {plan.grow_vocabulary} pieces a vocabulary ({old})")
        tokenizer = plan.make_tokenizer(given_tokenizer, sources, progress)
        tokenizer.save(partial)
        segmentation = describe_segmentation(tokenizer, held_out)
        vocabulary_given = given_tokenizer is not None
        report.say_tokenizer(tokenizer, segmentation, vocabulary_given)
        check_lost_text(segmentation, tokenizer.kind, vocabulary_given)
        totals = Totals(tokenizer.vocabulary_size)
        shards = _Shards(partial, shard_bytes)
        tokenizer.expect(sum(source.size for source in sources))
        report.start()
        for encoded in encode_chunks(
            _chunks(sources),
            tokenizer,
            workers or default_workers(sources),
            max_length=plan.sequence_length,
            validation_fraction=plan.validation_fraction,
            seed=plan.seed,
        ):
            totals.add(encoded)
            shards.add(encoded)
            report.update(totals)
        finish_directory(
            partial,
            settings=dataset_settings,
            corpus=corpus_read,
            left_out=sources.left_out,
            tokenizer=tokenizer,
            totals=totals,
            shards=shards.close(),
            skipped=sources.skipped,
            segmentation=segmentation,
        )
        report.update(totals, last=True)
        if totals.unknown_examples:
            report.say(unknown_examples(totals.unknown_examples))
    return load_dataset_info(output)


class _Shards:
    """Distributes records to the files of both splits, in order."""

    def __init__(self, directory: Path, shard_bytes: int):
        self._directory = directory
        self._shard_bytes = shard_bytes
        self._open: dict[str, ShardWriter] = {}
        self._closed: dict[str, list[Shard]] = {"train": [], "validation": []}

    def add(self, encoded: EncodedChunk) -> None:
        for record in encoded.validation.records:
            self._writer("validation", "validation.tfrecord").write(record)
        for record in encoded.train.records:
            number = len(self._closed["train"])
            writer = self._writer("train", f"train-{number:05d}.tfrecord")
            writer.write(record)
            if writer.bytes >= self._shard_bytes:
                self._closed["train"].append(self._open.pop("train").close())

    def close(self) -> dict[str, list[Shard]]:
        for split, writer in self._open.items():
            self._closed[split].append(writer.close())
        return self._closed

    def _writer(self, split: str, name: str) -> ShardWriter:
        if split not in self._open:
            self._open[split] = ShardWriter(self._directory / name)
        return self._open[split]


class _Progress:
    """One line on standard error, rewritten on a terminal."""

    def __init__(self, enabled: bool):
        self._enabled = enabled
        self._terminal = sys.stderr.isatty()
        self.start()

    def say(self, text: str) -> None:
        if self._enabled:
            print(text, file=sys.stderr, flush=True)

    def say_tokenizer(
        self, tokenizer: Tokenizer, segmentation: dict, vocabulary_given: bool
    ) -> None:
        self.say(f"held-out text: {summary(segmentation)}")
        for example in segmentation["examples"]:
            self.say(f"  {example}")
        for line in warnings(segmentation, tokenizer.kind, vocabulary_given):
            self.say(line)
        if tokenizer.why_slow:
            self.say(f"note: much text takes four times as long: {tokenizer.why_slow}")
        if tokenizer.flags.get("language_neutral", tokenizer.kind != "wordpiece"):
            self.say(
                "note: only word pieces without language_neutral can be exported "
                "together with a model; one trained on these examples cannot"
            )

    def start(self) -> None:
        self._start = self._shown = time.monotonic()

    def update(self, totals: Totals, last: bool = False) -> None:
        now = time.monotonic()
        interval = 0.2 if self._terminal else 30
        if not self._enabled or (now - self._shown < interval and not last):
            return
        self._shown = now
        done = sum(totals.counts.values(), Counter())
        megabytes, seconds = done["text_bytes"] / 1e6, now - self._start
        speed = (
            f", {megabytes / seconds:.1f} MB/s" if min(seconds, megabytes) > 1 else ""
        )
        print(
            f"{done['documents']:,} documents, {megabytes:,.2f} MB of text, "
            f"{done['examples']:,} examples{speed}",
            end="\r" if self._terminal and not last else "\n",
            file=sys.stderr,
            flush=True,
        )


def _chunks(sources: Sequence[Source]) -> Iterator[Chunk]:
    for number, source in enumerate(sources):
        yield from read_chunks(source, number)
