"""Corpus to a directory of examples, on one machine with several processes."""

import concurrent.futures
import multiprocessing
import os
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from keras_corrupt.data.chunks import (
    Chunk,
    EncodedChunk,
    Totals,
    encode_chunk,
    read_chunks,
)
from keras_corrupt.data.corpus import Source
from keras_corrupt.data.info import DatasetError, DatasetInfo, Shard, load_dataset_info
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
from keras_corrupt.devices.log_level import hide_start_up_lines
from keras_corrupt.tokenizers import Tokenizer, load

# Below this much stored text, starting processes costs more than it saves.
_ONE_PROCESS_BYTES = 4_000_000


def prepare_dataset(
    corpus: str | Sequence[str],
    output: str | os.PathLike,
    *,
    vocabulary: str | os.PathLike | None = None,
    tokenizer: str = "wordpiece",
    vocabulary_size: int = 30522,
    lowercase: bool = True,
    strip_accents: bool = True,
    language_neutral: bool = False,
    sequence_length: int = 128,
    validation_fraction: float = 0.005,
    shard_bytes: int = 100_000_000,
    seed: int = 0,
    workers: int | None = None,
    on_bad_bytes: str = "error",
    on_bad_rows: str = "error",
    documents: str = "blank_lines",
    grow_vocabulary: int = 0,
    progress: bool = True,
) -> DatasetInfo:
    """Builds a directory of training examples from a corpus, once.

    The directory gets the tokenizer's files, TFRecord files `train-00000.tfrecord` and
    so on, `validation.tfrecord` with held-out documents, `unigrams.npy` with the token
    counts of the training text, and `dataset.json`. It appears when it is complete.
    Called again with the same arguments the function returns at once. The result does
    not depend on the number of workers.

    A script that calls this with several workers needs the usual
    `if __name__ == "__main__":` around its code. Each worker imports the script, so
    what the script imports at its top (TensorFlow, Keras) costs memory and time once
    per worker; `python -m keras_corrupt.data prepare` does without.

    Args:
        corpus: What to read; see `open_corpus`.
        output: The directory; missing, empty, or made by an earlier call.
        vocabulary: Path of a vocabulary: a WordPiece `vocab.txt`, a `tokenizer.json`
            or a SentencePiece `.model`; see `from_file`. Without it one is trained.
        tokenizer: Kind of the vocabulary: `"wordpiece"`, `"byte_bpe"` or `"unigram"`.
        vocabulary_size: Tokens of the vocabulary to train.
        lowercase: Whether to lower-case text.
        strip_accents: Whether to remove accents, those of umlauts too (ä to a), with
            every kind of vocabulary and with `language_neutral`.
        language_neutral: Whether word pieces are to treat every script alike; see
            `WordPieceTokenizer`. The other kinds do.
        sequence_length: Tokens of the longest example, special tokens included.
        validation_fraction: Share of the documents to hold out; each split needs one.
        shard_bytes: Size of a training shard, passed by one record at most.
        seed: Seed of the held-out choice and of the example builder.
        workers: Processes; by default one for each available CPU.
        on_bad_bytes: `"error"`, or `"skip"` to leave out lines that are not UTF-8.
        on_bad_rows: `"error"`, or `"skip"` to leave out lines of a `.jsonl` file that
            are no JSON object with a string in the field "text".
        documents: What the documents of a `.txt` file are: separated by
            `"blank_lines"`, or `"lines"`, each of them one.
        grow_vocabulary: Pieces to add to a given vocabulary of word pieces: those of
            the corpus that it cuts. The ids that it has keep their meaning.
        progress: Whether to print a line of progress, how held-out text is cut into
            tokens, and what is bad about it.

    Returns:
        The description of the directory.

    Raises:
        CorpusError: If the corpus cannot be read.
        DatasetError: If `output` holds something else or cannot be written, or a split
            would be empty, or the vocabulary does not know more than 5% of the
            text's characters.
        ValueError: If an argument is out of range or the vocabulary is unusable.
    """
    plan = Plan(
        corpus=corpus,
        vocabulary=vocabulary,
        tokenizer=tokenizer,
        vocabulary_size=vocabulary_size,
        lowercase=lowercase,
        strip_accents=strip_accents,
        language_neutral=language_neutral,
        sequence_length=sequence_length,
        validation_fraction=validation_fraction,
        seed=seed,
        on_bad_bytes=on_bad_bytes,
        on_bad_rows=on_bad_rows,
        documents=documents,
        grow_vocabulary=grow_vocabulary,
    )
    if shard_bytes < 1 or (workers is not None and workers < 1):
        raise ValueError(
            f"shard_bytes={shard_bytes}, workers={workers}: pass positive numbers."
        )
    output = Path(output)
    sources = plan.sources()
    given = plan.given_tokenizer()
    settings = plan.settings(given) | {"shard_bytes": shard_bytes}
    if prepared := find_prepared(output, settings, sources):
        return prepared
    with new_directory(output) as partial:
        report = _Progress(progress)
        corpus_read = describe_sources(sources)
        held_out = plan.held_out_lines(sources)
        if given is None:
            report.say(f"training a vocabulary of {vocabulary_size} tokens")
        if grow_vocabulary:
            old = summary(describe_segmentation(given, held_out))
            report.say(f"growing by {grow_vocabulary} pieces a vocabulary ({old})")
        used = plan.make_tokenizer(given, sources, progress)
        used.save(partial)
        segmentation = describe_segmentation(used, held_out)
        report.say_tokenizer(used, segmentation, given is not None)
        check_lost_text(segmentation, used.kind, given is not None)
        totals = Totals(used.vocabulary_size)
        shards = _Shards(partial, shard_bytes)
        options = {
            "max_length": sequence_length,
            "validation_fraction": validation_fraction,
            "seed": seed,
        }
        workers = workers or _default_workers(sources)
        report.start()
        size = sum(source.size or 0 for source in sources)
        for encoded in _encode(_chunks(sources), partial, options, workers, size):
            totals.add(encoded)
            shards.add(encoded)
            report.update(totals)
        finish_directory(
            partial,
            settings=settings,
            corpus=corpus_read,
            left_out=sources.left_out,
            tokenizer=used,
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
        self, tokenizer: Tokenizer, segmentation: dict, given: bool
    ) -> None:
        self.say(f"held-out text: {summary(segmentation)}")
        for example in segmentation["examples"]:
            self.say(f"  {example}")
        for line in warnings(segmentation, tokenizer.kind, given):
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


def _default_workers(sources: Sequence[Source]) -> int:
    size = sum(source.size for source in sources)
    # TFDS does not tell its size before it is read.
    known = all(source.size for source in sources)
    if known and size < _ONE_PROCESS_BYTES:
        return 1
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _chunks(sources: Sequence[Source]) -> Iterator[Chunk]:
    for number, source in enumerate(sources):
        yield from read_chunks(source, number)


def _encode(
    chunks: Iterable[Chunk], directory: Path, options: dict, workers: int, size: int
) -> Iterator[EncodedChunk]:
    """Encodes chunks in processes, in order; few are in memory at a time."""
    if workers == 1:
        tokenizer = load(directory)
        tokenizer.expect(size)
        for chunk in chunks:
            yield encode_chunk(chunk, tokenizer, **options)
        return
    pool = concurrent.futures.ProcessPoolExecutor(
        workers,
        multiprocessing.get_context("spawn"),
        initializer=_start_worker,
        initargs=(directory, options, size // workers),
    )
    pending: deque[concurrent.futures.Future] = deque()
    try:
        for chunk in chunks:
            pending.append(pool.submit(_encode_in_worker, chunk))
            if len(pending) > 2 * workers:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
    except concurrent.futures.process.BrokenProcessPool as error:
        raise DatasetError(
            "a worker process ended unexpectedly. If this is a script, put its code "
            'under `if __name__ == "__main__":`; if the machine ran out of memory, '
            "pass fewer workers (workers=1 starts none)."
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)


_worker: tuple[Tokenizer, dict]


def _start_worker(directory: Path, options: dict, size: int) -> None:
    global _worker
    # The processes are the parallelism; threads in each would compete.
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    # TensorFlow Text brings TensorFlow, which would take the accelerator's memory.
    os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
    hide_start_up_lines()
    _worker = load(directory), options
    _worker[0].expect(size)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    # A killed parent cannot stop its workers.
    multiprocessing.parent_process().join()
    os._exit(1)


def _encode_in_worker(chunk: Chunk) -> EncodedChunk:
    tokenizer, options = _worker
    return encode_chunk(chunk, tokenizer, **options)
