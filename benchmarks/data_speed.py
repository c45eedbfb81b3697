"""Measures data preparation against other ways, and the pipeline against a step.

    pip install -e '.[benchmark]'
    python benchmarks/data_speed.py wiki.txt.xz --plot preparation.png

Preparation is text to a file of examples, on one core, in turn: ours; Hugging Face's
tokenizers with the plainest writer, which fills sequences with the tokens of a document
and throws nothing else in; Model Garden's `create_pretraining_data`, masking each
sequence once. Then ours alone: one process and two, and the seconds that more and more
text takes. The vocabulary is given.
"""

import dataclasses
import itertools
import os
import random
import statistics
import tempfile
import time

import tyro

# Before the tokenizers are imported: one core for everyone.
os.environ["RAYON_NUM_THREADS"] = "1"

from keras_corrupt.data import make_dataset, open_corpus, prepare_dataset

LENGTH = 128


@dataclasses.dataclass
class Settings:
    """What to measure."""

    corpus: tyro.conf.Positional[str]
    """A text file."""
    megabytes: int = 20
    """How much of its text to prepare."""
    rounds: int = 3
    """Preparations of each kind; the median counts."""
    sizes: tuple[int, ...] = (1, 5, 20, 50, 100, 200)
    """Megabytes to prepare in one process and in two."""
    plot: str = ""
    """File for the plot of their seconds."""
    batch_size: int = 32
    """Sequences in a step."""
    steps: int = 5
    """Training steps to time; the median counts."""


def excerpt(corpus, path, size):
    """Writes the first `size` bytes of a corpus's text, so that no reading counts."""
    with open(path, "w") as file:
        last, written = None, 0
        for document, line in itertools.chain(
            *(s.lines() for s in open_corpus(corpus))
        ):
            if written > size:
                break
            file.write("\n" * (last not in (None, document)) + line + "\n")
            last, written = document, written + len(line.encode())
    return written / 1e6


def ours(text, vocabulary, output, workers=1):
    prepare_dataset(
        text,
        output,
        vocabulary=vocabulary,
        sequence_length=LENGTH,
        workers=workers,
        progress=False,
    )


def huggingface(text, vocabulary, output):
    import tensorflow as tf
    from tokenizers import BertWordPieceTokenizer

    tokenizer = BertWordPieceTokenizer(vocabulary)
    cls, sep = (tokenizer.token_to_id(token) for token in ("[CLS]", "[SEP]"))

    def write(writer, ids):
        ids = tf.train.Int64List(value=[cls, *ids, sep])
        features = {"token_ids": tf.train.Feature(int64_list=ids)}
        example = tf.train.Example(features=tf.train.Features(feature=features))
        writer.write(example.SerializeToString())

    with open(text) as file, tf.io.TFRecordWriter(output) as writer:
        for blank, lines in itertools.groupby(file, str.isspace):
            if blank:
                continue
            encoded = tokenizer.encode_batch(list(lines), add_special_tokens=False)
            tokens = [i for encoding in encoded for i in encoding.ids]
            for start in range(0, len(tokens), LENGTH - 2):
                write(writer, tokens[start : start + LENGTH - 2])


def model_garden(text, vocabulary, output):
    from absl import logging
    from official.nlp.data import create_pretraining_data as garden
    from official.nlp.tools import tokenization

    logging.set_verbosity(logging.ERROR)
    tokenizer = tokenization.FullTokenizer(vocab_file=vocabulary, do_lower_case=True)
    masked = -(-LENGTH * 15 // 100)
    instances = garden.create_training_instances(
        [text],
        tokenizer,
        garden.get_processor_text_fn(False, True),
        LENGTH,
        dupe_factor=1,
        short_seq_prob=0.05,
        masked_lm_prob=0.15,
        max_predictions_per_seq=masked,
        rng=random.Random(0),
    )
    garden.write_instance_to_example_files(
        instances, tokenizer, LENGTH, masked, [output], False, True
    )


def preparation(settings, text, megabytes, vocabulary, folder):
    """Prints what each way prepares, in MB of text a second, and the ratio to ours."""
    speeds = {ours: [], huggingface: [], model_garden: []}
    for turn in range(settings.rounds):
        for prepare, seen in speeds.items():
            start = time.perf_counter()
            prepare(text, vocabulary, f"{folder}/{prepare.__name__}-{turn}")
            seen.append(megabytes / (time.perf_counter() - start))
    medians = {way.__name__: statistics.median(seen) for way, seen in speeds.items()}
    for name, speed in medians.items():
        ratio = medians["ours"] / speed
        print(f"preparation, {name}: {speed:.2f} MB/s, ours {ratio:.1f} times that")


def growth(settings, vocabulary, folder):
    """Prints, and plots, the seconds that one process and two need for text."""
    seconds = {1: [], 2: []}
    megabytes = []
    for size in settings.sizes:
        text = f"{folder}/growing.txt"
        megabytes.append(excerpt(settings.corpus, text, size * 1e6))
        for workers, seen in seconds.items():
            start = time.perf_counter()
            ours(text, vocabulary, f"{folder}/growing-{size}-{workers}", workers)
            seen.append(time.perf_counter() - start)
        print(
            f"{megabytes[-1]:.1f} MB: {seconds[1][-1]:.1f} s in one process, "
            f"{seconds[2][-1]:.1f} s in two",
            flush=True,
        )
    if settings.plot:
        import matplotlib.pyplot as plt

        figure, axes = plt.subplots(figsize=(5, 3.5))
        axes.plot(megabytes, seconds[1], "o-", label="one process")
        axes.plot(megabytes, seconds[2], "s-", label="two processes")
        axes.set(xlabel="MB of text", ylabel="seconds", xlim=0, ylim=0)
        axes.legend()
        figure.savefig(settings.plot, dpi=150, bbox_inches="tight")


def step_seconds(dataset, steps):
    import keras

    from keras_corrupt.models import Electra
    from keras_corrupt.training import AdamW

    model = Electra.from_preset("small")
    model.compile(optimizer=AdamW(1e-4, global_clipnorm=1.0), jit_compile=False)
    times = []

    class Clock(keras.callbacks.Callback):
        def on_train_batch_begin(self, batch, logs=None):
            self.start = time.perf_counter()

        def on_train_batch_end(self, batch, logs=None):
            times.append(time.perf_counter() - self.start)

    model.fit(
        dataset,
        steps_per_epoch=steps + 1,
        verbose=0,
        callbacks=[Clock()],
        shuffle=False,
    )
    return statistics.median(times[1:])


def main():
    settings = tyro.cli(Settings, description=__doc__, use_underscores=True)
    with tempfile.TemporaryDirectory() as folder:
        text = f"{folder}/text.txt"
        megabytes = excerpt(settings.corpus, text, settings.megabytes * 1e6)
        # The vocabulary first: its training is not measured.
        prepare_dataset(text, f"{folder}/first", workers=1, progress=False)
        vocabulary = f"{folder}/first/vocab.txt"
        preparation(settings, text, megabytes, vocabulary, folder)
        growth(settings, vocabulary, folder)

        dataset = make_dataset(f"{folder}/first", batch_size=settings.batch_size)
        batches = iter(dataset)
        next(batches)
        start = time.perf_counter()
        for _ in itertools.islice(batches, 1000):
            pass
        per_batch = (time.perf_counter() - start) / 1000
        print(f"pipeline: {settings.batch_size / per_batch:,.0f} examples/s")

        step = step_seconds(dataset, settings.steps)
        print(f"ELECTRA-Small step of {settings.batch_size} x 128: {step:.2f} s")
        print(f"the pipeline is {step / per_batch:,.0f} times faster than the step")


if __name__ == "__main__":
    main()
