"""How cosines of texts' vectors change while systems train.

    python -m benchmarks.equal_compute DATA --output RUNS --keep_presets \\
        --systems CocoLM Electra MaskedLM
    python -m benchmarks.similarity_growth RUNS/CocoLM RUNS/Electra RUNS/MaskedLM \\
        --data GLUE_DIR --output RESULTS

Meng et al., "COCO-LM", 2021, figures 1, 5 and 7: cosines of pairs of STS-B that are
equal in meaning, and of random ones, by the presets that a run has kept. See
`keras_corrupt.evaluation.similarity`.
"""

import dataclasses
from pathlib import Path
from typing import Literal

import tyro

from benchmarks import comparison
from keras_corrupt.evaluation.similarity import measure
from keras_corrupt.tasks.glue import GlueTask


@dataclasses.dataclass
class Settings:
    """What to measure."""

    runs: tyro.conf.Positional[tuple[str, ...]]
    """Directories of runs that have kept presets."""
    output: str
    """Directory of the table and the plot."""
    data: str = "tfds:glue"
    """A directory in GLUE's layout (`STS-B/dev.tsv`), or `tfds:glue`."""
    pooling: Literal["cls", "mean"] = "cls"
    """A text's vector: the vector of [CLS], or the mean over all tokens."""


def main(settings):
    split = GlueTask("STS-B", settings.data).splits["dev"]
    rows, output = [], Path(settings.output)
    for run, step, preset in comparison.kept_presets(settings.runs):
        similarity = measure(str(preset), split, settings.pooling)
        row = {
            "run": run.name,
            "step": step,
            "spearman": round(similarity.spearman, 1),
            "similar": round(float(similarity.similar.mean()), 4),
            "random": round(float(similarity.random.mean()), 4),
        }
        print(row, flush=True)
        rows.append(row)
    comparison.write_rows(rows, output / "similarity.csv")
    draw(rows, output / "similarity_growth.png")


def draw(rows, path):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4), layout="constrained")
    cosines, spearman = figure.subplots(1, 2)
    for number, name in enumerate(dict.fromkeys(row["run"] for row in rows)):
        run = [row for row in rows if row["run"] == name]
        x, color = [row["step"] / run[-1]["step"] for row in run], f"C{number}"
        for pairs, line in (("similar", "-"), ("random", "--")):
            y, label = [row[pairs] for row in run], f"{name}, {pairs} pairs"
            cosines.plot(x, y, line, color=color, label=label)
        spearman.plot(x, [row["spearman"] for row in run], color=color, label=name)
    cosines.set(title="mean cosine of texts' vectors", xlabel="part of the run's FLOPs")
    spearman.set(title="Spearman with people's scores, %", xlabel=cosines.get_xlabel())
    for axis in (cosines, spearman):
        axis.grid(alpha=0.3)
        axis.legend()
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main(tyro.cli(Settings, description=__doc__, use_underscores=True))
