"""The picture of docs/scoring.md: a run's curve, and the words its model suspects.

    python -m benchmarks.picture --runs runs/electra_tiny_en runs/electra_tiny_en_128 \\
        --output picture.png

Left, the validation curve of the runs, of which each began with the one before; right,
sentences of `swapped_words.py` with their wrong word, each word on a ground as dark as
it is likely to be a replacement.
"""

import dataclasses
from pathlib import Path

import tyro

from benchmarks.swapped_words import SENTENCES, variants

CHARACTER, LINE = 0.0162, 0.115  # of the right panel's width and height


@dataclasses.dataclass
class Settings:
    """What to draw."""

    runs: tuple[str, ...]
    """Directories of finished runs."""
    output: str
    """File to write."""
    sentences: int = 8
    """How many."""


def draw_curve(axes, runs):
    start = 0
    for number, rows in enumerate(runs):
        steps = [start + row["step"] for row in rows]
        axes.plot(steps, [row["val_rtd_auc"] for row in rows], color=f"C{number}")
        start = steps[-1]
    axes.axhline(0.5, color="gray", linestyle=":", label="chance")
    axes.set(xlabel="step", ylabel="replaced token detection, AUC", xlim=0)
    axes.legend(loc="lower right", frameon=False)
    axes.grid(alpha=0.3)


def draw_sentences(axes, model, sentences):
    from keras_corrupt.scoring import replaced_words

    axes.set_axis_off()
    for line, words in enumerate(replaced_words(model, sentences)):
        place = 0.0
        for word in words:
            axes.text(
                place,
                0.95 - line * LINE,
                word.text,
                family="monospace",
                fontsize=9,
                transform=axes.transAxes,
                bbox={
                    "facecolor": (1.0, 0.55, 0.0, word.score**2),
                    "edgecolor": "none",
                    "pad": 1.5,
                },
            )
            place += CHARACTER * (len(word.text) + 1)


def main():
    settings = tyro.cli(Settings, description=__doc__, use_underscores=True)
    import matplotlib.pyplot as plt

    from keras_corrupt.models import load_preset
    from keras_corrupt.training.callbacks import read_metrics

    rows = [read_metrics(Path(run, "metrics.csv")) for run in settings.runs]
    model = load_preset(Path(settings.runs[-1], "preset"))
    wrong = [variants(sentence)[1] for sentence in SENTENCES[: settings.sentences]]
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(8.8, 3), width_ratios=(1, 1.45), layout="constrained"
    )
    draw_curve(left, rows)
    draw_sentences(right, model, wrong)
    title = "one word of each is wrong; dark: likely to have been replaced"
    right.set_title(title, fontsize=9, loc="left")
    figure.savefig(settings.output, dpi=150)


if __name__ == "__main__":
    main()
