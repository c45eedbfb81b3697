"""What systems have learned of grammar after equally many words.

    python recipes/babylm_strict_small.py --corpus train_10M --output RUNS/Electra
    python recipes/babylm_strict_small.py --corpus train_10M --variant masked_lm \\
        --output RUNS/MaskedLM
    python -m benchmarks.babylm RUNS/Electra RUNS/MaskedLM --blimp BLIMP_DIR \\
        --output RESULTS

Each preset that a run has kept judges minimal pairs. Any run with `--keep_presets` will
do. Pairs of equal scores are wrong by one rule and right by the other.
"""

import dataclasses
import json
from pathlib import Path

import tyro

from benchmarks import comparison
from keras_corrupt import scoring
from keras_corrupt.data import load_dataset_info
from keras_corrupt.models import load_preset


@dataclasses.dataclass
class Settings:
    """What to measure."""

    runs: tyro.conf.Positional[tuple[str, ...]]
    """Directories of runs, by the same settings but for the system."""
    blimp: str
    """A folder of minimal pairs."""
    output: str
    """Directory for the tables and the plot."""
    words: tuple[float, ...] = ()
    """Million words after which to judge; all marks that were kept if not given."""
    batch_size: int = 64
    """Texts that are read at once."""


def words_at(run, step):
    """Returns how many words a run had read after an update, in millions."""
    settings = json.loads((run / "run.json").read_text())
    train = load_dataset_info(settings["data"] or run / "data").train
    words = train.words / train.examples * settings["batch_size"] * step
    return round(words / 1e6, 1)


def judge(preset, pairs, batch_size):
    """Returns the shares of pairs judged right, in percent: name -> share."""
    texts = [pair.good for pair in pairs] + [pair.bad for pair in pairs]
    scores = scoring.acceptabilities(load_preset(preset), texts, batch_size)
    (_, fields, strict), (*_, lenient) = (
        scoring.accuracies(pairs, scores, ties) for ties in ("wrong", "right")
    )
    shares = {"ties wrong": strict["all"], "ties right": lenient["all"], **fields}
    return {name: round(100 * share, 1) for name, share in shares.items()}


def table(rows):
    """Returns the last rows of the runs in Markdown.

    >>> print(table([{"run": "a", "words": 1.0, "all": 50.0}] * 2))
    | run | words | all |
    |---|---:|---:|
    | a | 1.0 | 50.0 |
    """
    last = {row["run"]: row for row in rows}
    lines = [[*rows[0]], *([*map(str, row.values())] for row in last.values())]
    text = [f"| {' | '.join(line)} |" for line in lines]
    return "\n".join([text[0], f"|---|{'---:|' * (len(rows[0]) - 1)}", *text[1:]])


def draw(rows, path):
    """Draws the shares over the words, each run's from rule to rule."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 4), layout="constrained")
    axis = figure.subplots()
    for name in dict.fromkeys(row["run"] for row in rows):
        run = [row for row in rows if row["run"] == name]
        words = [row["words"] for row in run]
        low, high = (
            [row[f"ties {rule}"] for row in run] for rule in ("wrong", "right")
        )
        (line,) = axis.plot(words, low, "o-", label=name)
        axis.fill_between(words, low, high, color=line.get_color(), alpha=0.2)
    axis.axhline(50, color="gray", linestyle=":")
    axis.set(xlabel="million words", ylabel="minimal pairs judged right (%)")
    axis.grid(alpha=0.3)
    axis.legend()
    figure.savefig(path, dpi=110)


def main(settings):
    pairs, rows = scoring.read_pairs([settings.blimp]), []
    for run, step, preset in comparison.kept_presets(settings.runs):
        words = words_at(run, step)
        if settings.words and words not in settings.words:
            continue
        shares = judge(preset, pairs, settings.batch_size)
        rows.append({"run": run.name, "words": words, **shares})
        print(rows[-1], flush=True)
    if not rows:
        raise SystemExit(f"No run has kept a preset after --words {settings.words}.")
    output = Path(settings.output)
    comparison.write_rows(rows, output / "minimal_pairs.csv")
    draw(rows, output / "minimal_pairs.png")
    (output / "table.md").write_text(table(rows) + "\n")
    print(f"\n{table(rows)}")


if __name__ == "__main__":
    main(tyro.cli(Settings, description=__doc__, use_underscores=True))
