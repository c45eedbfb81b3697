"""Trains ELECTRA and TEAMS at equal compute and draws both learning curves.

    python -m keras_corrupt.data prepare --corpus CORPUS --output DATA --max_length 64
    python benchmarks/equal_compute.py DATA --output RESULTS

Both have the same discriminator, that of the preset `tiny`, the same examples,
schedule and seed, and each as many steps as `--flops` pays for. The detectors meet
generators of different strength, so they are also compared on the same noise:
validation text with 15% of its tokens replaced by words drawn by their frequency.
"""

import dataclasses
import json
import shutil
from pathlib import Path

import keras
import numpy as np
import tyro
from keras import ops

from keras_corrupt.corruption import choose_positions, replace_tokens, sample_tokens
from keras_corrupt.data import load_dataset_info, make_dataset
from keras_corrupt.models import Electra, Teams
from keras_corrupt.models.cost import training_flops
from keras_corrupt.tokenizers import load
from keras_corrupt.training import PretrainConfig, pretrain
from keras_corrupt.training.callbacks import read_metrics

SYSTEMS = {"ELECTRA": Electra, "TEAMS": Teams}


@dataclasses.dataclass
class Settings:
    """What to train."""

    data: tyro.conf.Positional[str]
    """A directory of prepared examples."""
    output: str
    """A new directory for the runs, the table and the plot."""
    flops: float = 3e14
    """Training cost of each system."""
    batch_size: int = 64
    """Sequences in a step."""
    sequence_length: int = 64
    """Tokens in a sequence."""
    learning_rate: float = 2e-3
    """Peak learning rate."""
    intervals: int = 20
    """Points of the curves."""
    seed: int = 0
    """Seed of weights, examples and corruption."""
    dtype: str = "mixed_bfloat16"
    """Precision."""


def run(name, settings):
    """Trains one system; returns the model, and FLOPs of a step."""
    cls = SYSTEMS[name]
    vocabulary_size = load(settings.data).vocabulary_size
    model = cls.from_preset("tiny", discriminator={"vocabulary_size": vocabulary_size})
    forward = model.forward_flops(settings.sequence_length)
    step_flops = training_flops(forward, settings.batch_size, 1)
    interval = round(settings.flops / step_flops / settings.intervals)
    config = PretrainConfig(
        model=cls.__name__,
        preset="tiny",
        output=str(Path(settings.output) / name),
        data=settings.data,
        sequence_length=settings.sequence_length,
        batch_size=settings.batch_size,
        steps=interval * settings.intervals,
        interval=interval,
        learning_rate=settings.learning_rate,
        warmup_steps=interval,
        beta_2=0.98,
        bias_correction=True,
        seed=settings.seed,
        dtype=settings.dtype,
    )
    model = pretrain(config)
    if model is None:
        raise SystemExit("Stopped.")
    return model, step_flops


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
        scores = model.discriminator.predict_on_batch({**inputs, "token_ids": noisy})
        auc.update_state(
            np.array(noisy) != inputs["token_ids"],
            1 / (1 + np.exp(-scores)),
            inputs["padding_mask"],
        )
    return float(auc.result())


def draw(curves, path):
    from matplotlib.figure import Figure

    metrics = {
        "val_mlm_loss": "generator: masked LM loss (nats)",
        "val_rtd_auc": "replaced token detection AUC",
        "val_mws_accuracy": "multi-word selection accuracy",
    }
    figure = Figure(figsize=(13, 4), layout="constrained")
    for axis, (metric, title) in zip(
        figure.subplots(1, 3), metrics.items(), strict=True
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
    for name in SYSTEMS:
        model, step_flops = run(name, settings)
        rows = read_metrics(output / name / "metrics.csv")
        shutil.copy(output / name / "metrics.csv", output / f"{name}.csv")
        curves[name] = rows, step_flops
        results[name] = {
            "steps": int(rows[-1]["step"]),
            "flops": rows[-1]["step"] * step_flops,
            "seconds": rows[-1]["seconds"],
            "mlm_loss": rows[-1]["val_mlm_loss"],
            "rtd_auc": rows[-1]["val_rtd_auc"],
            "common_noise_auc": detection_of_common_noise(model, settings),
        }
    draw(curves, output / "curves.png")
    (output / "results.json").write_text(json.dumps(results, indent=2) + "\n")
    print("\n| | " + " | ".join(results) + " |\n|---|" + "---|" * len(results))
    for key in next(iter(results.values())):
        cells = " | ".join(f"{result[key]:.4g}" for result in results.values())
        print(f"| {key.replace('_', ' ')} | {cells} |")


if __name__ == "__main__":
    main(tyro.cli(Settings, description=__doc__, use_underscores=True))
