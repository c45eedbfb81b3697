"""What a run shows a person: its banner, its curves, its closing table."""

import re

import keras
import numpy as np

from keras_corrupt.encoders.cost import training_flops
from keras_corrupt.training.example_settings import describe
from keras_corrupt.training.memory import process_bytes, training_bytes


def step_flops(config, model):
    """Returns the FLOPs of an update of a run.

    Args:
        config: Its `PretrainConfig`.
        model: The model.
    """
    forward = model.forward_flops(config.sequence_length)
    return training_flops(forward, config.batch_size * model.masker.num_masks, 1)


def banner(config, model, examples, output, distribution):
    """Returns the lines that open a run.

    Args:
        config: Its `PretrainConfig`.
        model: The model.
        examples: The `Examples`.
        output: The run's directory.
        distribution: Its `Distribution`.
    """
    info, mixed = examples
    own = 1 - sum(other.fraction for other in mixed)
    per_step = step_flops(config, model)
    parameters = {name: net.count_params() for name, net in model.networks.items()}
    shared = sum(parameters.values()) - model.count_params()
    networks = ", ".join(f"{name} {n:,}" for name, n in parameters.items())
    if shared:
        networks += f" ({shared:,} of them shared)"
    tokens = config.batch_size * config.sequence_length
    batch = config.batch_size // config.accumulate
    lines = {
        "model": f"{config.model} {config.preset}, {config.dtype}",
        "backend": keras.backend.backend(),
        "devices": distribution.describe(batch),
        "parameters": networks,
        "memory": memory_of(model, batch // len(distribution.devices), config),
        "data": f"{info.directory}: {info.train.examples:,} examples, "
        f"{info.train.tokens:,} tokens; "
        f"{info.validation.examples:,} held out",
        **{
            f"mix {number}": f"{other.fraction:g} of the examples are from "
            f"{other.name}, {other.info.train.examples:,} examples"
            for number, other in enumerate(mixed, 1)
        },
        "made with": describe(info),
        "step": f"{config.batch_size} x {config.sequence_length} = {tokens:,} tokens, "
        f"{per_step:.2e} FLOPs",
        "run": f"{config.steps:,} steps, {tokens * config.steps:.2e} tokens "
        f"({own * tokens * config.steps / max(1, info.train.tokens):.1f} epochs), "
        f"{per_step * config.steps:.2e} FLOPs",
        "output": str(output),
    }
    return "\n".join(f"{name + ':':12}{text}" for name, text in lines.items())


def memory_of(model, batch_size, config):
    """Returns what the banner says of memory, before the compiler can be asked."""
    state, activations, program = training_bytes(
        model, batch_size, config.sequence_length
    )
    weights = f"{state / 1e9:.2f} GB of weights and optimizer"
    if keras.backend.backend() == "jax":
        return f"{weights}; the compiler tells the rest at the first step"
    return (
        f"an estimate: {weights}, {activations / 1e9:.2f} GB of activations on each "
        "device; with the program "
        f"{(state + activations + program + process_bytes()) / 1e9:.2f} GB"
    )


#: The share of the most frequent token at which nothing is left to learn.
_TRIVIAL = 0.5


def table(model, metrics, unigram, mixed=(), before=None):
    """Returns the closing table: what was reached beside what guessing reaches.

    Args:
        model: The `Pretrainer`.
        metrics: Its validation metrics.
        unigram: The `Unigram` of the validation examples.
        mixed: Names of the corpora that are mixed in.
        before: The metrics of the model that the run started from, if any.
    """
    before = before or {}

    def numbers(metric):
        was = [f"{before[metric]:8.3f}"] if before else []
        return "".join([*was, f"{metrics[metric]:8.3f}"])

    baselines = model.objectives.baselines(metrics, unigram)
    metric_names = model.objectives.metric_names
    width = max([36, *(len(name) + 2 for name in metric_names.values())])
    names = f"{'before':>8}" * bool(before) + f"{'model':>8}"
    rows = [f"{'validation':{width}}{names}{'baseline':>10}"]
    for metric, name in metric_names.items():
        row = f"{name:{width}}{numbers(metric)}"
        if metric in baselines:
            value, kind = baselines[metric]
            row += f"{value:10.3f}  {kind}"
        rows.append(row)
    for number, corpus in enumerate(mixed, 1):
        rows.append(f"\nvalidation on {corpus}")
        for metric, name in metric_names.items():
            rows.append(f"{name:{width}}{numbers(f'mix_{number}_{metric}')}")
    if unigram.accuracy > _TRIVIAL:
        rows.append(
            f"\nThese numbers say nothing: {unigram.accuracy:.0%} of the validation "
            "text is one token, which is guessed, and told from others, without "
            "learning. Look at the corpus, and at how the vocabulary cuts it."
        )
    return "\n".join(rows)


def draw_curves(rows, path, baselines):
    """Draws the metrics of a run: losses, and rates between 0 and 1.

    Args:
        rows: The rows of `metrics.csv`.
        path: PNG file to write.
        baselines: What the model's `baselines` returned; baselines of losses are drawn.
    """
    from matplotlib.figure import Figure

    losses = [n for n in rows[0] if n.endswith("_loss") and not n.startswith("val_")]
    fractions = (
        *("accuracy", "auc", "precision", "recall", "fraction", "cosine", "f1"),
        "spread",
    )
    rates = [n for n in rows[0] if n.startswith("val_") and n.endswith(fractions)]
    panels = len(losses) + bool(rates)
    figure = Figure(figsize=(4.5 * panels, 4), layout="constrained")
    axes = figure.subplots(1, panels, squeeze=False)[0]
    steps = [row["step"] for row in rows]
    for axis, name in zip(axes, losses, strict=False):
        axis.plot(steps, [row[name] for row in rows], label="training")
        if f"val_{name}" in rows[0]:
            axis.plot(steps, [row[f"val_{name}"] for row in rows], label="validation")
        for mixed in (n for n in rows[0] if re.fullmatch(rf"val_mix_\d+_{name}", n)):
            label = f"validation, mix {mixed.split('_')[2]}"
            axis.plot(steps, [row[mixed] for row in rows], label=label)
        if name in baselines:
            value, kind = baselines[name]
            axis.axhline(value, color="gray", linestyle=":", label=kind)
        axis.set(title=name.replace("_", " "), xlabel="step", ylabel="nats")
        axis.legend()
    for name in rates:
        label = name.removeprefix("val_").replace("_", " ")
        axes[-1].plot(steps, [row[name] for row in rows], label=label)
    if rates:
        axes[-1].set(title="validation", xlabel="step", ylim=(0, 1))
        axes[-1].legend(loc="center right")
    for axis in axes:
        axis.grid(alpha=0.3)
    figure.savefig(path, dpi=110)


def first_examples(dataset, limit=3):
    """Returns the first examples of a dataset as NumPy arrays."""
    batch = next(iter(dataset))
    return {name: np.array(array)[:limit] for name, array in batch.items()}
