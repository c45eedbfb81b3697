"""Training of one model, of one task or several, that goes on where it was stopped."""

import json
import math
import time

import keras

from keras_corrupt.downstream.finetuner import fit
from keras_corrupt.downstream.optimizer import compiled, set_back
from keras_corrupt.files.whole import write_whole
from keras_corrupt.multitask.annealing import gold_weight
from keras_corrupt.multitask.multi_task_model import MultiTaskModel
from keras_corrupt.presets.registry import registered_name
from keras_corrupt.training.checkpoint import CheckpointError, Checkpoints
from keras_corrupt.training.compiling import compiles_with_xla
from keras_corrupt.training.out_of_memory import (
    memory_remedies,
    of_fine_tuning,
)


class Trainer:
    """Trains models of the same tasks with the same settings, seed after seed.

    Args:
        finetuners: Name of a task -> its `Finetuner`, which has its examples and tells
            its scores.
        strategy: A `Strategy`.
        settings: `FineTuningSettings`.
        config: A `MultiTaskConfig`.
        soft_targets: Name of a task -> what its teachers put out: `teacher_outputs`.
    """

    def __init__(self, finetuners, strategy, settings, config, soft_targets=None):
        self.finetuners = finetuners
        self.strategy = strategy
        self.settings = settings
        self.config = config
        self.soft_targets = soft_targets
        self.features = {n: f.train_features for n, f in finetuners.items()}
        count = sum(map(len, self.features.values()))
        self.steps_per_epoch = -(-count // settings.batch_size)
        self.model = None

    def new_model(self, preset, seed):
        """Returns the model before training: one for all seeds, set back."""
        keras.utils.set_random_seed(seed)
        any_task = next(iter(self.finetuners.values()))
        fresh = MultiTaskModel.from_preset(
            preset,
            load_weights=self.config.load_weights or self.strategy.start is not None,
            max_length=any_task.max_length,
            dropout=self.settings.dropout,
            dtype=self.config.dtype,
            tasks={
                name: {
                    "class": registered_name(finetuner.model_class),
                    **finetuner.task.model_arguments,
                }
                for name, finetuner in self.finetuners.items()
            },
        )
        for part in fresh.parts:
            part.jit_compile = compiles_with_xla()
        compiled(fresh, self.settings, self.steps_per_epoch)
        if self.model is None:
            self.model = fresh
        set_back(self.model, fresh)
        return self.model

    def train(self, preset, seed, folder, identity):
        """Trains a model, from the last checkpoint on if there is one.

        Args:
            preset: Where it starts.
            seed: The run's.
            folder: A `Path`, of checkpoints; to be removed once the run's result is
                kept.
            identity: All that decides the run, as JSON holds it.

        Returns:
            The model, and a dict: `curve` and `train_seconds`.

        Raises:
            ValueError: The checkpoints are another run's.
            OutOfMemoryError: A step needs more memory than there is.
        """
        model = self.new_model(preset, seed)
        checkpoints = Checkpoints(
            folder,
            keep=1,
            # The heads' variables are numbered in the tasks' order.
            data=json.dumps([[*self.finetuners], identity], sort_keys=True),
            data_is="examples or settings",
        )
        try:
            epochs_done = checkpoints.restore(model)
        except CheckpointError as error:
            raise ValueError(f"{error} Or delete {folder}.") from error
        progress = folder / "progress.json"
        curve = json.loads(progress.read_text())[:epochs_done] if epochs_done else []
        for epoch in range(epochs_done, self.settings.epochs):
            batches = model.batches(
                self.features,
                self.settings.batch_size,
                seed,
                exponent=self.strategy.exponent,
                soft_targets=self.soft_targets,
                gold_weight=self.gold_weight,
                first_pass=epoch,
            )
            start = time.perf_counter()
            with memory_remedies(self.shortage, model):
                loss = fit(model, batches, f"seed {seed}, epoch {epoch + 1}")
            seconds = time.perf_counter() - start
            curve.append({"epoch": epoch + 1, "loss": loss, "seconds": seconds})
            if not math.isfinite(loss):
                # Nothing can be read off such a model; it counts as not trained.
                model = self.new_model(preset, seed)
                break
            if self.settings.report == "best":
                curve[-1]["score"] = self.score(self.outputs(model, dev_only=True))
                if curve[-1]["score"] == max(point["score"] for point in curve):
                    model.save_to_preset(folder / "best")
            if epoch + 1 < self.settings.epochs:
                folder.mkdir(parents=True, exist_ok=True)
                write_whole(progress, json.dumps(curve))
                checkpoints.save(model, epoch + 1)
        if (folder / "best").is_dir():
            best = MultiTaskModel.from_preset(folder / "best")
            model.set_weights(best.get_weights())
        return model, {
            "curve": curve,
            "train_seconds": sum(point["seconds"] for point in curve),
        }

    def shortage(self, model):
        """Returns what to say where memory does not suffice."""
        any_task = next(iter(self.finetuners.values()))
        length = any_task.max_length or model.encoder.max_length
        flag = "--multi_settings" if self.strategy.multi else "--settings"
        return of_fine_tuning(model, self.settings.batch_size, length, flag)

    def gold_weight(self, step):
        """Returns the labels' share after so many updates."""
        steps = self.steps_per_epoch * self.settings.epochs
        return gold_weight(step, steps, self.strategy.gold_weight)

    def outputs(self, model, dev_only=False):
        """Returns task -> split -> what the model puts out, all but for training."""
        return {
            name: {
                split: model.part(name).outputs(features)
                for split, features in finetuner.features.items()
                if split == finetuner.dev or not dev_only
            }
            for name, finetuner in self.finetuners.items()
        }

    def metrics(self, outputs):
        """Returns task -> split -> metrics, of the splits that have labels."""
        return {
            name: {
                split: finetuner.metrics(self.model.part(name), split, rows)
                for split, rows in outputs[name].items()
                if finetuner.splits[split].labels is not None
            }
            for name, finetuner in self.finetuners.items()
        }

    def scores(self, metrics):
        """Returns task -> its main metric on the development set."""
        return {
            name: metrics[name][finetuner.dev][finetuner.task.main_metric]
            for name, finetuner in self.finetuners.items()
        }

    def score(self, outputs):
        """Returns the mean of all tasks' scores."""
        scores = self.scores(self.metrics(outputs))
        return sum(scores.values()) / len(scores)
