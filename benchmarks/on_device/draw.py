"""Draws runs of `benchmarks.on_device`, and prints what they came to.

    python -m benchmarks.on_device.draw RESULTS/*.jsonl --output RESULTS

The table has the last measurement of each run, and of several seeds their range.
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
    """What `train` and `systems` wrote."""
    output: str
    """Directory of `curves.png` and `table.md`."""


def table(runs):
    """Returns what each run came to, in Markdown."""
    lines = [
        "| run | rate | beta_2 | updates | ms each | MLM loss | AUC | spread | dead |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for settings, rows in runs:
        last = rows[-1]
        milliseconds = sorted(row["ms"] for row in rows)[len(rows) // 2]
        lines.append(
            f"| {settings['name']} | {settings['learning_rate']:g} "
            f"| {settings['beta_2']:g} | {last['step']:,} | {milliseconds:.1f} "
            f"| {shown(last, 'mlm_loss', 2)} | {shown(last, 'rtd_auc', 3)} "
            f"| {shown(last, 'token_spread', 3)} "
            f"| {sum(map(bool, seeds(last['dead'])))} of {len(seeds(last['dead']))} |"
        )
    return "\n".join(lines)


def seeds(value):
    """Returns the numbers of all seeds, a list."""
    return value if isinstance(value, list) else [value]


def shown(row, name, digits):
    """Returns a measurement as text, empty where the system has none of it."""
    values = sorted(f"{x:.{digits}f}" for x in seeds(row.get(name, [])))
    return " to ".join(dict.fromkeys([*values[:1], *values[-1:]]))


def draw(runs, path):
    """Draws a curve for each run in each panel."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 7), layout="constrained")
    for axis, (title, (name, logarithmic)) in zip(
        figure.subplots(2, 2).flat, PANELS.items(), strict=True
    ):
        for number, (settings, rows) in enumerate(runs):
            if name in rows[0]:
                steps = [row["step"] for row in rows]
                values = [seeds(row[name]) for row in rows]
                label = [settings["name"], *[None] * (len(values[0]) - 1)]
                axis.plot(steps, values, color=f"C{number}", label=label)
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
