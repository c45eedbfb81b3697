"""Chunks to examples, in several processes.

One process reads, tokenizes and writes: this one, which may have TensorFlow and its
tokenizer loaded anyway. Building examples, half of the work, needs nothing but Python,
so other processes start in a moment and need little memory.
"""

import concurrent.futures
import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Sequence

from keras_corrupt.data.chunks import (
    Chunk,
    EncodedChunk,
    SpecialIds,
    TokenizedChunk,
    build_chunk,
    tokenize_chunk,
)
from keras_corrupt.data.info import DatasetError
from keras_corrupt.data.sources import Source
from keras_corrupt.devices.cpus import available_cpus
from keras_corrupt.tokenizers import Tokenizer

# Below this much stored text, starting a process costs more than it saves.
_ONE_PROCESS_BYTES = 4_000_000
# More find nothing to do: tokenizing, which one thread does, is a third of the work.
_MOST_WORKERS = 4


def default_workers(sources: Sequence[Source]) -> int:
    """Returns how many processes are worth starting, this one included.

    Args:
        sources: The corpus.

    Returns:
        The number.
    """
    # TFDS does not tell its size before it is read.
    sizes_known = all(source.size for source in sources)
    if sizes_known and sum(source.size for source in sources) < _ONE_PROCESS_BYTES:
        return 1
    return min(available_cpus(), _MOST_WORKERS)


def encode_chunks(
    chunks: Iterable[Chunk], tokenizer: Tokenizer, workers: int, **options
) -> Iterator[EncodedChunk]:
    """Tokenizes chunks and builds their examples; few chunks are in memory at a time.

    This process builds examples, too, where the others have enough to do or have not
    started yet, so that several never take longer than one.

    Args:
        chunks: The text.
        tokenizer: Its tokenizer.
        workers: Processes, this one included.
        **options: Arguments of `build_chunk`.

    Yields:
        The examples of each chunk, in order.

    Raises:
        DatasetError: If a process ended.
    """
    options["special"] = SpecialIds.of(tokenizer)
    if workers == 1:
        for chunk in chunks:
            yield build_chunk(tokenize_chunk(chunk, tokenizer), **options)
        return
    pool = concurrent.futures.ProcessPoolExecutor(
        workers - 1,
        multiprocessing.get_context("spawn"),
        initializer=_end_with_parent,
    )
    other_children = {*multiprocessing.active_children()}
    started = [_submit(pool, os.getpid) for _ in range(workers - 1)]
    children = {*multiprocessing.active_children()} - other_children
    pending: deque[concurrent.futures.Future] = deque()
    try:
        for chunk in _tokenized_ahead(chunks, tokenizer):
            room = 2 * sum(future.done() for future in started)
            if sum(not future.done() for future in pending) < room:
                pending.append(_submit(pool, build_chunk, chunk, **options))
            else:
                pending.append(concurrent.futures.Future())
                pending[-1].set_result(build_chunk(chunk, **options))
            while pending and (pending[0].done() or len(pending) > 4 * workers):
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
        # The pool would wait for one that is still starting.
        for child in children:
            child.terminate()
        pool.shutdown(cancel_futures=True)


def _tokenized_ahead(
    chunks: Iterable[Chunk], tokenizer: Tokenizer
) -> Iterator[TokenizedChunk]:
    """Tokenizes chunks in a thread: the libraries that do so leave Python to others."""
    with concurrent.futures.ThreadPoolExecutor(1) as thread:
        ahead = deque()
        for chunk in chunks:
            ahead.append(thread.submit(tokenize_chunk, chunk, tokenizer))
            if len(ahead) > 2:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()


def _submit(pool, function, *arguments, **options) -> concurrent.futures.Future:
    """Submits a call to a process that may start now, and that Ctrl-C does not reach.

    This process ends it.
    """
    if not hasattr(signal, "pthread_sigmask"):  # Windows
        return pool.submit(function, *arguments, **options)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        return pool.submit(function, *arguments, **options)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _end_with_parent() -> None:
    """Ends this process when the one that started it is killed."""

    def wait():
        multiprocessing.parent_process().join()
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()
