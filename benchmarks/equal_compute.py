"""Trains systems at equal compute and draws their learning curves.

    python -m keras_corrupt.data prepare --corpus CORPUS --output DATA \\
        --sequence_length 64
    python -m benchmarks.equal_compute DATA --output RESULTS
    python -m benchmarks.equal_compute DATA --output RESULTS \\
        --systems MaskedLM TwoTower Electric ElectraTT
    python -m benchmarks.equal_compute DATA --output RESULTS \\
        --systems MaskedLM Electra --presets small modern_small --seeds 0 1 \\
        --sequence_length 128 --batch_size 128 --learning_rate 5e-4 --device_minutes 10

All have the same examples and schedule, and each as many steps as `--flops` pays for.
`--device_minutes` instead says how long all runs take together; some updates of each
are timed before. Detectors meet generators of different strength, so they are also
compared on the same noise: validation text with 15% of its tokens replaced by words
drawn by their frequency. `--other_data` validates on text of other domains, prepared
with the same vocabulary. A run that was stopped goes on by the same command.
"""

import dataclasses
import itertools
import json
import shutil
import tempfile
from pathlib import Path
from typing import NamedTuple

import keras
import numpy as np
import tyro
from keras import ops

from benchmarks import comparison
from keras_corrupt.corruption import choose_positions, replace_tokens, sample_tokens
from keras_corrupt.data import load_dataset_info, make_dataset
from keras_corrupt.training.callbacks import read_metrics, validate

#: Metrics that are drawn of the runs that have them.
CURVES = {
    "val_mlm_loss": "masked LM loss (nats)",
    "val_cloze_loss": "cloze loss of all tokens (nats)",
    "val_rtd_auc": "replaced token detection AUC",
    "val_mws_accuracy": "multi-word selection accuracy",
}
#: Name in `--systems` that is no class -> the model's class, and its options.
VARIANTS = {"FullyExplored": ("MaskedLM", {"num_masks": 4, "mask_rate": 0.125})}
#: Updates that are timed, after as many that are not.
TIMED = 50


@dataclasses.dataclass
class Settings:
    """What to train."""

    data: tyro.conf.Positional[str]
    """A directory of prepared examples."""
    output: str
    """A new directory for the runs, the table and the plot."""
    systems: tuple[str, ...] = ("Electra", "Teams")
    """Classes of models, or `FullyExplored`."""
    presets: tuple[str, ...] = ("tiny",)
    """Sizes of their networks."""
    flops: float = 3e14
    """Training cost of each run."""
    device_minutes: float | None = None
    """What all runs take together, in place of `--flops`; validations come on top."""
    batch_size: int = 64
    """Sequences in a step; a text with four masks is four."""
    sequence_length: int = 64
    """Tokens in a sequence."""
    learning_rate: float = 2e-3
    """Peak learning rate."""
    warmup_steps: int = 1000
    """Updates until then: see `electra_forms`."""
    intervals: int = 20
    """Points of the curves."""
    keep_presets: bool = False
    """Keep a preset at each point, for what else is measured through training."""
    seeds: tuple[int, ...] = (0,)
    """Seeds of weights, examples and corruption."""
    dtype: str = "mixed_bfloat16"
    """Precision."""
    other_data: tuple[str, ...] = ()
    """Directories of examples on which the trained models are validated, too."""


class Arm(NamedTuple):
    """One run: a class of models, a preset, a seed, and the names of run and curve."""

    system: str
    preset: str
    seed: int
    name: str
    label: str


def arms(settings):
    """Returns the runs; their names tell in what they differ."""
    chosen = []
    for system, preset, seed in itertools.product(
        settings.systems, settings.presets, settings.seeds
    ):
        label = f"{system} {preset}" if len(settings.presets) > 1 else system
        name = f"{label} {seed}" if len(settings.seeds) > 1 else label
        chosen.append(Arm(system, preset, seed, name.replace(" ", "_"), label))
    return chosen


def configuration(arm, output, settings):
    """Returns the `PretrainConfig` of a run, without its length."""
    model, objective = VARIANTS.get(arm.system, (arm.system, {}))
    masks = objective.get("num_masks", 1)
    return comparison.configuration(
        settings,
        output,
        model=model,
        objective=objective,
        preset=arm.preset,
        batch_size=settings.batch_size // masks,
        # All see the same number of held-out texts.
        validation_batches=50 * masks,
        seed=arm.seed,
        dtype=settings.dtype,
    )


def run(arm, settings, flops):
    """Trains one system; returns the model, and FLOPs of a step."""
    config = configuration(arm, Path(settings.output, arm.name), settings)
    step_flops = comparison.step_flops(config)
    interval = round(flops / step_flops / settings.intervals)
    config = dataclasses.replace(
        config,
        steps=interval * settings.intervals,
        interval=interval,
        keep_presets=interval if settings.keep_presets else 0,
        warmup_steps=settings.warmup_steps,
    )
    return comparison.train(config), step_flops


def flops_of(settings):
    """Returns the FLOPs that each run may take; `--output` keeps what was timed."""
    if settings.device_minutes is None:
        return settings.flops
    path = Path(settings.output, "flops.txt")
    if not path.exists():
        alike = {(arm.system, arm.preset): arm for arm in arms(settings)}
        seconds = sum(seconds_per_flop(arm, settings) for arm in alike.values())
        flops = 60 * settings.device_minutes / seconds / len(settings.seeds)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(str(flops))
    return float(path.read_text())


def seconds_per_flop(arm, settings):
    """Times some updates of a run."""
    with tempfile.TemporaryDirectory() as directory:
        config = dataclasses.replace(
            configuration(arm, Path(directory, "run"), settings),
            steps=2 * TIMED,
            interval=TIMED,
            warmup_steps=0,
            validation_batches=1,
        )
        comparison.train(config)
        *_, last = read_metrics(Path(config.output, "metrics.csv"))
    tokens = config.batch_size * config.sequence_length
    return tokens / last["tokens_per_second"] / comparison.step_flops(config)


def check(settings):
    """Raises a `SystemExit` for settings that would fail after some runs."""
    for system in settings.systems:
        masks = VARIANTS.get(system, ("", {}))[1].get("num_masks", 1)
        if settings.batch_size % masks:
            raise SystemExit(
                f"--batch_size {settings.batch_size} must be a multiple of {masks}, "
                f"the masks of a text of {system}."
            )
    names = [Path(other).name for other in settings.other_data]
    if len({*names}) < len(names):
        raise SystemExit(f"Two folders of --other_data have one name: {names}.")
    own = load_dataset_info(settings.data).tokenizer_fingerprint
    for other in settings.other_data:
        if load_dataset_info(other).tokenizer_fingerprint != own:
            raise SystemExit(
                f"--other_data {other} has another vocabulary than {settings.data}: "
                f"prepare it with --vocabulary {settings.data}/tokenizer.json."
            )


def validated_on(other, model, settings):
    """Returns a trained model's metrics on other text, by its folder's name."""
    batches = make_dataset(
        other,
        "validation",
        batch_size=settings.batch_size,
        max_length=settings.sequence_length,
    )
    metrics = validate(model, batches)
    return {
        f"{Path(other).name}_{name}": metrics[name]
        for name in CURVES
        if name in metrics
    }


def detection_of_common_noise(model, settings, batches=40):
    """Returns the AUC of detecting words drawn by frequency, the same for all."""
    info = load_dataset_info(settings.data)
    logits = ops.log(ops.convert_to_tensor(info.unigrams() + 1e-9, "float32"))
    seed = keras.random.SeedGenerator(0)
    auc = keras.metrics.AUC(num_thresholds=1000)
    for batch in make_dataset(
        settings.data,
        "validation",
        batch_size=settings.batch_size,
        max_length=settings.sequence_length,
    ).take(batches):
        inputs = {name: np.array(array) for name, array in batch.items()}
        masking = choose_positions(inputs, 0.15, model.unmaskable_ids, seed)
        noise = ops.broadcast_to(logits, (*masking.positions.shape, len(logits)))
        noisy = replace_tokens(inputs["token_ids"], masking, sample_tokens(noise, seed))
        scores = model.detect({**inputs, "token_ids": np.array(noisy)})
        auc.update_state(
            np.array(noisy) != inputs["token_ids"],
            1 / (1 + np.exp(-scores)),
            inputs["padding_mask"],
        )
    return float(auc.result())


def draw(curves, path):
    """Draws a curve for each run; runs that differ in the seed have one colour."""
    from matplotlib.figure import Figure

    shown = {
        metric: title
        for metric, title in CURVES.items()
        if any(metric in rows[0] for rows, _ in curves.values())
    }
    figure = Figure(figsize=(4.5 * len(shown), 4), layout="constrained")
    labels = dict.fromkeys(arm.label for arm in curves)
    colors = {label: f"C{number}" for number, label in enumerate(labels)}
    for axis, (metric, title) in zip(
        figure.subplots(1, len(shown), squeeze=False)[0], shown.items(), strict=True
    ):
        drawn = set()
        for arm, (rows, step_flops) in curves.items():
            if metric in rows[0]:
                x = [row["step"] * step_flops for row in rows]
                label = None if arm.label in drawn else arm.label
                color = colors[arm.label]
                axis.plot(x, [row[metric] for row in rows], color=color, label=label)
                drawn.add(arm.label)
        axis.set(title=title, xlabel="training FLOPs")
        axis.grid(alpha=0.3)
        axis.legend()
    figure.savefig(path, dpi=110)


def main(settings):
    check(settings)
    output, flops = Path(settings.output), flops_of(settings)
    curves, results = {}, {}
    for arm in arms(settings):
        name = arm.name
        model, step_flops = run(arm, settings, flops)
        rows = read_metrics(output / name / "metrics.csv")
        shutil.copy(output / name / "metrics.csv", output / f"{name}.csv")
        curves[arm] = rows, step_flops
        results[name] = {
            "steps": int(rows[-1]["step"]),
            "flops": rows[-1]["step"] * step_flops,
            "seconds": rows[-1]["seconds"],
            **{metric: rows[-1][metric] for metric in CURVES if metric in rows[-1]},
        }
        if hasattr(model, "detect"):
            noise = detection_of_common_noise(model, settings)
            results[name]["common_noise_auc"] = noise
        for other in settings.other_data:
            results[name] |= validated_on(other, model, settings)
    draw(curves, output / "curves.png")
    (output / "results.json").write_text(json.dumps(results, indent=2) + "\n")
    print("\n| | " + " | ".join(results) + " |\n|---|" + "---|" * len(results))
    for key in dict.fromkeys(key for result in results.values() for key in result):
        cells = " | ".join(
            f"{result[key]:.4g}" if key in result else "" for result in results.values()
        )
        print(f"| {key.replace('_', ' ')} | {cells} |")


if __name__ == "__main__":
    main(tyro.cli(Settings, description=__doc__, use_underscores=True))
