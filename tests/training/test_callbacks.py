import functools
import math
import os
import re
import signal
import time
from types import SimpleNamespace

import keras
import numpy as np
import pytest

from keras_corrupt.models import Electra, MaskedLM
from keras_corrupt.models.baselines import Unigram
from keras_corrupt.training import AdamW
from keras_corrupt.training.callbacks import (
    Intervals,
    NonFiniteLossError,
    Progress,
    RunLog,
    RunWarnings,
    read_metrics,
    validate,
)
from keras_corrupt.training.kept_presets import KeptPresets
from tests.conftest import make_inputs

pytestmark = pytest.mark.usefixtures("eager")

VALIDATION = [make_inputs(seed=1), make_inputs(seed=2)]


class Validation(keras.utils.PyDataset):
    def __init__(self):
        super().__init__()

    def __len__(self):
        return len(VALIDATION)

    def __getitem__(self, index):
        return (VALIDATION[index],)


def weights(model):
    return [np.array(v) for v in (*model.variables, *model.optimizer.variables)]


# === validate ===


def test_validation_is_repeatable_and_leaves_training_alone(sizes, inputs):
    sizes["discriminator"] |= {"num_layers": 1}
    model = Electra(**sizes)
    model.compile(optimizer=AdamW(1e-2), jit_compile=False)

    def train():
        model.fit(inputs, batch_size=6, epochs=1, shuffle=False, verbose=0)

    train()
    start = weights(model)
    train()
    expected = weights(model)
    for variable, value in zip(
        (*model.variables, *model.optimizer.variables), start, strict=True
    ):
        variable.assign(value)

    first = validate(model, Validation())
    assert first == validate(model, Validation())
    assert np.isfinite(list(first.values())).all()
    assert {"val_loss", "val_mlm_loss", "val_rtd_loss", "val_rtd_auc"} <= first.keys()
    # Without it, other masks and samples give other numbers.
    drawn = [model.evaluate(Validation(), return_dict=True, verbose=0)["mlm_loss"]]
    drawn.append(model.evaluate(Validation(), return_dict=True, verbose=0)["mlm_loss"])
    assert len({first["val_mlm_loss"], *drawn}) == 3

    for variable, value in zip(
        (*model.variables, *model.optimizer.variables), start, strict=True
    ):
        variable.assign(value)
    validate(model, Validation())
    train()
    for after, value in zip(weights(model), expected, strict=True):
        np.testing.assert_array_equal(after, value)


# === RunLog ===


def log_intervals(directory, step, steps, loss=1.0):
    log = RunLog(directory, step, tokens_per_step=10)
    log.set_params({"steps": 3})
    log.on_train_begin()
    log.on_epoch_begin(0)
    log.on_epoch_end(0)
    logs = {"loss": loss, "a_loss": np.float32(2.0), "learning_rate": 0.5}
    for done in steps:
        log.on_interval_end(done, logs)
    log.release()
    return log


def test_metrics_of_a_continued_run_have_each_step_once(tmp_path):
    # The row of step 6 was written, its checkpoint was not: the run goes on from 3.
    log_intervals(tmp_path, 0, [3, 6], loss=1.0)
    log_intervals(tmp_path, 3, [6, 9], loss=7.0)
    rows = read_metrics(tmp_path / "metrics.csv")
    assert [row["step"] for row in rows] == [3, 6, 9]
    assert [row["tokens"] for row in rows] == [30, 60, 90]
    assert [row["loss"] for row in rows] == [1.0, 7.0, 7.0]
    assert {row["learning_rate"] for row in rows} == {0.5}
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "metrics.csv",
        "tensorboard",
    ]


def test_seconds_go_on_from_the_earlier_attempt(tmp_path):
    (tmp_path / "metrics.csv").write_text("step,seconds\n3,100.5\n6,200.5\n")
    log = RunLog(tmp_path, 3, tokens_per_step=10)
    assert log.rows == [{"step": 3, "seconds": 100.5}]
    assert log.seconds == 100.5


def test_speed_is_of_training_alone(tmp_path, monkeypatch):
    clock = iter([0.0, 10.0, 14.0, 100.0])  # begun, interval begun, ended, validated
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    log = RunLog(tmp_path, 0, tokens_per_step=10, per_second={"peak_fraction": 0.5})
    log.set_params({"steps": 8})
    log.on_train_begin()
    log.on_epoch_begin(0)
    log.on_epoch_end(0)
    log.on_interval_end(8, {"loss": 1.0, "learning_rate": 0.5})
    log.release()
    (row,) = read_metrics(tmp_path / "metrics.csv")
    assert row["tokens_per_second"] == 20 and row["peak_fraction"] == 1.0
    assert row["seconds"] == 100.0


def test_columns_that_earlier_rows_lack_are_nan(tmp_path):
    (tmp_path / "metrics.csv").write_text("step,seconds,old_loss\n3,1.5,2.0\n")
    log_intervals(tmp_path, 3, [6])
    first, second = read_metrics(tmp_path / "metrics.csv")
    assert first["old_loss"] == 2.0 and math.isnan(first["tokens_per_second"])
    assert math.isnan(second["old_loss"]) and second["tokens_per_second"] > 0


def test_no_metrics_file_is_no_rows(tmp_path):
    assert read_metrics(tmp_path / "metrics.csv") == []


# === Progress ===


def test_progress_has_the_last_intervals_vital_metrics():
    shown = []
    progress = Progress(0, 10, vital=("rtd_auc", "token_spread"))
    progress.bar = SimpleNamespace(
        n=1,
        update=lambda n: True,
        set_postfix=lambda terms, refresh: shown.append(terms),
    )
    progress.on_train_batch_end(0, {"loss": 1.0})
    logs = {"loss": 2.0, "gradient_norm": 3.0, "val_loss": 4.0, "val_rtd_auc": 0.75}
    progress.on_interval_end(1, logs)
    progress.on_train_batch_end(1, {"loss": 1.5})
    assert shown == [
        {"loss": "1.000"},
        {"loss": "1.500", "gradient_norm": "3.000", "rtd_auc": "0.750"},
    ]


# === RunWarnings ===

UNIGRAM = Unigram(6.0, 0.05)
GOOD = {
    "val_rtd_auc": 0.9,
    "val_rtd_recall": 0.4,
    "val_mlm_loss": 3.0,
    "val_sampled_accuracy": 0.5,
    "val_replaced_fraction": 0.07,
}


@pytest.fixture
def electra(sizes):
    return Electra(**sizes)


@pytest.mark.parametrize(
    "change, said",
    [
        ({"val_rtd_auc": 0.52}, r"AUC 0\.52, recall 0\.40.*--learning_rate"),
        ({"val_mlm_loss": 6.5}, r"loss 6\.50.*token frequencies \(6\.00\)"),
        ({"val_sampled_accuracy": 0.9}, r"restores most.*0\.070 of all.*mask_rate"),
    ],
)
def test_warns_once_with_a_remedy(electra, change, said, capsys):
    rows = [GOOD | change | {"step": 10}]
    warnings = RunWarnings(
        lambda metrics: electra.objectives.warnings(metrics, UNIGRAM),
        total=100,
        rows=rows,
    )
    warnings.on_interval_end(20, GOOD | change)  # normal so early
    assert capsys.readouterr().err == ""
    warnings.on_interval_end(60, GOOD | change)
    text = capsys.readouterr().err.replace("\n", " ")
    assert text.count("Warning") == 1
    assert re.search(said, text)
    warnings.on_interval_end(70, GOOD | change)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    "step, loss, warned",
    [(60, 7.0, True), (60, 6.5, False), (60, 6.99, True), (100, 6.5, True)],
)
def test_warns_of_what_no_longer_learns(electra, step, loss, warned, capsys):
    """A loss that falls may still get below that of token frequencies."""
    rows = [{"step": 40, "val_mlm_loss": 7.1}, {"step": 50, "val_mlm_loss": 7.0}]
    warn = functools.partial(electra.objectives.warnings, unigram=UNIGRAM)
    metrics = GOOD | {"val_mlm_loss": loss}
    RunWarnings(warn, 100, rows).on_interval_end(step, metrics)
    assert ("token frequencies" in capsys.readouterr().err) == warned


def test_says_nothing_of_a_good_run_or_of_a_masked_lm(electra, sizes, capsys):
    masked_lm = MaskedLM(sizes["discriminator"], mask_id=4, unmaskable_ids=(0, 2, 3))
    for model, metrics in (electra, GOOD), (masked_lm, {"val_mlm_loss": 3.0}):
        warn = functools.partial(model.objectives.warnings, unigram=UNIGRAM)
        rows = [metrics | {"step": 50}]
        RunWarnings(warn, total=100, rows=rows).on_interval_end(60, metrics)
    assert capsys.readouterr().err == ""


# === Intervals ===


class Saved:
    """Stands for `Checkpoints`."""

    def __init__(self):
        self.done = []

    def save(self, model, step, phase):
        self.done.append(step)

    def steps(self):
        return self.done


@pytest.fixture
def intervals():
    # A test run in the background may have begun with the signal ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    callback = Intervals(Saved(), 10, validate=None, listeners=[])
    optimizer = SimpleNamespace(learning_rate=0.5)
    callback.set_model(SimpleNamespace(stop_training=False, optimizer=optimizer))
    callback.set_params({"steps": 3})
    callback.on_train_begin()
    callback.on_epoch_begin(0)
    yield callback
    callback.release()
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_after_a_whole_step(intervals, number):
    intervals.on_train_batch_end(0)
    os.kill(os.getpid(), number)
    assert intervals.interrupted
    assert not intervals.model.stop_training
    intervals.on_train_batch_end(1)
    assert intervals.model.stop_training
    intervals.on_epoch_end(0, {"loss": 1.0})
    assert intervals.checkpoints.done == [12]


def test_processes_stop_at_the_same_step(intervals):
    """Another one was asked to; all ask at every tenth step."""
    asked = []
    intervals.distribution = SimpleNamespace(
        processes=2, any=lambda flag: asked.append(flag) or True
    )
    for batch in range(10):  # from step 10 on
        assert not intervals.model.stop_training
        intervals.on_train_batch_end(batch)
    assert intervals.model.stop_training
    assert (intervals.step, asked) == (20, [False])


def test_several_updates_of_a_call_are_counted(intervals):
    asked = []
    intervals.distribution = SimpleNamespace(processes=2, any=asked.append)
    intervals.on_train_batch_end(3)
    intervals.on_train_batch_end(7)
    assert (intervals.step, asked) == (18, [])
    intervals.on_train_batch_end(11)
    assert (intervals.step, asked) == (22, [False])


@pytest.mark.parametrize("batches, rows", [(2, []), (3, [13])])
def test_only_a_complete_interval_gets_a_row(intervals, batches, rows):
    seen = []
    listener = SimpleNamespace(on_interval_end=lambda step, logs: seen.append(step))
    intervals.listeners = [listener]
    intervals.validate = lambda model: {"val_loss": 1.0}
    for batch in range(batches):
        if batch == batches - 1:
            os.kill(os.getpid(), signal.SIGINT)
        intervals.on_train_batch_end(batch)
    assert intervals.model.stop_training
    intervals.on_epoch_end(0, {"loss": 1.0})
    assert seen == rows
    assert intervals.checkpoints.done == [10 + batches]


def test_the_second_ctrl_c_breaks_off(intervals):
    os.kill(os.getpid(), signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)


def test_signals_are_ours_only_while_training():
    before = [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)]
    callback = Intervals(Saved(), 0, validate=None, listeners=[])
    callback.on_train_begin()
    assert signal.getsignal(signal.SIGTERM) == callback._interrupt
    callback.release()
    assert [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)] == before


@pytest.mark.parametrize("loss", [math.nan, math.inf])
def test_a_non_finite_loss_is_not_saved(intervals, loss):
    intervals.checkpoints.done = [8]
    intervals.on_train_batch_end(0)
    remedy = "step 11.*not saved.*--learning_rate.*float32.*checkpoint is of step 8"
    with pytest.raises(NonFiniteLossError, match=remedy):
        intervals.on_epoch_end(0, {"loss": loss})
    assert intervals.checkpoints.done == [8]


# === Progress ===


def test_progress_counts_updates_of_the_whole_run(capsys):
    progress = Progress(step=4, total=10)
    progress.on_train_begin()
    for batch in (1, 2):  # the last updates of two calls
        progress.on_train_batch_end(batch, {"loss": 1.0, "mlm_accuracy": 0.5})
    assert (progress.bar.n, progress.bar.total) == (7, 10)
    progress.release()
    assert "7/10" in capsys.readouterr().err


def test_compiling_does_not_count_as_a_step():
    progress = Progress(step=0, total=10)
    progress.on_train_begin()
    start = progress.bar.start_t
    time.sleep(0.05)
    progress.on_train_batch_end(0)
    compiled = progress.bar.start_t
    time.sleep(0.01)
    progress.on_train_batch_end(1)
    assert start + 0.05 <= compiled == progress.bar.start_t
    progress.release()


# === KeptPresets ===


def test_a_kept_model_is_the_average_and_training_goes_on(sizes, inputs, tmp_path):
    model = Electra(**sizes)
    optimizer = AdamW(1e-2, use_ema=True, ema_momentum=0.5)
    model.compile(optimizer=optimizer, jit_compile=False)
    model.train_on_batch(inputs)
    model.train_on_batch(inputs)
    averages = [np.array(v) for v in optimizer._model_variables_moving_average]
    before = weights(model)
    kept = KeptPresets(model, tmp_path, keeps=lambda step: step == 4)
    for step in (2, 4, 6):
        kept.on_interval_end(step, {})
    for one, other in zip(weights(model), before, strict=True):
        np.testing.assert_array_equal(one, other)
    assert [path.name for path in tmp_path.iterdir()] == ["step-000000004"]
    loaded = Electra.from_preset(tmp_path / "step-000000004")
    for variable, average in zip(loaded.trainable_variables, averages, strict=True):
        np.testing.assert_array_equal(np.array(variable), average)
