"""All runs of a comparison, each made once: the teachers, the students, the table.

output/<strategy>/<task>/seed-0.json    what decided a run, its scores, its losses
seed-0/          its model, where another one starts from it or learns from it
preset/          the best run's model
predictions/     the best run's, in the benchmark's format
output/teachers/<strategy>/<task>.npz    what teachers put out for training examples

A strategy's models of all tasks are in the folder `all`.
"""

import copy
import dataclasses
import functools
import json
import math
import shutil
from pathlib import Path

import numpy as np

from keras_corrupt.downstream import kept_results
from keras_corrupt.downstream.finetune import (
    FinetuneConfig,
    RunsConfig,
    made_directory,
)
from keras_corrupt.downstream.finetuner import Finetuner, with_changes
from keras_corrupt.multitask import results, teachers
from keras_corrupt.multitask.multi_task_model import check_names
from keras_corrupt.multitask.significance import holm
from keras_corrupt.multitask.strategies import (
    STRATEGIES,
    settings_of,
    with_those_needed,
)
from keras_corrupt.multitask.trainer import Trainer
from keras_corrupt.training.run_directory import locked

ALL = "all"


def run(tasks, config):
    """Makes all runs that are not there yet, and reports.

    Args:
        tasks: A list of `Task`.
        config: A `MultiTaskConfig`.

    Returns:
        Strategy -> task -> the scores of its runs.

    Raises:
        ValueError: A task or the configuration cannot work. Nothing was written.
    """
    config.check()
    runs = Runs(tasks, config)
    output = made_directory(config.output)
    with locked(output):
        print(runs.banner(), flush=True)
        scores, speeds = {}, {}
        for name in runs.strategies:
            all_runs = runs.of_strategy(name)
            if name in config.compared:
                scores[name] = results.scores_of(all_runs)
                speeds[name] = results.speed_of(all_runs)
                text = results.write(scores, speeds, runs.finetuners, output)
    print(f"\n{text}\n\nIn {output}: results.md, .json and .png. Best models:")
    for name in scores:
        for group in runs.groups(name):
            print(f"{name}, {group}: {output / name / group / 'preset'}")
    return scores


class Runs:
    """The runs of a comparison.

    Args:
        tasks: A list of `Task`.
        config: A `MultiTaskConfig`.
    """

    def __init__(self, tasks, config):
        check_names([task.name for task in tasks])
        self.config = config
        common = {
            f.name: getattr(config, f.name) for f in dataclasses.fields(RunsConfig)
        }
        common["output"] = str(Path(config.output) / "tasks")
        finetuners = [
            Finetuner(_with_sigmoid(task), FinetuneConfig(**common)) for task in tasks
        ]
        self.finetuners = {f.task.name: f for f in finetuners}
        # One for all tasks, as in the thesis: with a task's own, which has more epochs
        # for RTE and STS-B, its model would train longer than the model of all tasks.
        any_task = finetuners[0]
        self.single = with_changes(
            any_task.system.fine_tuning(any_task.size, ""), config.settings
        )
        for finetuner in finetuners:
            finetuner.settings = self.single
        self.strategies = with_those_needed(
            config.compared, teachers=config.teacher_outputs is None
        )
        # Errors come before any work.
        if not {*config.compared} <= {*results.BASELINES}:
            holm([1.0])  # needs a package that may be missing
        for finetuner in finetuners:
            _ = finetuner.train_features
        for name in self.strategies:
            self.settings(name)
        if config.teacher_outputs is not None:
            for name, finetuner in self.finetuners.items():
                teachers.read(
                    self.given_outputs(name),
                    finetuner.new_model(),
                    finetuner.train_features,
                )
        for name in self.strategies:
            for group in self.groups(name):
                for seed in range(self.seeds_of(name)):
                    self.kept_result(name, group, seed)

    def banner(self):
        """Describes the work: the tasks, the strategies, their settings."""
        lines = [finetuner.banner() for finetuner in self.finetuners.values()]
        for name in self.strategies:
            if STRATEGIES[name].multi:
                settings = dataclasses.asdict(self.settings(name))
                text = ", ".join(f"{k} {v}" for k, v in settings.items())
                lines.append(f"{name}: {text}")
        return "\n\n".join(lines)

    def groups(self, name):
        """Returns a strategy's models: folder -> the names of its tasks."""
        if STRATEGIES[name].multi:
            return {ALL: list(self.finetuners)}
        return {task: [task] for task in self.finetuners}

    def settings(self, name):
        """Returns the settings of a strategy's models."""
        changes = self.config.multi_settings
        try:
            return settings_of(STRATEGIES[name], self.single, changes)
        except ValueError as error:
            raise ValueError(f"`multi_settings`: {error}") from error

    def of_strategy(self, name):
        """Makes a strategy's runs.

        Returns:
            Folder -> the results of its runs.
        """
        by_group = {}
        for group in self.groups(name):
            trainer = functools.cache(functools.partial(self.trainer, name, group))
            by_group[group] = [
                self.result(name, group, seed, trainer)
                for seed in range(self.seeds_of(name))
            ]
        return by_group

    def seeds_of(self, name):
        """Returns how many runs a strategy needs: all, or those that teach."""
        starts = [STRATEGIES[other].start for other in self.strategies]
        if name in self.config.compared or name in starts:
            return self.config.seeds
        return self.config.teachers

    def trainer(self, name, group):
        """Returns the `Trainer` of a group of tasks, with its teachers' outputs."""
        strategy = STRATEGIES[name]
        finetuners = {task: self.finetuners[task] for task in self.groups(name)[group]}
        soft = strategy.teacher and {
            task: self.soft_targets(strategy.teacher, task) for task in finetuners
        }
        return Trainer(finetuners, strategy, self.settings(name), self.config, soft)

    def soft_targets(self, teacher, task):
        """Returns what the models of the strategy `teacher` put out for a task."""
        finetuner = self.finetuners[task]
        model, features = finetuner.new_model(), finetuner.train_features
        if self.config.teacher_outputs is not None:
            return teachers.read(self.given_outputs(task), model, features)
        group = ALL if STRATEGIES[teacher].multi else task
        presets = [
            self.folder(teacher, group) / f"seed-{seed}"
            for seed in range(self.config.teachers)
        ]
        path = Path(self.config.output) / "teachers" / teacher / f"{task}.npz"
        return teachers.teacher_outputs(path, presets, task, model, features)

    def given_outputs(self, task):
        """Returns the file of teachers' outputs for a task that the user gave."""
        return Path(self.config.teacher_outputs) / f"{task}.npz"

    def folder(self, name, group):
        """Returns the folder of a strategy's runs on a group of tasks."""
        return Path(self.config.output) / name / group

    def keeps_model(self, name, seed):
        """Whether a run's model is kept for others: to teach, or to start from."""
        starts = {STRATEGIES[other].start for other in self.strategies}
        return seed < self.config.teachers or name in starts

    def identity(self, name, group, seed):
        """Returns all that decides a run, as JSON holds it."""
        strategy = STRATEGIES[name]
        finetuners = {task: self.finetuners[task] for task in self.groups(name)[group]}
        any_task = next(iter(finetuners.values()))
        identity = {
            "strategy": dataclasses.asdict(strategy),
            "preset": any_task.preset_fingerprint,
            "load_weights": self.config.load_weights,
            "max_length": any_task.max_length,
            "dtype": self.config.dtype,
            "tasks": {task: f.head_config for task, f in finetuners.items()},
            "examples": {
                task: {name: len(split) for name, split in f.splits.items()}
                for task, f in finetuners.items()
            },
            "fingerprints": {
                f"{task}/{name}": value
                for task, f in finetuners.items()
                for name, value in f.fingerprints.items()
            },
            "seed": seed,
            **dataclasses.asdict(self.settings(name)),
        }
        if origins := self.origins(name, group, seed):
            identity["origins"] = origins
        if strategy.teacher:
            identity["teachers"] = self.config.teachers
            if self.config.teacher_outputs is not None:
                identity["teacher_outputs"] = {
                    task: kept_results.file_fingerprint(self.given_outputs(task))
                    for task in finetuners
                }
        return json.loads(json.dumps(identity))  # as it comes back from a file

    def origins(self, name, group, seed):
        """Returns what decides each run that a run starts or learns from, as a hash."""
        strategy, before = STRATEGIES[name], []
        if strategy.start:
            before.append((strategy.start, seed))
        if strategy.teacher and self.config.teacher_outputs is None:
            before.append((strategy.teacher, 0))  # others differ in their seeds alone
        found, tasks = {}, self.groups(name)[group]
        for other, of_seed in before:
            for folder in [ALL] if STRATEGIES[other].multi else tasks:
                identity = self.identity(other, folder, of_seed)
                fingerprint = kept_results.settings_fingerprint(identity)
                found[f"{other}/{folder}"] = fingerprint
        return found

    def kept_result(self, name, group, seed):
        """Returns the result of a run that has been made, or `None`."""
        path = self.folder(name, group) / f"seed-{seed}.json"
        return kept_results.read(path, self.identity(name, group, seed))

    def result(self, name, group, seed, trainer):
        """Returns the result of a run, which is made if it is not there.

        Args:
            name: The strategy.
            group: The folder of its tasks.
            seed: The run's.
            trainer: Function that returns the `Trainer`.
        """
        folder = self.folder(name, group)
        path, model_of_run = folder / f"seed-{seed}.json", folder / f"seed-{seed}"
        identity = self.identity(name, group, seed)
        kept = self.kept_result(name, group, seed)
        if kept and (model_of_run.is_dir() or not self.keeps_model(name, seed)):
            return kept
        trainer = trainer()
        start = STRATEGIES[name].start
        preset = self.config.preset
        if start:
            start_group = ALL if STRATEGIES[start].multi else group
            preset = self.folder(start, start_group) / f"seed-{seed}"
        checkpoints = folder / f"seed-{seed}.checkpoints"
        model, trained = trainer.train(preset, seed, checkpoints, identity)
        outputs = trainer.outputs(model)
        metrics = trainer.metrics(outputs)
        scores = trainer.scores(metrics)
        result = {
            "settings": identity,
            "score": float(np.mean(list(scores.values()))),
            "scores": scores,
            "metrics": metrics,
            "failures": self.failures(trainer, model, outputs, trained["curve"]),
            "sequences_per_second": len(trained["curve"])
            * sum(map(len, trainer.features.values()))
            / trained["train_seconds"],
            **trained,
        }
        print(
            f"{name}, {group}, seed {seed}: "
            + ", ".join(f"{task} {score:.1f}" for task, score in scores.items()),
            flush=True,
        )
        for task, failure in result["failures"].items():
            print(f"{name}, seed {seed} failed on {task}: {failure}.", flush=True)
        self.save(path, name, model, outputs, result)
        shutil.rmtree(checkpoints, ignore_errors=True)
        return result

    def failures(self, trainer, model, outputs, curve):
        """Returns task -> in what the run has failed, of those tasks where it has."""
        loss = curve[-1]["loss"]
        if not math.isfinite(loss):
            text = f"its training loss is {loss} in epoch {curve[-1]['epoch']}"
            return dict.fromkeys(trainer.finetuners, text)
        failures = {}
        for task, f in trainer.finetuners.items():
            rows = outputs[task][f.dev]
            predictions = f.predictions(model.part(task), f.dev, rows)
            failures[task] = f.task.failure(predictions, f.splits[f.dev])
        return {task: text for task, text in failures.items() if text is not None}

    def save(self, path, name, model, outputs, result):
        """Writes what a run leaves."""
        saved = model if STRATEGIES[name].multi else model.parts[0]
        if self.keeps_model(name, result["settings"]["seed"]):
            saved.save_to_preset(path.with_suffix(""))

        def save_best(folder):
            saved.save_to_preset(folder / "preset")
            for task, rows in outputs.items():
                self.finetuners[task].write_predictions(
                    model.part(task), rows, folder / "predictions" / task
                )

        kept_results.keep(path, result, save_best)


def _with_sigmoid(task):
    """Returns a task whose scores, if it has such, end in a sigmoid (section 3.2.1)."""
    if not task.model_arguments.get("score_range"):
        return task
    task = copy.copy(task)
    task.model_arguments = {**task.model_arguments, "score_activation": "sigmoid"}
    return task
