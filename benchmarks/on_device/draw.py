"""Draws runs of `benchmarks.on_device.train`, and prints what they came to.

    python -m benchmarks.on_device.draw RESULTS/*.jsonl --output RESULTS

The table has the last measurement of each run.
"""

import dataclasses
import json
from pathlib import Path

import tyro

#: Title of a panel -> the measurement it shows, and whether its axis is logarithmic.
PANELS = {
    "masked LM loss, nats": ("mlm_loss", False),
    "replaced token detection, AUC": ("rtd_auc", False),
    "spread of the last layer": ("token_spread", True),
    "largest gradient norm": ("largest_gradient_norm", True),
}


@dataclasses.dataclass
class Drawing:
    """What to draw."""

    files: tyro.conf.Positional[tuple[str, ...]]
    """What `train` wrote."""
    output: str
    """Directory of `curves.png` and `table.md`."""


def table(runs):
    """Returns what each run came to, in Markdown."""
    lines = [
        "| run | rate | beta_2 | updates | ms each | MLM loss | AUC | spread | dead |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---|",
    ]
    for settings, rows in runs:
        last = rows[-1]
        milliseconds = sorted(row["ms"] for row in rows)[len(rows) // 2]
        lines.append(
            f"| {settings['name']} | {settings['learning_rate']:g} "
            f"| {settings['beta_2']:g} | {last['step']:,} | {milliseconds:.1f} "
            f"| {last['mlm_loss']:.2f} | {last['rtd_auc']:.3f} "
            f"| {last['token_spread']:.3f} | {'yes' if last['dead'] else 'no'} |"
        )
    return "\n".join(lines)


def draw(runs, path):
    """Draws a curve for each run in each panel."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 7), layout="constrained")
    for axis, (title, (name, logarithmic)) in zip(
        figure.subplots(2, 2).flat, PANELS.items(), strict=True
    ):
        for settings, rows in runs:
            steps, values = zip(*((r["step"], r[name]) for r in rows), strict=True)
            axis.plot(steps, values, label=settings["name"])
        axis.set(
            title=title, xlabel="update", yscale="log" if logarithmic else "linear"
        )
        axis.grid(alpha=0.3)
    figure.axes[0].legend()
    figure.savefig(path, dpi=120)


def main(drawing):
    """Writes and prints what the module's text says."""
    runs = []
    for path in drawing.files:
        settings, *rows = map(json.loads, Path(path).read_text().splitlines())
        runs.append((settings, rows))
    text = table(runs)
    Path(drawing.output, "table.md").write_text(text + "\n")
    draw(runs, Path(drawing.output, "curves.png"))
    print(text)


if __name__ == "__main__":
    main(tyro.cli(Drawing, description=__doc__))
