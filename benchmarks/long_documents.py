"""Detects replaced words in long documents, read whole and in windows.

    python -m keras_corrupt.data prepare --corpus CORPUS --output DATA \\
        --sequence_length 2048
    python recipes/electra_tiny.py --data DATA \\
        --discriminator.max_length 2048 --sequence_length 2048 --batch_size 2 \\
        --output runs/long
    python -m benchmarks.long_documents runs/long/preset DATA --output RESULTS

In full validation examples 15% of the tokens are replaced by words drawn by their
frequency. The model scores the same documents in windows of each length that overlap by
half (`Electra.score`), as far as it can read so many tokens at once.
"""

import dataclasses
import itertools
import time
from pathlib import Path

import keras
import numpy as np
import tyro

from benchmarks import comparison
from benchmarks.machine import description
from keras_corrupt.data import load_dataset_info, make_dataset
from keras_corrupt.models import load_preset


@dataclasses.dataclass
class Settings:
    """What to score."""

    preset: tyro.conf.Positional[str]
    """A trained model that detects replaced tokens."""
    data: tyro.conf.Positional[str]
    """A directory of prepared examples, with the model's vocabulary."""
    output: str
    """Directory for the table."""
    documents: int = 32
    """Examples, the first full ones of the validation split."""
    windows: tuple[int, ...] = (16, 32, 64, 128, 256, 512, 1024, 2048)
    """Tokens of a window."""
    tokens: int = 4096
    """Tokens of a batch."""
    share: float = 0.15
    """Which part of the tokens is replaced."""


def full_examples(data):
    """Yields the token ids of validation examples without padding."""
    for batch in make_dataset(data, "validation", batch_size=1):
        (ids,), (mask,) = (np.array(batch[n]) for n in ("token_ids", "padding_mask"))
        if mask.all():
            yield ids


def corrupted(ids, unmaskable_ids, unigrams, share, generator):
    """Replaces tokens by words drawn by frequency; special tokens stay."""
    chosen = generator.random(ids.shape) < share
    chosen &= ~np.isin(ids, unmaskable_ids)
    words = generator.choice(len(unigrams), ids.shape, p=unigrams / unigrams.sum())
    return np.where(chosen, words, ids)


def measure(model, originals, noisy, window, tokens):
    """Returns the row of a window's length: AUC, and seconds of the second call."""
    # Without [CLS] and [SEP], which `score` puts around each window.
    texts = [ids[1:-1].tolist() for ids in noisy]
    options = {"batch_size": max(1, tokens // window), "max_length": window}
    model.score(texts, **options)  # compiles
    start = time.perf_counter()
    scores = model.score(texts, **options)
    seconds = time.perf_counter() - start
    auc = keras.metrics.AUC(num_thresholds=1000)
    for ids, original, score in zip(noisy, originals, scores, strict=True):
        auc.update_state((ids != original)[1:-1], score.probabilities[1:-1])
    return {"window": window, "auc": float(auc.result()), "seconds": seconds}


def main(settings):
    model = load_preset(settings.preset)
    unigrams = load_dataset_info(settings.data).unigrams()
    originals = list(itertools.islice(full_examples(settings.data), settings.documents))
    if not originals:
        raise SystemExit(
            f"{settings.data} has no full validation example. Prepare longer documents."
        )
    generator = np.random.default_rng(0)
    noise = model.unmaskable_ids, unigrams, settings.share, generator
    noisy = [corrupted(ids, *noise) for ids in originals]
    print(description())
    print(f"{len(noisy)} documents of {len(noisy[0])} tokens")
    rows = []
    print("\n| window | AUC | seconds |\n|---:|---:|---:|")
    for window in settings.windows:
        if window <= model.max_length:
            rows.append(measure(model, originals, noisy, window, settings.tokens))
            print(f"| {window} | {rows[-1]['auc']:.4f} | {rows[-1]['seconds']:.2f} |")
    comparison.write_rows(rows, Path(settings.output, "long_documents.csv"))


if __name__ == "__main__":
    main(tyro.cli(Settings, description=__doc__, use_underscores=True))
