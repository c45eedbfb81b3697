import csv
import dataclasses
import json
import os
import re
import resource
import signal
from pathlib import Path

import keras
import matplotlib.image
import numpy as np
import pytest
from safetensors.numpy import load_file

from keras_corrupt.models import Electra, Teams
from keras_corrupt.models.baselines import Unigram
from keras_corrupt.objectives.replaced_tokens import ReplacedTokens
from keras_corrupt.presets.named_variables import named_variables
from keras_corrupt.tokenizers import load
from keras_corrupt.training import (
    Checkpoints,
    main,
    pretrain,
    pretraining,
    report,
)
from keras_corrupt.training.batches import validation_batches
from keras_corrupt.training.callbacks import (
    NonFiniteLossError,
    Progress,
    read_metrics,
)
from tests.training.conftest import (
    ENCODER,
    assert_same_weights,
    command_line,
    contents,
)

pytestmark = pytest.mark.usefixtures("presets")


def test_warns_of_far_fewer_tokens_than_the_recipe(config, monkeypatch, capsys):
    seen = []
    monkeypatch.setattr(
        pretraining, "pretrain", lambda config: seen.append(config) or 1
    )

    def run(*flags):
        monkeypatch.setattr("sys.argv", ["recipe.py", *command_line(config), *flags])
        main(config, "A recipe.")
        return capsys.readouterr().err

    assert run("--batch-size", "4") == ""
    assert re.search("96 tokens a step.*512.*--accumulate", run("--batch_size", "3"))
    assert [c.batch_size for c in seen] == [4, 3]


# === What a run leaves ===


def test_banner_and_closing_table(finished):
    rows = read_metrics(finished.directory / "metrics.csv")
    banner, table = finished.printed.split("\nvalidation ")
    model = finished.model
    assert f"generator {model.generator.count_params():,}" in banner
    assert f"discriminator {model.discriminator.count_params():,}" in banner
    shared = 16 * (120 + 40)  # token and position embeddings
    assert f"({shared:,} of them shared)" in banner
    assert "16 x 32 = 512 tokens" in banner
    assert keras.backend.backend() in banner
    # The last interval validated the same model.
    for name, shown in (
        ("val_mlm_loss", "masked LM loss (nats)"),
        ("val_mlm_accuracy", "masked LM accuracy"),
        ("val_rtd_auc", "replaced token detection AUC"),
    ):
        line = next(line for line in table.splitlines() if shown in line)
        assert line.removeprefix(shown).split()[0] == f"{rows[-1][name]:.3f}"
    assert table.count("[CLS]") == 3  # the examples


def test_a_table_that_names_no_metric_is_refused_before_training(config, monkeypatch):
    names = {"rtd_acu": "replaced token detection AUC"}
    monkeypatch.setattr(ReplacedTokens, "metric_names", names)
    with pytest.raises(ValueError, match="Electra's objectives .* rtd_acu, which are"):
        pretrain(config)
    assert not os.path.exists(config.output)


def test_closing_table_has_the_chance_of_selecting_right():
    model = Teams(ENCODER, generator_layers=1, mask_id=4, unmaskable_ids=(0, 2, 3))
    names = model.objectives.metric_names
    metrics = dict.fromkeys(names, 0.5) | {"replaced_fraction": 0.1}
    lines = report.table(model, metrics, Unigram(7.0, 0.05)).splitlines()
    assert (
        lines[-1].split() == "multi-word selection accuracy 0.500 0.167 chance".split()
    )
    assert lines[1].split() == "masked LM loss (nats) 0.500 7.000 unigram".split()
    assert len(lines) == 1 + len(names)


def test_closing_table_says_that_a_trivial_text_shows_nothing():
    model = Teams(ENCODER, generator_layers=1, mask_id=4, unmaskable_ids=(0, 2, 3))
    names = model.objectives.metric_names
    metrics = dict.fromkeys(names, 1.0) | {"replaced_fraction": 0.1}
    for share, is_trivial in ((0.5, False), (0.98, True)):
        text = report.table(model, metrics, Unigram(0.2, share))
        assert ("say nothing: 98% of the validation text is one token" in text) == (
            is_trivial
        )


def test_metrics_and_tensorboard_agree(finished):
    with open(finished.directory / "metrics.csv", newline="") as file:
        columns = next(csv.reader(file))
    terms = [
        *("gradient_norm", "loss"),
        "mlm_accuracy",
        "mlm_loss",
        "replaced_fraction",
        "rtd_auc",
        "rtd_loss",
        "rtd_precision",
        "rtd_recall",
        "sampled_accuracy",
    ]
    assert columns == [
        *("step", "tokens", "seconds", "tokens_per_second", "learning_rate"),
        *terms,
        *(f"val_{term}" for term in [*terms[1:], "token_spread"]),
    ]
    rows = read_metrics(finished.directory / "metrics.csv")
    assert [(row["step"], row["tokens"]) for row in rows] == [(3, 1536), (6, 3072)]
    # Peak 0.01 x linear decay: after 3 of 6 updates, and after all.
    assert [row["learning_rate"] for row in rows] == pytest.approx([0.005, 0.0])
    for row in rows:
        for prefix in ("", "val_"):
            total = row[f"{prefix}mlm_loss"] + 50 * row[f"{prefix}rtd_loss"]
            # Each term is a mean over its own tokens, the loss one over batches.
            assert row[f"{prefix}loss"] == pytest.approx(total, rel=0.02)

    import tensorflow as tf
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(finished.directory / "tensorboard"))
    events.Reload()
    assert set(events.Tags()["tensors"]) == set(columns) - {"step"}
    for name in columns[1:]:
        scalars = {
            event.step: float(tf.make_ndarray(event.tensor_proto))
            for event in events.Tensors(name)
        }
        assert scalars == pytest.approx({row["step"]: row[name] for row in rows})


def test_curves_are_a_picture(finished):
    path = finished.directory / "curves.png"
    assert path.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    picture = matplotlib.image.imread(path)
    height, width, _ = picture.shape
    # Two losses and the rates, side by side.
    assert (height, width) == (440, 3 * 495)
    for panel in np.split(picture[..., :3], 3, axis=1):
        inked = (panel < 0.9).any(axis=-1).mean()
        assert 0.01 < inked < 0.5


def test_the_preset_is_the_trained_model(finished, prepared):
    loaded = Electra.from_preset(finished.directory / "preset")
    assert loaded.masker.mask_rate == 0.2
    assert loaded.tokenizer.fingerprint == prepared.tokenizer_fingerprint
    texts = ["balbel cin dam", ("fur got", "bel bel bel bel")]
    for one, other in zip(
        loaded.score(texts), finished.model.score(texts), strict=True
    ):
        assert one.tokens == other.tokens
        assert one.tokens[0] == "[CLS]"
        np.testing.assert_array_equal(one.probabilities, other.probabilities)
        assert ((one.probabilities > 0) & (one.probabilities < 1)).all()


def test_training_learns_what_is_most_frequent(finished, prepared):
    """Six steps at a high rate get well below the uniform guess at the start."""
    rows = read_metrics(finished.directory / "metrics.csv")
    assert rows[-1]["val_mlm_loss"] < rows[0]["mlm_loss"] < np.log(120) + 0.2


# === Continuing ===


def test_a_finished_run_run_again_prints_the_table_again(finished, capsys):
    before = contents(finished.directory)
    times = {p: p.stat().st_mtime_ns for p in finished.directory.glob("checkpoints/*")}
    model = pretrain(finished.config)
    printed = capsys.readouterr().out
    assert "Continuing" not in printed
    assert (
        printed[printed.index("\nvalidation") :]
        == (finished.printed[finished.printed.index("\nvalidation") :])
    )
    for one, other in zip(model.weights, finished.model.weights, strict=True):
        if "seed" not in one.path:
            np.testing.assert_array_equal(np.array(one), np.array(other))
    after = contents(finished.directory)
    # A PNG file holds more than its picture; a second model made in this process has
    # another name.
    for files in before, after:
        del files["preset/config.json"], files["curves.png"]
    assert after == before
    assert {p: p.stat().st_mtime_ns for p in times} == times


def test_several_updates_in_a_call_are_the_same(config, finished):
    pretrain(dataclasses.replace(config, at_once=4))  # 3 at once, of intervals of 3
    assert_same_weights(Path(config.output), finished.directory)
    rows, expected = (
        read_metrics(Path(directory) / "metrics.csv")
        for directory in (config.output, finished.directory)
    )
    for row in (*rows, *expected):
        assert row.pop("seconds") > 0 and row.pop("tokens_per_second") > 0
    assert rows == expected


def test_interrupted_then_short_of_space_then_finished(
    config, finished, monkeypatch, capsys
):
    """Ctrl-C within an interval, then a full disk; the result is that of one run.

    But that one kept no presets on its way.
    """
    config = dataclasses.replace(config, keep_presets=3)
    directory = Path(config.output)
    monkeypatch.setattr("sys.argv", ["recipe.py", *command_line(config)])

    def ctrl_c(self, batch, logs=None):
        self.bar.update(1)
        if self.bar.n == 4:
            os.kill(os.getpid(), signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr(Progress, "on_train_batch_end", ctrl_c)
        with pytest.raises(SystemExit) as caught:
            main(config, "A recipe.")
    assert caught.value.code == 130
    printed = capsys.readouterr().out
    assert "Stopped and saved at step 4. Run the same command again" in printed
    assert Checkpoints(directory / "checkpoints").steps() == [3, 4]
    assert [row["step"] for row in read_metrics(directory / "metrics.csv")] == [3]
    assert not (directory / "preset").exists()

    before = contents(directory / "checkpoints")
    save = Checkpoints.save

    def save_on_a_full_disk(self, model, step, phase):
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, hard))
        try:
            save(self, model, step, phase)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    with monkeypatch.context() as patch:
        patch.setattr(Checkpoints, "save", save_on_a_full_disk)
        with pytest.raises(SystemExit) as caught:
            main(config, "A recipe.")
    assert re.match(
        "Error: Could not write .*step-000000006.npz: File too large. "
        "Mend that, then run the same command again. .*step-000000004.npz",
        str(caught.value.code),
    )
    assert contents(directory / "checkpoints") == before
    assert "Continuing at step 4." in capsys.readouterr().out

    main(config, "A recipe.")
    assert "Continuing at step 4." in capsys.readouterr().out
    assert_same_weights(directory, finished.directory)
    first, last = sorted((directory / "presets").iterdir())
    assert (first.name, last.name) == ("step-000000003", "step-000000006")
    for one, other, same in (first, last, False), (last, directory / "preset", True):
        a, b = (load_file(d / "generator/model.safetensors") for d in (one, other))
        assert all(np.array_equal(a[name], b[name]) for name in a) == same
    rows, expected = (
        read_metrics(d / "metrics.csv") for d in (directory, finished.directory)
    )
    assert [row["step"] for row in rows] == [3, 6]
    for name, value in expected[-1].items():
        if name.startswith("val_"):
            assert rows[-1][name] == value, name


@pytest.mark.parametrize("model", ["Electra", "MaskedLM"])
def test_a_non_finite_loss_leaves_no_checkpoint(config, tmp_path, model):
    handlers = [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)]
    changes = {"model": model, "learning_rate": 1e30, "interval": 1}
    config = dataclasses.replace(config, **changes)
    with pytest.raises(NonFiniteLossError, match="at step .*lower --learning_rate"):
        pretrain(config)
    assert [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)] == handlers
    # The warm-up's first update has rate 0; the second spoils the weights.
    checkpoints = Checkpoints(tmp_path / "run" / "checkpoints")
    assert checkpoints.steps() == [1]
    with np.load(checkpoints.path(1)) as archive:
        assert all(np.isfinite(archive[name]).all() for name in archive.files)
    assert not (tmp_path / "run" / "preset").exists()


# === --init_from ===


class Started(Exception):
    """Training would begin."""


@pytest.mark.parametrize("source", ["data", "corpus"])
def test_init_from_takes_weights_and_tokenizer_only(
    config, finished, prepared, corpus, source, monkeypatch
):
    preset = finished.directory / "preset"
    # Settings of the tokenizer that the preset overrules.
    changes = {"init_from": str(preset), "seed": 5, "vocabulary_size": 99}
    changes |= {"lowercase": False, "objective": {"mask_rate": 0.3}}
    if source == "corpus":
        changes |= {"data": None, "corpus": (corpus,), "workers": 1}
        changes |= {"validation_fraction": 0.1}
    started = []

    def fit(self, *args, **kwargs):
        started.append(self)
        raise Started

    monkeypatch.setattr(Electra, "fit", fit)
    with pytest.raises(Started):
        pretrain(dataclasses.replace(config, **changes))
    (model,) = started
    assert model.masker.mask_rate == 0.3
    assert model.tokenizer.fingerprint == prepared.tokenizer_fingerprint
    saved = load(preset)
    assert model.tokenizer.vocabulary == saved.vocabulary
    for one, other in zip(
        model.trainable_variables, finished.model.trainable_variables, strict=True
    ):
        np.testing.assert_array_equal(np.array(one), np.array(other))
    assert int(model.optimizer.iterations) == 0
    moments = [*model.optimizer._momentums, *model.optimizer._velocities]
    assert len(moments) == 2 * len(model.trainable_variables)
    assert not any(np.array(moment).any() for moment in moments)
    assert Checkpoints(Path(config.output) / "checkpoints").steps() == []


# === Other settings ===


def test_masked_lm_with_accumulation_average_and_bfloat16(config, monkeypatch):
    monkeypatch.setattr(pretraining.precision, "fastest", lambda: "mixed_bfloat16")
    config = dataclasses.replace(
        config,
        model="MaskedLM",
        accumulate=2,
        ema=0.5,
        dtype="auto",
        steps=3,
        interval=2,
    )
    model = pretrain(config)
    directory = Path(config.output)
    assert model.compute_dtype == "bfloat16"
    assert json.loads((directory / "run.json").read_text())["dtype"] != "auto"
    rows = read_metrics(directory / "metrics.csv")
    assert [row["step"] for row in rows] == [2, 3]
    assert int(model.optimizer.iterations) == 3
    # The result is the average, which the checkpoint holds beside the weights.
    assert Checkpoints(directory / "checkpoints").steps() == [2, 3]
    averages = model.optimizer._model_variables_moving_average
    for variable, average in zip(model.trainable_variables, averages, strict=True):
        np.testing.assert_array_equal(np.array(variable), np.array(average))
    with np.load(directory / "checkpoints" / "step-000000003.npz") as archive:
        changed = [
            not np.array_equal(archive[f"model/{name}"], np.array(v))
            for name, v in named_variables(model).items()
        ]
    assert any(changed)


def test_accumulation_changes_no_example_of_validation(config, prepared):
    def examples(accumulate):
        changes = {"batch_size": 8, "validation_batches": 1, "accumulate": accumulate}
        batches = validation_batches(prepared, dataclasses.replace(config, **changes))
        return np.concatenate([batch["token_ids"] for batch in batches])

    assert len(examples(1)) == 8
    np.testing.assert_array_equal(examples(4), examples(1))
