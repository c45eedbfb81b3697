"""Which sequences share a batch."""

import types

import numpy as np
import pytest

from keras_corrupt.downstream.batches import Feature
from keras_corrupt.multitask.mixed_batches import mixed_batches

PART = types.SimpleNamespace(max_length=128, padding_id=0, soft_targets_of_tokens=())


def features_of(lengths):
    return [
        Feature(
            {"token_ids": np.ones(n, "int32"), "segment_ids": np.zeros(n, "int32")},
            {"label": 0},
            i,
        )
        for i, n in enumerate(lengths)
    ]


def made(tasks, batch_size):
    features = {name: features_of(lengths) for name, lengths in tasks.items()}
    parts = dict.fromkeys(tasks, PART)
    return [*mixed_batches(parts, features, batch_size)]


def test_tasks_of_short_and_of_long_texts_share_batches():
    """Two rows of a batch are as often of different tasks as by chance, nearly."""
    rng = np.random.default_rng(0)
    # As long as GLUE's: CoLA, SST-2, STS-B, QQP, MNLI, QNLI, MRPC, RTE.
    means = (13, 16, 33, 35, 46, 58, 63, 76)
    tasks = {
        f"task {i}": np.clip(rng.gamma(6.0, mean / 6.0, 400).astype(int), 4, 128)
        for i, mean in enumerate(means)
    }
    batches = made(tasks, 32)
    pairs = [x["task"][:, None] != x["task"] for x, _, _ in batches]
    mixed = np.mean([pair.sum() / (32 * 31) for pair in pairs])
    assert mixed > 0.93 * (1 - 1 / len(means))
    # And short ones don't pay for long ones as they would by chance.
    read = sum(x["padding_mask"].size for x, _, _ in batches)
    real = sum(x["padding_mask"].sum() for x, _, _ in batches)
    assert read < 2.2 * real < 0.75 * len(batches) * 32 * 128


@pytest.mark.parametrize("tasks", [1, 2])
def test_short_texts_are_padded_to_few_tokens(tasks):
    lengths = np.array([5, 9, 12, 16] * 8)
    batches = made({f"task {i}": lengths for i in range(tasks)}, 8)
    assert {x["token_ids"].shape for x, _, _ in batches} == {(8, 16)}


def test_a_single_task_s_texts_are_together_by_length():
    batches = made({"one": np.repeat([10, 30, 60, 90], 8)}, 8)
    widths = sorted(x["token_ids"].shape[1] for x, _, _ in batches)
    assert widths == [16, 32, 64, 96]
    assert all(len({*x["padding_mask"].sum(1)}) == 1 for x, _, _ in batches)
