"""Measures data preparation and the input pipeline against a training step.

python benchmarks/data_speed.py wiki.txt.xz
"""

import dataclasses
import itertools
import statistics
import tempfile
import time

import tyro

from keras_corrupt.data import make_dataset, open_corpus, prepare_dataset


@dataclasses.dataclass
class Settings:
    """What to measure."""

    corpus: tyro.conf.Positional[str]
    """A text file."""
    megabytes: int = 20
    """How much of its text to prepare."""
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
    settings = tyro.cli(Settings, description=__doc__)
    with tempfile.TemporaryDirectory() as folder:
        text = f"{folder}/text.txt"
        megabytes = excerpt(settings.corpus, text, settings.megabytes * 1e6)
        # The vocabulary first: training it is not what is measured.
        prepare_dataset(text, f"{folder}/first", workers=1, progress=False)
        start = time.perf_counter()
        prepare_dataset(
            text,
            f"{folder}/data",
            vocabulary=f"{folder}/first/vocab.txt",
            workers=1,
            progress=False,
        )
        seconds = time.perf_counter() - start
        print(f"preparation: {megabytes / seconds:.1f} MB/s with one worker")

        dataset = make_dataset(f"{folder}/data", batch_size=settings.batch_size)
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
