"""Draws runs of `benchmarks.on_device`, and prints what they came to.

    python -m benchmarks.on_device.draw RESULTS/*.jsonl --output RESULTS

The table has the last measurement of each run, the lowest AUC of all measurements, and
of several seeds their range. The words are the masked ones; Electric's two towers
predict all words.
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
        "| run | rate | beta_2 | updates | ms each | words' loss | accuracy "
        "| AUC | lowest AUC | spread | dead |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for settings, rows in runs:
        last = rows[-1]
        words = "mlm" if "mlm_loss" in last else "cloze"
        aucs = zip(*(seeds(row.get("rtd_auc")) for row in rows), strict=True)
        milliseconds = sorted(row["ms"] for row in rows)[len(rows) // 2]
        lines.append(
            f"| {settings['name']} | {settings['learning_rate']:g} "
            f"| {settings['beta_2']:g} | {last['step']:,} | {milliseconds:.1f} "
            f"| {shown(last.get(f'{words}_loss'), 2)} "
            f"| {shown(last.get(f'{words}_accuracy'), 3)} "
            f"| {shown(last.get('rtd_auc'), 3)} | {shown([*map(min, aucs)], 3)} "
            f"| {shown(last.get('token_spread'), 3)} "
            f"| {sum(map(bool, seeds(last['dead'])))} of {len(seeds(last['dead']))} |"
        )
    return "\n".join(lines)


def seeds(value):
    """Returns the numbers of all seeds, a list, empty if there is no value."""
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def shown(value, digits):
    """Returns a measurement as text, empty where the system has none of it."""
    values = [f"{x:.{digits}f}" for x in sorted(seeds(value))]
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
    # Every run has a spread, and so a curve in the third panel.
    handles = figure.axes[2].get_legend_handles_labels()
    figure.legend(*handles, loc="outside lower center", ncols=4)
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
