import contextlib
import csv
import dataclasses
import hashlib
import io
import json
import os
import re
import resource
import signal

import keras
import matplotlib.image
import numpy as np
import pytest
from safetensors.numpy import load_file

from keras_corrupt.data.prepare import prepare_dataset
from keras_corrupt.models import Electra, MaskedLM, Teams
from keras_corrupt.models.baselines import Unigram
from keras_corrupt.models.named_variables import named_variables
from keras_corrupt.tokenizers import load
from keras_corrupt.training import (
    Checkpoints,
    PretrainConfig,
    loop,
    main,
    pretrain,
    report,
    runner,
)
from keras_corrupt.training.callbacks import (
    NonFiniteLossError,
    Progress,
    read_metrics,
)
from keras_corrupt.training.run_directory import locked

#: A preset that takes seconds, in the place of `tiny`.
ENCODER = {
    "vocabulary_size": 120,
    "num_layers": 1,
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_heads": 2,
    "max_length": 40,
}
ELECTRA = {
    "discriminator": ENCODER,
    "generator": {"hidden_size": 8, "intermediate_size": 16, "num_heads": 1},
    "mask_rate": 0.15,
}


@pytest.fixture(scope="module", autouse=True)
def presets():
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(Electra.presets, "tiny", ELECTRA)
        patch.setitem(MaskedLM.presets, "tiny", {"encoder": ENCODER, "mask_rate": 0.15})
        yield


@pytest.fixture(scope="module")
def recipe(prepared):
    """Six steps in two intervals, of 16 x 32 tokens."""
    return PretrainConfig(
        model="Electra",
        preset="tiny",
        output="",
        data=str(prepared.directory),
        sequence_length=32,
        batch_size=16,
        steps=6,
        learning_rate=1e-2,
        warmup_steps=1,
        interval=3,
        validation_batches=2,
        objective={"mask_rate": 0.2},
    )


@pytest.fixture
def config(recipe, tmp_path):
    return dataclasses.replace(recipe, output=str(tmp_path / "run"))


@dataclasses.dataclass
class Run:
    """What a finished run returned, printed and wrote."""

    config: PretrainConfig
    model: Electra
    printed: str
    directory: os.PathLike


@pytest.fixture(scope="module")
def finished(recipe, tmp_path_factory):
    directory = tmp_path_factory.mktemp("finished") / "run"
    config = dataclasses.replace(recipe, output=str(directory))
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        model = pretrain(config)
    return Run(config, model, printed.getvalue(), directory)


def command_line(config):
    """The flags that make a recipe run `config`."""
    flags = [f"--output={config.output}"]
    return flags + ["--data", config.data] if config.data else flags


def weights_of(directory):
    """All arrays of a run's preset and of its last checkpoint."""
    arrays = {}

    for path in sorted((directory / "preset").glob("*/model.safetensors")):
        for name, array in load_file(path).items():
            arrays[f"{path.parent.name}/{name}"] = array
    last = sorted((directory / "checkpoints").iterdir())[-1]
    with np.load(last) as archive:
        arrays |= {f"{last.name}/{name}": archive[name] for name in archive.files}
    return arrays


def assert_same_weights(one, other):
    a, b = weights_of(one), weights_of(other)
    assert a.keys() == b.keys() and len(a) > 50
    for name, array in a.items():
        np.testing.assert_array_equal(array, b[name], err_msg=name)


def contents(directory):
    return {
        str(path.relative_to(directory)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in directory.rglob("*")
        if path.is_file()
    }


# === Bad input: an error before long work, and nothing written ===


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"preset": "huge"}, r"--preset huge: unknown; known are tiny, small, base"),
        ({"data": None}, "what to train on: --corpus .* or --data"),
        ({"data": "absent"}, "absent: holds no dataset.json.*Prepare it with"),
        (
            {"objective": {"mask_rate": 0.0}},
            "mask_rate` must lie.*got 0.0",
        ),
        (
            {"objective": {"mask_rate": 1.0}},
            "mask_rate` must lie.*got 1.0",
        ),
        (
            {"objective": {"mask_rate": "x"}},
            "mask_rate` must lie.*got 'x'",
        ),
        (
            {"objective": {"mask_rat": 0.15}},
            "'mask_rat'. The nearest are mask_rate",
        ),
        (
            {"objective": {"generator": {"layers": 1}}},
            "no option 'generator.layers'.*generator.num_layers",
        ),
        ({"objective": {"generator": 3}}, "'generator'.*is a network.*not 3"),
        ({"model": "Electric"}, "'Electric' is none of the known.*Electra, MaskedLM"),
        ({"model": "absent:Own"}, "'absent:Own' cannot be imported: No module"),
        ({"model": "math:sqrt"}, "'math:sqrt' is none of the known"),
        ({"objective": {"tied_embeddings": "x"}}, "token_and_position.*got 'x'"),
        ({"sequence_length": 41}, "--sequence_length 41 is longer than the 40 pos"),
        ({"sequence_length": 16}, "up to 32 tokens, more than max_length=16.*again"),
        ({"accumulate": 3}, "--batch_size 16 is not divisible by --accumulate 3"),
        ({"warmup_steps": 6}, "--warmup_steps 6 must be less than --steps 6"),
        ({"steps": 0}, "--steps must be at least 1"),
        ({"interval": 0}, "--interval must be at least 1"),
        ({"ema": 1.0}, r"--ema 1\.0 must be at least 0 and less than 1"),
        ({"init_from": "absent"}, "'absent'.*nor a directory"),
    ],
)
def test_bad_settings(config, tmp_path, changes, message):
    with pytest.raises(ValueError, match=message):
        pretrain(dataclasses.replace(config, **changes))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"corpus": ("{here}/empty.txt",)}, "empty.txt|no document|no text"),
        ({"corpus": ("{here}/absent*.txt",)}, r"absent\*\.txt"),
        ({"vocabulary": "{here}"}, "(?i)director"),
        ({"vocabulary": "{here}/vocab.txt"}, r"\[MASK\]"),
        ({"vocabulary": "{here}/absent.txt"}, "absent.txt"),
        ({"sequence_length": 2}, "max_length=2"),
    ],
)
def test_bad_corpus_or_vocabulary(config, tmp_path, corpus, changes, message):
    here = tmp_path / "here"
    here.mkdir()
    (here / "empty.txt").write_text("")
    (here / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\nthe\n")
    before = contents(tmp_path)
    placed = json.loads(json.dumps(changes).replace("{here}", str(here)))
    config = dataclasses.replace(config, data=None, corpus=(corpus,), workers=1)
    config = dataclasses.replace(config, **placed)
    with pytest.raises((ValueError, OSError), match=message):
        pretrain(config)
    assert contents(tmp_path) == before
    assert not os.path.exists(config.output)


def test_data_of_another_vocabulary_than_init_from(
    config, corpus, settings, finished, tmp_path
):
    other = tmp_path / "other"
    prepare_dataset(corpus, other, **settings | {"vocabulary_size": 100})
    config = dataclasses.replace(
        config, data=str(other), init_from=str(finished.directory / "preset")
    )
    with pytest.raises(ValueError, match="another vocabulary.*Prepare it anew"):
        pretrain(config)
    assert not os.path.exists(config.output)


def test_sequences_longer_than_the_positions_of_init_from(config, finished):
    config = dataclasses.replace(
        config, sequence_length=41, init_from=str(finished.directory / "preset")
    )
    with pytest.raises(ValueError, match="41 is longer than the 40 positions"):
        pretrain(config)
    assert not os.path.exists(config.output)


def test_output_with_foreign_files_is_left_alone(config, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "thesis.tex").write_text("important")
    before = contents(tmp_path)
    with pytest.raises(ValueError, match="not the directory of a run.*new one"):
        pretrain(config)
    assert contents(tmp_path) == before
    with pytest.raises(ValueError, match="not the directory of a run"):
        pretrain(dataclasses.replace(config, output=f"{config.output}/thesis.tex"))
    assert contents(tmp_path) == before


def test_output_with_another_run_lists_each_difference(finished):
    before = contents(finished.directory)
    other = dataclasses.replace(
        finished.config, learning_rate=1e-3, steps=7, objective={"mask_rate": 0.25}
    )
    with pytest.raises(ValueError) as caught:
        pretrain(other)
    message = str(caught.value)
    assert "learning_rate: was 0.01, asked 0.001" in message
    assert "steps: was 6, asked 7" in message
    assert "objective: was {'mask_rate': 0.2}, asked {'mask_rate': 0.25}" in message
    assert message.count(": was ") == 3
    assert "delete it" in message
    assert contents(finished.directory) == before


def test_output_where_another_process_trains(finished):
    with locked(finished.directory):
        with pytest.raises(ValueError, match="Another process is training in"):
            pretrain(finished.config)
    pretrain(finished.config)  # free again


def test_no_other_process_can_train_where_one_does(config, monkeypatch):
    def second(*_, **__):
        pretrain(config)

    monkeypatch.setattr(loop, "train", second)
    with pytest.raises(ValueError, match="Another process is training in"):
        pretrain(config)


@pytest.mark.parametrize("flags", [["--nonsense", "1"], ["--steps", "many"]])
def test_a_flag_that_is_none_exits_with_2(config, tmp_path, monkeypatch, capsys, flags):
    monkeypatch.setattr("sys.argv", ["recipe.py", *command_line(config), *flags])
    with pytest.raises(SystemExit) as caught:
        main(config, "A recipe.")
    assert caught.value.code == 2
    assert flags[0] in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_errors_reach_the_command_line_in_one_line(config, tmp_path, monkeypatch):
    flags = [*command_line(config), "--accumulate", "3"]
    monkeypatch.setattr("sys.argv", ["recipe.py", *flags])
    with pytest.raises(SystemExit, match="^Error: --batch_size 16 is not divisible"):
        main(config, "A recipe.")
    assert list(tmp_path.iterdir()) == []


def test_warns_of_far_fewer_tokens_than_the_recipe(config, monkeypatch, capsys):
    seen = []
    monkeypatch.setattr(runner, "pretrain", lambda config: seen.append(config) or 1)

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
    monkeypatch.setattr(Electra, "metric_names", names)
    with pytest.raises(ValueError, match="Electra.metric_names has rtd_acu, which are"):
        pretrain(config)
    assert not os.path.exists(config.output)


def test_closing_table_has_the_chance_of_selecting_right():
    model = Teams(ENCODER, generator_layers=1, mask_id=4, unmaskable_ids=(0, 2, 3))
    metrics = dict.fromkeys(model.metric_names, 0.5) | {"replaced_fraction": 0.1}
    lines = report.table(model, metrics, Unigram(7.0, 0.05)).splitlines()
    assert (
        lines[-1].split() == "multi-word selection accuracy 0.500 0.167 chance".split()
    )
    assert lines[1].split() == "masked LM loss (nats) 0.500 7.000 unigram".split()
    assert len(lines) == 1 + len(model.metric_names)


def test_metrics_and_tensorboard_agree(finished):
    with open(finished.directory / "metrics.csv", newline="") as file:
        columns = next(csv.reader(file))
    terms = [
        "loss",
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
        *("step", "tokens", "seconds", "learning_rate"),
        *terms,
        *(f"val_{term}" for term in terms),
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
    assert loaded.mask_rate == 0.2
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


def test_interrupted_then_short_of_space_then_finished(
    config, finished, monkeypatch, capsys
):
    """Ctrl-C within an interval, then a full disk; the result is that of one run."""
    directory = runner.Path(config.output)
    monkeypatch.setattr("sys.argv", ["recipe.py", *command_line(config)])

    def ctrl_c(self, batch, logs=None):
        if batch == 0 and self.batches == 4 - 1:
            os.kill(os.getpid(), signal.SIGINT)
        self.batches += 1

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
        "Error: Could not write the checkpoint .*step-000000006.npz: File too large. "
        "Free space .* run the same command again .*step-000000004.npz",
        str(caught.value.code),
    )
    assert contents(directory / "checkpoints") == before
    assert "Continuing at step 4." in capsys.readouterr().out

    main(config, "A recipe.")
    assert "Continuing at step 4." in capsys.readouterr().out
    assert_same_weights(directory, finished.directory)
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
    assert model.mask_rate == 0.3
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
    assert Checkpoints(runner.Path(config.output) / "checkpoints").steps() == []


def test_init_from_refuses_a_preset_of_another_class(config, finished):
    config = dataclasses.replace(
        config, model="MaskedLM", init_from=str(finished.directory / "preset")
    )
    with pytest.raises(ValueError, match="a preset of Electra, not of MaskedLM"):
        pretrain(config)
    assert not os.path.exists(config.output)


# === Other settings ===


def test_masked_lm_with_accumulation_average_and_bfloat16(config):
    config = dataclasses.replace(
        config,
        model="MaskedLM",
        accumulate=2,
        ema=0.5,
        dtype="mixed_bfloat16",
        steps=3,
        interval=2,
    )
    model = pretrain(config)
    directory = runner.Path(config.output)
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
