"""Fine-tuning with batches of like length against padding all to the longest.

    python benchmarks/finetune_speed.py GLUE_DIR --preset PRESET

Trains a text classifier on the same examples both ways, in turn, through `fit`, and
prints the medians of sequences a second and their ratio, for each task.
"""

import dataclasses
import statistics
import time

import tyro

from keras_corrupt.downstream import TextClassifier
from keras_corrupt.downstream.batches import LENGTHS, make_batches
from keras_corrupt.tasks.glue import GlueTask
from keras_corrupt.training import AdamW
from keras_corrupt.training.compiling import compiles_with_xla


@dataclasses.dataclass
class Settings:
    """What to measure."""

    data: tyro.conf.Positional[str]
    """A directory in GLUE's layout."""
    preset: str
    """A pretrained model."""
    tasks: tuple[str, ...] = ("SST-2", "MRPC", "QNLI")
    """Tasks whose lengths to take."""
    examples: int = 640
    """Examples of each pass."""
    batch_size: int = 32
    """Sequences in a batch."""
    max_length: int = 128
    """The longest sequence."""
    rounds: int = 3
    """Passes timed each way."""


def measure(settings, name):
    """Returns the seconds of the passes, and the share of tokens that are padding."""
    task = GlueTask(name, settings.data)
    model = TextClassifier.from_preset(
        settings.preset, max_length=settings.max_length, **task.model_arguments
    )
    model.compile(AdamW(1e-5, global_clipnorm=1.0), jit_compile=compiles_with_xla())
    train = task.splits["train"].take(settings.examples)
    features = model.features(train.examples, train.labels)
    ways = {
        way: make_batches(
            features,
            settings.batch_size,
            settings.max_length,
            model.tokenizer.padding_id,
            seed=0,
            padded_lengths=lengths,
        )
        for way, lengths in {"bucketed": LENGTHS, "padded": ()}.items()
    }
    seconds = {way: [] for way in ways}
    for i in range(settings.rounds + 1):
        for way, batches in ways.items():
            start = time.perf_counter()
            model.fit(batches, verbose=0, shuffle=False)
            if i:  # the first pass compiles
                seconds[way].append(time.perf_counter() - start)
    tokens = sum(len(feature.inputs["token_ids"]) for feature in features)
    padding = {
        way: 1 - tokens / sum(x["token_ids"].shape.num_elements() for x, *_ in batches)
        for way, batches in ways.items()
    }
    return seconds, padding


def main(settings):
    print("| task | way | padding | sequences/s | ratio |\n|---|---|---:|---:|---:|")
    for name in settings.tasks:
        seconds, padding = measure(settings, name)
        speed = {
            way: settings.examples / statistics.median(times)
            for way, times in seconds.items()
        }
        for way in ("padded", "bucketed"):
            ratio = speed[way] / speed["padded"]
            print(
                f"| {name} | {way} | {padding[way]:.0%} | {speed[way]:.0f} | "
                f"{ratio:.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    main(tyro.cli(Settings, description=__doc__, use_underscores=True))
