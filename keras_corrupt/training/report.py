"""What a run shows a person: its banner, its curves, its closing table."""

import keras
import numpy as np

from keras_corrupt.evaluation import flops
from keras_corrupt.evaluation.baselines import random_detector
from keras_corrupt.evaluation.memory import process_bytes, training_bytes


def banner(config, model, info, output, distribution):
    """Returns the lines that open a run."""
    per_step = flops.training_flops(
        model.forward_flops(config.sequence_length), config.batch_size, 1
    )
    parameters = {name: net.count_params() for name, net in model.networks.items()}
    shared = sum(parameters.values()) - model.count_params()
    networks = ", ".join(f"{name} {n:,}" for name, n in parameters.items())
    if shared:
        networks += f" ({shared:,} of them shared)"
    tokens = config.batch_size * config.sequence_length
    batch = config.batch_size // config.accumulate
    state, activations, program = training_bytes(
        model, batch // len(distribution.devices), config.sequence_length
    )
    lines = {
        "model": f"{config.model} {config.preset}, {config.dtype}",
        "backend": keras.backend.backend(),
        "devices": distribution.describe(batch),
        "parameters": networks,
        "memory": f"{state / 1e9:.2f} GB of weights and optimizer, "
        f"{activations / 1e9:.2f} GB of activations on each device; with the program "
        f"{(state + activations + program + process_bytes()) / 1e9:.2f} GB",
        "data": f"{info.directory}: {info.train.examples:,} examples, "
        f"{info.train.tokens:,} tokens; "
        f"{info.validation.examples:,} held out",
        "step": f"{config.batch_size} x {config.sequence_length} = {tokens:,} tokens, "
        f"{per_step:.2e} FLOPs",
        "run": f"{config.steps:,} steps, {tokens * config.steps:.2e} tokens "
        f"({tokens * config.steps / max(1, info.train.tokens):.1f} epochs), "
        f"{per_step * config.steps:.2e} FLOPs",
        "output": str(output),
    }
    return "\n".join(f"{name + ':':12}{text}" for name, text in lines.items())


def table(metrics, unigram, chance):
    """Returns the closing table: what was reached beside what guessing reaches.

    Args:
        metrics: Validation metrics, names beginning with `val_`.
        unigram: `(loss, accuracy)` of guessing tokens by frequency.
        chance: The model's `chance`.
    """
    baseline = {"val_mlm_loss": unigram[0], "val_mlm_accuracy": unigram[1]}
    baseline.update({f"val_{name}": value for name, value in chance.items()})
    if "val_rtd_auc" in metrics:
        baseline.update(random_detector(metrics))
    names = {
        "val_mlm_loss": ("masked LM loss (nats)", "unigram"),
        "val_mlm_accuracy": ("masked LM accuracy", "unigram"),
        "val_rtd_auc": ("replaced token detection AUC", "chance"),
        "val_rtd_precision": ("replaced token detection precision", "chance"),
        "val_rtd_recall": ("replaced token detection recall", "chance"),
        "val_mws_accuracy": ("multi-word selection accuracy", "chance"),
    }
    rows = [f"{'validation':36}{'model':>8}{'baseline':>10}"]
    for key, (name, kind) in names.items():
        if key in metrics:
            rows.append(f"{name:36}{metrics[key]:8.3f}{baseline[key]:10.3f}  {kind}")
    return "\n".join(rows)


def draw_curves(rows, path, unigram_loss):
    """Draws the metrics of a run: losses, and rates between 0 and 1.

    Args:
        rows: The rows of `metrics.csv`.
        path: PNG file to write.
        unigram_loss: Loss of guessing tokens by frequency, a reference line.
    """
    from matplotlib.figure import Figure

    losses = [n for n in rows[0] if n.endswith("_loss") and not n.startswith("val_")]
    fractions = ("accuracy", "auc", "precision", "recall", "fraction")
    rates = [n for n in rows[0] if n.startswith("val_") and n.endswith(fractions)]
    figure = Figure(figsize=(4.5 * (len(losses) + 1), 4), layout="constrained")
    axes = figure.subplots(1, len(losses) + 1)
    steps = [row["step"] for row in rows]
    for axis, name in zip(axes, losses, strict=False):
        axis.plot(steps, [row[name] for row in rows], label="training")
        axis.plot(steps, [row[f"val_{name}"] for row in rows], label="validation")
        if name == "mlm_loss":
            axis.axhline(unigram_loss, color="gray", linestyle=":", label="unigram")
        axis.set(title=name.replace("_", " "), xlabel="step", ylabel="nats")
        axis.legend()
    for name in rates:
        label = name.removeprefix("val_").replace("_", " ")
        axes[-1].plot(steps, [row[name] for row in rows], label=label)
    axes[-1].set(title="validation", xlabel="step", ylim=(0, 1))
    axes[-1].legend(loc="center right")
    for axis in axes:
        axis.grid(alpha=0.3)
    figure.savefig(path, dpi=110)


def first_examples(dataset, limit=3):
    """Returns the first examples of a dataset as NumPy arrays."""
    batch = next(iter(dataset))
    return {name: np.array(array)[:limit] for name, array in batch.items()}
