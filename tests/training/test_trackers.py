"""Services that follow a run, of which fake modules keep what they are sent."""

import sys
import types

import keras
import numpy as np
import pytest

from keras_corrupt.devices.batches import Batches
from keras_corrupt.training import loop
from keras_corrupt.training.callbacks import read_metrics
from keras_corrupt.training.checkpoint import Checkpoints
from keras_corrupt.training.config import PretrainConfig
from keras_corrupt.training.pretraining import pretrain
from keras_corrupt.training.trackers import Mlflow, Tracker, Wandb, following


class FakeWandb(types.ModuleType):
    def __init__(self):
        super().__init__("wandb")
        self.inits, self.rows, self.ends, self.broken = [], [], [], False

    def init(self, **options):
        self.inits.append(options)
        self.id = options["id"] or f"run-{len(self.inits)}"
        return self

    def define_metric(self, name, step_metric=None):
        pass

    def log(self, row):
        if self.broken:
            raise ConnectionError("no network")
        self.rows.append((self.id, row))

    def finish(self, exit_code):
        self.ends.append(exit_code)


class FakeMlflow(types.ModuleType):
    def __init__(self):
        super().__init__("mlflow")
        self.experiments, self.uris, self.rows, self.ends = [], [], [], []
        self.params, self.runs = [], []
        self.set_experiment, self.set_tracking_uri = (
            self.experiments.append,
            self.uris.append,
        )
        self.log_params, self.end_run = self.params.append, self.ends.append

    def start_run(self, run_id, run_name):
        self.runs.append((run_id, run_name))
        self.id = run_id or f"run-{len(self.runs)}"
        return types.SimpleNamespace(info=types.SimpleNamespace(run_id=self.id))

    def log_metrics(self, metrics, step):
        self.rows.append((self.id, {"step": step, **metrics}))


@pytest.fixture
def services(monkeypatch):
    """Returns the fake modules, which are imported instead of the real ones."""
    fakes = FakeWandb(), FakeMlflow()
    for fake in fakes:
        monkeypatch.setitem(sys.modules, fake.__name__, fake)
    return fakes


class Small(keras.Model):
    def __init__(self):
        super().__init__()
        self.dense = keras.layers.Dense(1)

    def call(self, inputs):
        return self.dense(inputs)


def train(directory, steps=6):
    """Trains a small model in a directory, followed by both services."""
    keras.utils.set_random_seed(0)
    model = Small()
    model(np.ones((2, 1)))
    model.compile("sgd", "mse")
    model.optimizer.build(model.trainable_variables)
    batches = Batches(lambda number: (np.ones((2, 1)), np.ones((2, 1))))
    asked = types.SimpleNamespace(wandb="news", mlflow="http://host:5000")
    directory.mkdir(exist_ok=True)
    with following(asked, directory, {"model": {"size": 1}, "seed": 7}) as trackers:
        loop.train(
            model,
            lambda step: batches,
            lambda model: {"val_loss": 0.5},
            Checkpoints(directory / "checkpoints"),
            output=directory,
            steps=steps,
            interval=3,
            tokens_per_step=10,
            trackers=trackers,
        )


def test_a_run_and_its_continuation_are_one_run_of_each_service(
    services, tmp_path, monkeypatch
):
    def crash(*_):
        raise OSError("the machine crashes")

    directory = tmp_path / "run"
    with monkeypatch.context() as broken:
        broken.setattr(Checkpoints, "save", crash)
        with pytest.raises(OSError, match="crashes"):
            train(directory)
    train(directory)
    wandb, mlflow = services
    assert wandb.ends == [1, 0] and mlflow.ends == ["FAILED", "FINISHED"]
    rows = read_metrics(directory / "metrics.csv")
    assert [row["step"] for row in rows] == [3, 6] and rows[1]["tokens"] == 60
    for service in services:
        assert {run for run, _ in service.rows} == {"run-1"}
        # The first row came twice, for no checkpoint followed it.
        sent = [row for _, row in service.rows]
        assert sent[0]["step"] == 3 and sent[1:] == [pytest.approx(row) for row in rows]

    first, second = wandb.inits
    assert first["project"] == "news" and first["name"] == "run"
    assert first["config"] == {"model": {"size": 1}, "seed": 7}
    assert second["id"] == "run-1" and "config" not in second
    assert mlflow.uris == ["http://host:5000"] * 2 and not mlflow.experiments
    assert mlflow.runs == [(None, "run"), ("run-1", None)]
    assert mlflow.params == [{"model.size": 1, "seed": 7}]


def test_pretraining_is_followed(services, tmp_path):
    wandb, _ = services
    config = PretrainConfig(
        *("Electra", "tiny", str(tmp_path / "run"), ("python-docs",)),
        wandb="news",
        smoke=True,
    )
    pretrain(config)
    rows = read_metrics(tmp_path / "run" / "metrics.csv")
    assert [row for _, row in wandb.rows] == [pytest.approx(row) for row in rows]
    (options,) = wandb.inits
    assert options["config"]["batch_size"] == 8
    assert wandb.ends == [0]


def test_experiments_are_named(services, tmp_path):
    _, mlflow = services
    Tracker(Mlflow("news"), tmp_path, {}).start()
    assert mlflow.experiments == ["news"] and not mlflow.uris


def test_a_failing_service_is_warned_of_once_and_gets_the_rows_later(
    services, tmp_path, capsys
):
    wandb, _ = services
    tracker = Tracker(Wandb("news"), tmp_path, {})
    tracker.start()
    tracker.log({"step": 1})
    wandb.broken = True
    tracker.log({"step": 2})
    tracker.log({"step": 3})
    error = capsys.readouterr().err
    assert error.count("Warning: --wandb does not follow this run (ConnectionError: no")
    assert error.count("Warning") == 1
    wandb.broken = False
    tracker.log({"step": 4})
    assert [row["step"] for _, row in wandb.rows] == [1, 2, 3, 4]
    assert not capsys.readouterr().err


def test_a_service_that_cannot_start_is_left_alone(services, tmp_path, capsys):
    wandb, _ = services
    wandb.init = None
    tracker = Tracker(Wandb("news"), tmp_path, {})
    tracker.start()
    tracker.log({"step": 1})
    tracker.finish(True)
    assert capsys.readouterr().err.count("Warning: --wandb") == 1
    assert not wandb.rows and not wandb.ends and not [*tmp_path.iterdir()]


@pytest.mark.parametrize("name", ["wandb", "mlflow"])
def test_a_missing_library_is_named_before_any_work(name, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, name, None)
    config = PretrainConfig(
        "Electra", "tiny", str(tmp_path / "run"), smoke=True, **{name: "news"}
    )
    with pytest.raises(ValueError, match=rf"--{name} .*pip install -e '\.\[{name}\]'"):
        pretrain(config)
    assert not (tmp_path / "run").exists()
