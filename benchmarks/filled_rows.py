r"""Padding that batches have, and what rows filled with several texts would save.

    python -m benchmarks.filled_rows wiki.txt.xz --glue GLUE_DIR \
        --tagging train.conllu --output RESULTS

It counts the tokens that go through a model, padding included, for each token of text:
examples of pretraining, whose documents are a page or a line; texts of GLUE and tagged
sentences in batches of like length, as fine-tuning makes them; and lines that are
scored. Then it times a model on lines of text, by batches as they are and by filled
rows, in turn.
"""

import dataclasses
import itertools
import random
import statistics
import time
from pathlib import Path

import numpy as np
import tyro

from benchmarks.machine import description
from keras_corrupt.data import open_corpus
from keras_corrupt.data.examples import build_examples
from keras_corrupt.data.rows import filled_rows, row_bounds
from keras_corrupt.downstream.batches import LENGTHS, plan
from keras_corrupt.models import Electra
from keras_corrupt.models.windows import LENGTH_STEP, pack_all, windows_of
from keras_corrupt.tasks.conll import read_conll
from keras_corrupt.tasks.glue.glue import TASKS, GlueTask
from keras_corrupt.tokenizers.texts import text_tuples
from keras_corrupt.training import AdamW


@dataclasses.dataclass
class Settings:
    """What to measure."""

    corpus: tyro.conf.Positional[str]
    """A text file."""
    output: str
    """Directory for the tables."""
    glue: str = ""
    """Directory of GLUE's tasks."""
    tagging: tuple[str, ...] = ()
    """Files of tagged sentences."""
    preset: str = "small_en"
    """A preset of ELECTRA with a tokenizer."""
    lines: int = 4000
    """Lines of the corpus, and texts of each task."""
    timed: int = 256
    """Lines to time a model on."""
    length: int = 128
    """Tokens of a row."""
    batch_size: int = 32
    """Texts in a batch, and rows."""
    rounds: int = 3
    """How often each is timed; the median counts."""


def rows_tokens(lengths, length):
    """Tokens of filled rows, padding included."""
    return length * (len(row_bounds(lengths, length)) - 1)


def bucket_tokens(lengths, batch_size, length):
    """Tokens of fine-tuning's batches, padding included."""
    buckets = [n for n in LENGTHS if n < length] + [length]
    return sum(batch_size * padded for _, padded in plan(lengths, batch_size, buckets))


def batch_tokens(lengths, batch_size):
    """Tokens of batches in this order, each as long as its longest text."""
    starts = range(0, len(lengths), batch_size)
    parts = (lengths[start : start + batch_size] for start in starts)
    return sum(len(part) * round_up(part.max()) for part in parts)


def round_up(length):
    return -(-length // LENGTH_STEP) * LENGTH_STEP


def example_lengths(documents, tokenizer, length):
    """Tokens of the examples that pretraining makes of documents."""
    rng = random.Random(0)
    ids = tokenizer.classify_id, tokenizer.separate_id
    return np.array(
        [
            len(example.token_ids)
            for lines in documents
            for example in build_examples(
                tokenizer.encode_batch(lines),
                max_length=length,
                classify_id=ids[0],
                separate_id=ids[1],
                rng=rng,
            )
        ]
    )


def counted(settings, tokenizer, documents, lines):
    """Returns the table of tokens for each token of text."""
    length, size = settings.length, settings.batch_size
    table = []

    def add(name, lengths, padded):
        total = lengths.sum()
        filled = rows_tokens(lengths, length)
        table.append((name, total / len(lengths), padded / total, filled / total))

    for name, texts in (("a page", documents), ("a line", [[line] for line in lines])):
        lengths = example_lengths(texts, tokenizer, length)
        add(f"pretraining, a document is {name}", lengths, length * len(lengths))
    for name in TASKS if settings.glue else ():
        split = GlueTask(name, settings.glue).splits["train"].take(settings.lines)
        lengths = lengths_of(split.examples, tokenizer, length)
        add(f"fine-tuning, {name}", lengths, bucket_tokens(lengths, size, length))
    for path in settings.tagging:
        sentences = read_conll(path, scheme="plain").examples[: settings.lines]
        lengths = lengths_of(list(map(" ".join, sentences)), tokenizer, length)
        name = "/".join(Path(path).parts[-2:])
        add(f"tagging, {name}", lengths, bucket_tokens(lengths, size, length))
    lengths = lengths_of(lines, tokenizer, length)
    add("scoring, lines in their order", lengths, batch_tokens(lengths, size))
    lengths = np.sort(lengths)[::-1]
    add("scoring, lines by length", lengths, batch_tokens(lengths, size))
    return table


def lengths_of(texts, tokenizer, length):
    """Tokens of texts or pairs of texts, cut to a row's length."""
    tuples = text_tuples(texts)
    encoded = iter(tokenizer.encode_batch([text for parts in tuples for text in parts]))
    lengths = [1 + sum(len(next(encoded)) + 1 for _ in parts) for parts in tuples]
    return np.minimum(lengths, length)


def timed(settings, model, lines):
    """Returns seconds by name: a forward pass, and an update, over the same lines."""
    length, size = settings.length, settings.batch_size
    windows = windows_of(lines, model.tokenizer, length)
    windows = [window for window in windows if len(window.ids) <= length]

    def packed(windows, length):
        return pack_all(windows, length, model.padding_id)

    def batches(windows):
        for start in range(0, len(windows), size):
            part = windows[start : start + size]
            yield packed(part, round_up(max(len(window.ids) for window in part)))

    lengths = np.array([len(window.ids) for window in windows])
    examples = packed(windows, length)
    rows = filled_rows(examples, np.diff(row_bounds(lengths, length)).tolist())

    def in_batches(arrays):
        count = len(arrays["token_ids"])
        return [
            {name: array[start : start + size] for name, array in arrays.items()}
            for start in range(0, count - count % size, size)
        ]

    by_length = sorted(windows, key=lambda window: -len(window.ids))
    forward = {
        "in their order": list(batches(windows)),
        "by length": list(batches(by_length)),
        "filled rows": in_batches(rows),
    }
    update = {"one a row": in_batches(examples), "filled rows": in_batches(rows)}
    results = {}
    for kind, run, ways in (
        ("forward pass", model.detect, forward),
        ("update", model.train_on_batch, update),
    ):
        seconds = {way: [] for way in ways}
        for round_, way in itertools.product(range(settings.rounds + 1), ways):
            start = time.perf_counter()
            for batch in ways[way]:
                run(batch)
            passed = time.perf_counter() - start
            tokens = sum(batch["padding_mask"].sum() for batch in ways[way])
            if round_:  # the first one compiles
                seconds[way].append(passed / tokens * 1e6)
        results[kind] = {w: statistics.median(times) for w, times in seconds.items()}
    return results


def main(settings):
    model = Electra.from_preset(settings.preset)
    model.compile(AdamW(1e-5))
    stream = itertools.chain(*(s.lines() for s in open_corpus(settings.corpus)))
    taken = list(itertools.islice(stream, settings.lines))
    documents = [
        [line for _, line in group]
        for _, group in itertools.groupby(taken, key=lambda pair: pair[0])
    ]
    lines = [line for _, line in taken]
    text = [
        "| batches | tokens of a text | padded / text | filled / text | saved |",
        "|---|---:|---:|---:|---:|",
    ]
    for name, mean, padded, filled in counted(
        settings, model.tokenizer, documents, lines
    ):
        factor = padded / filled
        text.append(
            f"| {name} | {mean:.0f} | {padded:.2f} | {filled:.2f} | {factor:.2f} |"
        )
    text += ["", f"{description()}; {settings.preset}", ""]
    text += ["| of lines | batches | µs for a token of text |", "|---|---|---:|"]
    for kind, ways in timed(settings, model, lines[: settings.timed]).items():
        text += [f"| {kind} | {way} | {micros:.0f} |" for way, micros in ways.items()]
    text = "\n".join(text) + "\n"
    print(text)
    output = Path(settings.output)
    output.mkdir(parents=True, exist_ok=True)
    (output / "filled_rows.md").write_text(text)


if __name__ == "__main__":
    main(tyro.cli(Settings, description=__doc__, use_underscores=True))
