"""Trains with one mask of each text, with K independent and with K disjoint ones.

    python -m keras_corrupt.data prepare --corpus CORPUS --output DATA \\
        --sequence_length 64
    python -m benchmarks.fully_explored DATA --output RESULTS

Equal compute (Zheng et al., 2020, section 4.2): every update has `--sequences` masked
sequences, of as many texts or of a K-th of them, and all runs have the same steps,
schedule and mask rate, and for a seed the same first weights. All are validated with
one mask of each text. Called again, it goes on where it was stopped.
"""

import csv
import dataclasses
from pathlib import Path

import numpy as np
import tyro

from benchmarks import comparison
from keras_corrupt.training.callbacks import read_metrics

COLUMNS = ("method", "masks", "seed", "step", "flops", "val_mlm_loss")


@dataclasses.dataclass
class Settings:
    """What to train."""

    data: tyro.conf.Positional[str]
    """A directory of prepared examples."""
    output: str
    """Directory for the runs, the table and the plot."""
    preset: str = "tiny"
    """Size of the encoder."""
    masks: tuple[int, ...] = (2, 4, 8)
    """Values of K."""
    seeds: int = 3
    """Runs of each."""
    steps: int = 6000
    """Updates of each run."""
    intervals: int = 20
    """Points of the curves."""
    sequences: int = 64
    """Masked sequences in an update; every K divides it."""
    sequence_length: int = 64
    """Tokens in a sequence."""
    mask_rate: float = 0.125
    """Fraction of the tokens in a mask; K of them are all tokens at most."""
    learning_rate: float = 2e-3
    """Peak learning rate."""
    dtype: str = "mixed_bfloat16"
    """Precision."""


def methods(settings):
    """Returns name -> (masks of a text, whether they are disjoint)."""
    several = {
        f"{masks} {kind}": (masks, kind == "disjoint")
        for masks in settings.masks
        for kind in ("independent", "disjoint")
    }
    return {"MaskedLM": (1, True), **several}


def configuration(name, seed, settings):
    """Returns the `PretrainConfig` of a run."""
    masks, disjoint = methods(settings)[name]
    interval = settings.steps // settings.intervals
    objective = {"mask_rate": settings.mask_rate}
    objective |= {"num_masks": masks, "disjoint_masks": disjoint}
    return comparison.configuration(
        settings,
        Path(settings.output, "runs", f"{name}, seed {seed}"),
        model="MaskedLM",
        preset=settings.preset,
        objective=objective,
        batch_size=settings.sequences // masks,
        steps=interval * settings.intervals,
        interval=interval,
        # All see the same number of held-out texts.
        validation_batches=50 * masks,
        warmup_steps=interval,
        seed=seed,
        dtype=settings.dtype,
    )


def check(settings):
    """Raises a `ValueError` for settings that compare nothing."""
    wrong = [masks for masks in settings.masks if settings.sequences % masks]
    if wrong:
        raise ValueError(
            f"--sequences {settings.sequences} cannot be divided by {wrong[0]}."
        )
    if not 1 <= settings.intervals <= settings.steps or settings.seeds < 1:
        raise ValueError("--seeds, --intervals and --steps must be 1 or more.")
    for name in methods(settings):
        configuration(name, 0, settings).check()


def curves_of(rows):
    """Returns method -> losses, NumPy `[seeds, points]`."""
    curves = {}
    for row in rows:
        seeds = curves.setdefault(row["method"], {})
        seeds.setdefault(row["seed"], []).append(row["val_mlm_loss"])
    return {name: np.array(list(seeds.values())) for name, seeds in curves.items()}


def ahead_from(losses, others):
    """Returns the first point from which one mean is below another's up to the end.

    >>> ahead_from(np.array([[3.0, 2.0, 1.0]]), np.array([[2.9, 2.1, 1.1]]))
    1

    `None` if it is not at the end.
    """
    behind = np.flatnonzero(losses.mean(axis=0) >= others.mean(axis=0))
    first = 0 if not len(behind) else int(behind[-1]) + 1
    return first if first < losses.shape[1] else None


def table(curves, flops):
    """Returns the table, in Markdown.

    Args:
        curves: What `curves_of` returned.
        flops: Training FLOPs at each point.
    """
    usual = curves["MaskedLM"]
    lines = [
        "| masks of a text | loss at the end | less than MaskedLM's | ahead from "
        "(FLOPs) | less than independent |",
        "|---|---:|---:|---:|---:|",
    ]
    for name, losses in curves.items():
        cells = [name, comparison.with_error(losses[:, -1]), "", "", ""]
        if name != "MaskedLM":
            cells[2] = comparison.with_error(usual[:, -1] - losses[:, -1])
            point = ahead_from(losses, usual)
            cells[3] = "never" if point is None else f"{flops[point]:.2e}"
        if name.endswith(" disjoint"):
            other = curves[name.replace("disjoint", "independent")]
            cells[4] = comparison.with_error(other[:, -1] - losses[:, -1])
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def draw(curves, flops, path):
    """Draws the curves of each K beside MaskedLM's; bands are from least to most."""
    from matplotlib.figure import Figure

    numbers = sorted({int(name.split()[0]) for name in curves if name != "MaskedLM"})
    figure = Figure(figsize=(4.5 * len(numbers), 4), layout="constrained")
    axes = figure.subplots(1, len(numbers), squeeze=False, sharey=True)[0]
    for axis, masks in zip(axes, numbers, strict=True):
        for name in ("MaskedLM", f"{masks} independent", f"{masks} disjoint"):
            losses = curves[name]
            axis.plot(flops, losses.mean(axis=0), label=name)
            axis.fill_between(flops, losses.min(axis=0), losses.max(axis=0), alpha=0.2)
        axis.set(title=f"{masks} masks", xlabel="training FLOPs")
        axis.grid(alpha=0.3)
        axis.legend()
    axes[0].set_ylabel("held-out masked LM loss (nats)")
    figure.savefig(path, dpi=110)


def main(settings):
    check(settings)
    output, rows = Path(settings.output), []
    # The same for all.
    cost = comparison.step_flops(configuration("MaskedLM", 0, settings))
    # Seed by seed, so that a stopped comparison has all methods of some seeds.
    for seed in range(settings.seeds):
        for name, (masks, _) in methods(settings).items():
            config = configuration(name, seed, settings)
            comparison.train(config)
            for row in read_metrics(Path(config.output) / "metrics.csv"):
                values = (name, masks, seed, row["step"], row["step"] * cost)
                values = (*values, row["val_mlm_loss"])
                rows.append(dict(zip(COLUMNS, values, strict=True)))
    with open(output / "losses.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows(rows)
    first = [r for r in rows if (r["method"], r["seed"]) == ("MaskedLM", 0)]
    flops, curves = [row["flops"] for row in first], curves_of(rows)
    draw(curves, flops, output / "curves.png")
    text = table(curves, flops)
    (output / "table.md").write_text(text + "\n")
    print(f"\n{text}")


if __name__ == "__main__":
    try:
        main(tyro.cli(Settings, description=__doc__, use_underscores=True))
    except ValueError as error:
        raise SystemExit(f"Error: {error}") from error
