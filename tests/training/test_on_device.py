"""Many updates in one program, as benchmarks/on_device makes them."""

import json
import shutil

import keras
import numpy as np
import pytest

from benchmarks.on_device import packed
from keras_corrupt.models import Electra, MaskedLM
from keras_corrupt.training import AdamW, WarmupLinearDecay

ON_JAX = pytest.mark.skipif(keras.backend.backend() != "jax", reason="JAX's programs")


def test_examples_come_back(tmp_path):
    rows = np.array([[2, 7, 9, 3], [2, 3, 0, 0], [2, 9, 3, 0]], "uint16")
    packed.write(tmp_path / "packed", rows, rows[:1], files=2)
    train, held_out = packed.unpack(tmp_path / "packed")
    np.testing.assert_array_equal(train, rows)
    np.testing.assert_array_equal(held_out, rows[:1])


@pytest.fixture
def examples(tmp_path, tokenizer):
    """Eight examples of two segments, uint16 `[8, 6]`, packed in `tmp_path`."""
    ids = np.random.default_rng(0).integers(5, 15, (8, 6)).astype("uint16")
    ids[:, 0], ids[:, [3, 5]] = tokenizer.classify_id, tokenizer.separate_id
    packed.write(tmp_path / "packed", ids, ids[:2], files=1)
    tokenizer.save(tmp_path / "packed" / "tokenizer")
    return ids


@ON_JAX
def test_seeds_train_at_once_as_each_alone(examples, tmp_path):
    from benchmarks.on_device import systems

    small = {"encoder": {"max_length": 6, "num_layers": 1}}
    run = systems.Run("rate_0.1", "MaskedLM", "tiny", small, batch_size=2)
    settings = systems.Settings(str(tmp_path / "packed"), "", str(tmp_path))
    settings.dtype, settings.chunk, settings.held_out = "float32", 2, 2
    measured = {}
    for seeds in (2, 1):
        settings.seeds = seeds
        training = systems.Training(run, settings)
        assert training.go("4").startswith("4 updates")
        lines = (tmp_path / "rate_0.1.jsonl").read_text().splitlines()
        _, *rows = map(json.loads, lines)
        assert [row["step"] for row in rows] == [2, 4]
        measured[seeds] = rows[-1]
        shutil.rmtree(tmp_path / "rate_0.1-0")
    both, alone = measured[2], measured[1]
    assert both["loss"][0] != both["loss"][1]
    for name in ("loss", "token_spread", "largest_gradient_norm"):
        assert both[name][0] == pytest.approx(alone[name][0], rel=1e-3)
    assert MaskedLM.from_preset(tmp_path / "rate_0.1-1").encoder.num_layers == 1


@ON_JAX
def test_updates_are_those_of_single_steps(examples, tmp_path, tokenizer):
    from benchmarks.on_device import train

    data = str(tmp_path / "packed")
    settings = train.Settings(data, "", "", "tiny", dtype="float32")
    settings.batch_size = settings.chunk = 2
    programs = train.Programs(settings, examples, examples[:2])
    run = train.Run("run", 4, learning_rate=0.01, warmup_steps=3, beta_2=0.9)
    training = train.Training(run, settings, programs, started=0.0)
    state = programs.first
    for step in (0, 2):
        state, _ = training.chunk(state, step, total=4)

    keras.utils.set_random_seed(0)
    model = Electra.from_preset(
        "tiny", tokenizer=tokenizer, discriminator={"max_length": 6}
    )
    schedule = WarmupLinearDecay(0.01, total_steps=4, warmup_steps=3)
    model.compile(
        AdamW(schedule, beta_2=0.9, bias_correction=False, global_clipnorm=1.0)
    )
    for rows in examples[training.order.take(0, 8)].reshape(4, 2, 6):
        segments = np.tile([0, 0, 0, 0, 1, 1], (2, 1))
        model.train_on_batch(
            {
                "token_ids": rows.astype("int32"),
                "segment_ids": segments,
                "padding_mask": np.ones((2, 6), "int32"),
            }
        )
    for ours, variable in zip(state[0], model.trainable_variables, strict=True):
        np.testing.assert_allclose(ours, np.array(variable), rtol=1e-4, atol=1e-5)


@ON_JAX
def test_time_and_flops_exclude_each_other():
    from benchmarks.on_device import systems

    settings = systems.Settings("packed", "runs.json", "", seconds=1.0, flops=1.0)
    with pytest.raises(SystemExit, match="not both"):
        systems.main(settings)


@ON_JAX
def test_first_embeddings_are_scaled(examples, tmp_path):
    from benchmarks.on_device import systems

    settings = systems.Settings(str(tmp_path / "packed"), "", "", dtype="float32")
    tables = []
    for scale in (1.0, 0.5):
        run = systems.Run("run", "MaskedLM", "tiny", embedding_scale=scale)
        model, _ = systems.make(run, settings, seed=0)
        tables.append(np.array(model.encoder.embeddings.token.embeddings))
    np.testing.assert_allclose(tables[1], 0.5 * tables[0])
