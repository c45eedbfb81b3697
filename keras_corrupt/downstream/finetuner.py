"""The runs of one task: training, scores, the files that they leave."""

import copy
import dataclasses
import functools
import itertools
import json
import math
import statistics
import time
from pathlib import Path

import keras
import numpy as np
from tqdm import tqdm

from keras_corrupt.downstream import kept_results, results
from keras_corrupt.downstream.kinds import model_class
from keras_corrupt.downstream.optimizer import compiled, set_back
from keras_corrupt.files.whole import whole_file
from keras_corrupt.models.fine_tuning import size_of
from keras_corrupt.models.pretrainer import Pretrainer
from keras_corrupt.presets.registry import find_class
from keras_corrupt.tasks.task import check_name, describe_skipped, describe_unseen
from keras_corrupt.tokenizers.lost_text import describe_lost
from keras_corrupt.training.out_of_memory import (
    memory_remedies,
    of_fine_tuning,
)


class Finetuner:
    """Runs one task with one configuration.

    Args:
        task: A `Task`.
        config: A `FinetuneConfig`.

    Raises:
        ValueError: The task or the configuration cannot work. Nothing was written.
    """

    def __init__(self, task, config):
        check_name(task.name)
        self.config = config
        self.model_class = model_class(task)
        if config.ensemble and not self.model_class.can_average:
            raise ValueError(
                f"Ensembles are of classifiers and taggers, not of "
                f"{self.model_class.__name__}; leave out `ensemble`."
            )
        limits = {"train": config.max_train_examples, "dev": config.max_dev_examples}
        self.task = copy.copy(task)
        self.task.splits = self.splits = {
            name: split.take(limits.get(name.split("_")[0]) or len(split))
            for name, split in task.splits.items()
        }
        self.dev = next(name for name in self.splits if name.startswith("dev"))
        for name, split in self.splits.items():
            if not len(split):
                raise ValueError(f"The task {task.name} has no example in {name!r}.")
        lacking = config.max_train_examples and self.task.lacking.get("train")
        if lacking and len(lacking) == len(task.model_arguments["labels"]) - 1:
            raise ValueError(
                f"The first {len(self.splits['train']):,} training examples of "
                f"{task.name} have one label alone: shuffle the file, or raise "
                "`max_train_examples`."
            )
        self.max_length = None
        model = self.new_model()
        if config.max_length:
            self.max_length = min(config.max_length, model.encoder.max_length)
        self.size = size_of(model.encoder)
        self.lost = describe_lost(model.tokenizer, self.splits["train"].examples)
        self.head_config = {**model.head_config, **task.model_arguments}
        self.pretrained_by = model.pretrained_by
        self.system = pretraining_class(model.pretrained_by)
        given = {**task.fine_tuning(self.size), **config.settings}
        usual = self.system.fine_tuning(self.size, task.name)
        self.settings = with_changes(usual, given)
        self.searched = {}
        if config.search:
            searched = self.system.fine_tuning_search(self.size, task.name)
            self.searched = {n: v for n, v in searched.items() if n not in given}
        self.fingerprints = {n: split.fingerprint() for n, split in self.splits.items()}
        self.preset_fingerprint = kept_results.fingerprint(config.preset)
        self.compiled = None
        self.kept = [
            result
            for settings, folder in self.points()
            for seed in range(config.seeds)
            if (result := self.kept_result(settings, seed, folder))
        ]

    @functools.cached_property
    def train_features(self):
        """The features of the training examples."""
        train = self.splits["train"]
        return self.new_model().features(train.examples, train.labels)

    @functools.cached_property
    def features(self):
        """Split name -> features, of all splits but that for training."""
        model = self.new_model()
        return {
            name: model.features(split.examples)
            for name, split in self.splits.items()
            if name != "train"
        }

    @property
    def full_rows(self):
        """How many training examples have all the tokens that they may have."""
        lengths = (len(f.inputs["token_ids"]) for f in self.train_features)
        return sum(length == self.max_length for length in lengths)

    def banner(self):
        """Describes the work: examples, skipped examples, settings."""
        lines = {
            self.task.name: f"{self.model_class.__name__} of {self.preset_fingerprint}"
        }
        for name, split in self.splits.items():
            lines[name] = f"{len(split):,} examples"
            if split.skipped:
                lines[name] += f", left out: {describe_skipped(split.skipped)}"
            if unseen := self.task.unseen.get(name):
                lines[name] += f"; {describe_unseen(unseen)}"
            if lacking := self.task.lacking.get(name):
                lines[name] += f"; none has {' or '.join(map(repr, lacking[:5]))}"
        if self.lost:
            lines["lost"] = self.lost
        if self.max_length:
            lines["length"] = f"{self.max_length} tokens at most"
            if self.max_length < self.config.max_length:
                asked = self.config.max_length
                lines["length"] += f", which is all that the encoder reads, not {asked}"
            if self.task.kind.endswith("classification") and (full := self.full_rows):
                lines["length"] += (
                    f"; {full:,} of {len(self.train_features):,} to train on have as "
                    "many, and may have lost their end"
                )
        lines["guess"] = f"{self.task.main_metric} {self.guess:.1f}"
        settings = dataclasses.asdict(self.settings)
        if settings["dropout"] is None:
            settings["dropout"] = "as pretrained"
        lines["settings"] = ", ".join(f"{k} {v}" for k, v in settings.items())
        if self.system is Pretrainer:
            lines["note"] = (
                f"no known class pretrained the encoder (pretrained_by is "
                f"{self.pretrained_by!r}); the settings are Clark's thesis's"
            )
        for name, values in self.searched.items():
            lines[f"search {name}"] = ", ".join(map(str, values))
        if self.kept:
            lines["done"] = f"{len(self.kept)} of the runs, which are not made again"
        return "\n".join(f"{name + ':':12} {text}" for name, text in lines.items())

    def new_model(self, dropout=None):
        """Returns the task's model as it is before training."""
        return self.model_class.from_preset(
            self.config.preset,
            load_weights=self.config.load_weights,
            max_length=self.max_length,
            dropout=dropout,
            dtype=self.config.dtype,
            **self.task.model_arguments,
        )

    def run(self):
        """Runs all seeds of all settings that are not done yet.

        Returns:
            The results of the best settings: a list of dicts, one for each seed.
        """
        if len(self.kept) < len([*self.points()]) * self.config.seeds:
            # Examples that have no features show before training.
            _ = self.train_features, self.features
        best = []
        for settings, folder in self.points():
            runs = [
                self.result(settings, seed, folder) for seed in range(self.config.seeds)
            ]
            if not best or median(runs) > median(best):
                best = runs
        return best

    def points(self):
        """Yields all settings to try, each with the folder of its runs."""
        for point in itertools.product(*self.searched.values()):
            changes = dict(zip(self.searched, point, strict=True))
            folder = Path(self.config.output) / self.task.name / folder_name(changes)
            yield with_changes(self.settings, changes), folder

    def identity(self, settings, seed):
        """Returns all that decides a run, as JSON holds it."""
        run = {
            "preset": self.preset_fingerprint,
            "load_weights": self.config.load_weights,
            "max_length": self.max_length,
            "dtype": self.config.dtype,
            "examples": {name: len(split) for name, split in self.splits.items()},
            "fingerprints": self.fingerprints,
            "task": self.head_config,
            "seed": seed,
            **dataclasses.asdict(settings),
        }
        return json.loads(json.dumps(run))  # as it comes back from a file

    def kept_result(self, settings, seed, folder):
        """Returns the result of a run that has been made, or `None`."""
        path = folder / f"seed-{seed}.json"
        kept = kept_results.read(path, self.identity(settings, seed))
        # It may have been moved since.
        return kept and {**kept, "folder": str(folder)}

    def result(self, settings, seed, folder):
        """Returns the result of a run, which is made if it is not there."""
        if kept := self.kept_result(settings, seed, folder):
            return kept
        for attempt in range(self.config.retries + 1):
            # A retry's seed is none that another run has.
            model, outputs, result = self.train_and_evaluate(
                settings, seed + 100_000 * attempt
            )
            if not result["failed"]:
                break
            remedy = "It is repeated with another seed."
            if attempt == self.config.retries:
                remedy = "More epochs or another learning_rate may help (--settings)."
            print(f"This run failed: {result['failure']}. {remedy}")
        result = {
            "settings": self.identity(settings, seed),
            "attempts": attempt + 1,
            **result,
            "folder": str(folder),
        }
        self.save(folder / f"seed-{seed}.json", model, outputs, result)
        return result

    def train_and_evaluate(self, settings, seed):
        """Trains and evaluates a model; returns it, its outputs and its result."""
        model = self.compiled_model(settings, seed)
        batches = model.batches(self.train_features, settings.batch_size, seed)
        metric, curve, best, weights, seconds = self.task.main_metric, [], -1e9, None, 0
        for epoch in range(1, settings.epochs + 1):
            start = time.perf_counter()
            with memory_remedies(self.shortage, model, settings):
                loss = fit(model, batches, f"seed {seed}, epoch {epoch}")
            seconds += time.perf_counter() - start
            if not math.isfinite(loss):
                # Nothing can be read off such a model; it counts as not trained.
                model = self.compiled_model(settings, seed)
            outputs = model.outputs(self.features[self.dev])
            model.calibrate(outputs, self.splits[self.dev].labels)
            score = self.metrics(model, self.dev, outputs)[metric]
            curve.append({"epoch": epoch, "loss": loss, metric: score})
            print(
                f"{self.task.name}, seed {seed}, epoch {epoch} of {settings.epochs}: "
                f"training loss {loss:.3f}, {metric} {score:.1f}",
                flush=True,
            )
            if not math.isfinite(loss):
                break
            if settings.report == "best" and score > best:
                best, weights = score, model.get_weights()
        if weights is not None:
            model.set_weights(weights)
        outputs = {name: model.outputs(f) for name, f in self.features.items()}
        model.calibrate(outputs[self.dev], self.splits[self.dev].labels)
        if math.isfinite(loss):
            predictions = self.predictions(model, self.dev, outputs[self.dev])
            failure = self.task.failure(predictions, self.splits[self.dev])
        else:
            failure = f"its training loss is {loss} in epoch {epoch}"
        return (
            model,
            outputs,
            {
                "metric": metric,
                "score": self.metrics(model, self.dev, outputs[self.dev])[metric],
                "metrics": {
                    name: self.metrics(model, name, outputs[name])
                    for name in outputs
                    if self.splits[name].labels is not None
                },
                "failed": failure is not None,
                "failure": failure,
                "curve": curve,
                "train_seconds": seconds,
                "sequences_per_second": settings.epochs
                * len(self.train_features)
                / seconds,
            },
        )

    def shortage(self, model, settings):
        """Returns what to say where memory does not suffice."""
        length = self.max_length or model.encoder.max_length
        return of_fine_tuning(model, settings.batch_size, length)

    def compiled_model(self, settings, seed):
        """Returns a model to train: one for all seeds, set back to the start."""
        features = self.train_features  # before the seed: they come from a model too
        keras.utils.set_random_seed(seed)
        fresh = self.new_model(settings.dropout)
        steps_per_epoch = len(fresh.batches(features, settings.batch_size))
        fresh = compiled(fresh, settings, steps_per_epoch)
        if self.compiled is None or self.compiled[0] != settings:
            self.compiled = settings, fresh
        set_back(self.compiled[1], fresh)
        return self.compiled[1]

    def predictions(self, model, name, outputs):
        """Returns the predictions for the split `name`."""
        return model.decode(self.splits[name].examples, self.features[name], outputs)

    def metrics(self, model, name, outputs):
        """Returns the metrics on the split `name`."""
        predictions = self.predictions(model, name, outputs)
        return self.task.metrics(predictions, self.splits[name])

    def save(self, path, model, outputs, result):
        """Writes what a run leaves."""
        path.parent.mkdir(parents=True, exist_ok=True)
        arrays = {
            f"{name}/{key}": array
            for name, rows in outputs.items()
            for key, array in results.stacked(rows).items()
        }
        with whole_file(path.with_suffix(".npz"), "wb") as file:
            np.savez_compressed(file, **arrays)

        def save_best(folder):
            model.save_to_preset(folder / "preset")
            self.write_predictions(model, outputs, folder / "predictions")

        kept_results.keep(path, result, save_best)

    @functools.cached_property
    def guess(self):
        """The main metric, on the development set, of guessing."""
        split = self.splits[self.dev]
        return self.task.metrics(self.task.guesses(split), split)[self.task.main_metric]

    def write_predictions(self, model, outputs, directory):
        """Writes the predictions for every split in the task's own format."""
        directory.mkdir(parents=True, exist_ok=True)
        for name, rows in outputs.items():
            self.task.write_predictions(
                self.predictions(model, name, rows), name, directory
            )


def fit(model, batches, label):
    """Trains on each batch once and returns the loss; a terminal shows progress."""
    with tqdm(
        total=len(batches), desc=label, unit="step", leave=False, disable=None
    ) as bar:
        progress = keras.callbacks.LambdaCallback(
            on_train_batch_end=lambda *_, **__: bar.update()
        )
        history = model.fit(batches, verbose=0, shuffle=False, callbacks=[progress])
    return history.history["loss"][0]


def pretraining_class(name):
    """Returns the class that a model's `pretrained_by` names.

    It is `Pretrainer`, whose settings are Clark's thesis's, where no class of
    this name is known.
    """
    try:
        return find_class(name or "", Pretrainer)
    except ValueError:
        return Pretrainer


def with_changes(settings, changes):
    """Returns `FineTuningSettings` with some of them changed."""
    try:
        return settings.changed(changes)
    except ValueError as error:
        raise ValueError(f"`settings`: {error}") from error


def folder_name(changes):
    """Returns the folder of settings, named by the changes of them."""
    changes = [f"{name}={value:g}" for name, value in changes.items()]
    return ",".join(changes) or "published"


def median(runs):
    """Returns the median score of some runs."""
    return statistics.median(result["score"] for result in runs)
