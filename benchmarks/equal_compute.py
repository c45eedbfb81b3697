"""Trains systems at equal compute and draws their learning curves.

    python -m keras_corrupt.data prepare --corpus CORPUS --output DATA \\
        --sequence_length 64
    python -m benchmarks.equal_compute DATA --output RESULTS
    python -m benchmarks.equal_compute DATA --output RESULTS \\
        --systems MaskedLM TwoTower Electric ElectraTT

All have the encoder of the preset `tiny`, the same examples, schedule and seed, and
each as many steps as `--flops` pays for. Detectors meet generators of different
strength, so they are also compared on the same noise: validation text with 15% of its
tokens replaced by words drawn by their frequency. A run that was stopped goes on by the
same command.
"""

import dataclasses
import json
import shutil
from pathlib import Path

import keras
import numpy as np
import tyro
from keras import ops

from benchmarks import comparison
from keras_corrupt.corruption import choose_positions, replace_tokens, sample_tokens
from keras_corrupt.data import load_dataset_info, make_dataset
from keras_corrupt.training.callbacks import read_metrics

#: Metrics that are drawn of the runs that have them.
CURVES = {
    "val_mlm_loss": "masked LM loss (nats)",
    "val_cloze_loss": "cloze loss of all tokens (nats)",
    "val_rtd_auc": "replaced token detection AUC",
    "val_mws_accuracy": "multi-word selection accuracy",
}


@dataclasses.dataclass
class Settings:
    """What to train."""

    data: tyro.conf.Positional[str]
    """A directory of prepared examples."""
    output: str
    """A new directory for the runs, the table and the plot."""
    systems: tuple[str, ...] = ("Electra", "Teams")
    """Classes of models."""
    flops: float = 3e14
    """Training cost of each system."""
    batch_size: int = 64
    """Sequences in a step."""
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
    seed: int = 0
    """Seed of weights, examples and corruption."""
    dtype: str = "mixed_bfloat16"
    """Precision."""


def run(name, settings):
    """Trains one system; returns the model, and FLOPs of a step."""
    config = comparison.configuration(
        settings,
        Path(settings.output, name),
        model=name,
        preset="tiny",
        batch_size=settings.batch_size,
        seed=settings.seed,
        dtype=settings.dtype,
    )
    step_flops = comparison.step_flops(config)
    interval = round(settings.flops / step_flops / settings.intervals)
    config = dataclasses.replace(
        config,
        steps=interval * settings.intervals,
        interval=interval,
        keep_presets=interval if settings.keep_presets else 0,
        warmup_steps=settings.warmup_steps,
    )
    return comparison.train(config), step_flops


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
    from matplotlib.figure import Figure

    shown = {
        metric: title
        for metric, title in CURVES.items()
        if any(metric in rows[0] for rows, _ in curves.values())
    }
    figure = Figure(figsize=(4.5 * len(shown), 4), layout="constrained")
    for axis, (metric, title) in zip(
        figure.subplots(1, len(shown), squeeze=False)[0], shown.items(), strict=True
    ):
        for name, (rows, step_flops) in curves.items():
            if metric in rows[0]:
                x = [row["step"] * step_flops for row in rows]
                axis.plot(x, [row[metric] for row in rows], label=name)
        axis.set(title=title, xlabel="training FLOPs")
        axis.grid(alpha=0.3)
        axis.legend()
    figure.savefig(path, dpi=110)


def main(settings):
    output = Path(settings.output)
    curves, results = {}, {}
    for name in settings.systems:
        model, step_flops = run(name, settings)
        rows = read_metrics(output / name / "metrics.csv")
        shutil.copy(output / name / "metrics.csv", output / f"{name}.csv")
        curves[name] = rows, step_flops
        results[name] = {
            "steps": int(rows[-1]["step"]),
            "flops": rows[-1]["step"] * step_flops,
            "seconds": rows[-1]["seconds"],
            **{metric: rows[-1][metric] for metric in CURVES if metric in rows[-1]},
        }
        if hasattr(model, "detect"):
            noise = detection_of_common_noise(model, settings)
            results[name]["common_noise_auc"] = noise
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
