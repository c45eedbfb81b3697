"""What pretraining is worth: presets against an encoder with new weights.

    python -m benchmarks.fine_tuning --presets tiny_en --glue GLUE_DIR \\
        --conll2000 CONLL2000_DIR --wnut17 WNUT17_DIR --output runs/tiny_en
    python -m benchmarks.fine_tuning --presets RESULTS/*/preset ...

Fine-tunes each, and the first one's encoder with new weights, with the same settings
and examples, on nine tasks (`--tasks`), and prints the median of the seeds and their
range on the development sets. `scores.png` is the plot. The directories are in the
tasks' own layouts (`CoLA/train.tsv`, ...; `train.txt`, `dev.txt`; `train.conll`,
`dev.conll`). Presets that were adapted to a domain are compared on its tasks:

    python -m benchmarks.fine_tuning --presets tiny_en RUNS/*/preset --seeds 5 \\
        --domain_tasks DIR --tasks acl_arc scierc --no_new_weights --output RESULTS
"""

import dataclasses
import statistics
from pathlib import Path

import tyro

from keras_corrupt.downstream import FinetuneConfig, finetune
from keras_corrupt.evaluation.similarity import name_of
from keras_corrupt.tasks.domain_tasks import DOMAIN_TASKS, DomainTask

LONG = ("CoLA", "SST-2", "QQP", "QNLI", "MNLI", "CoNLL-2000")
#: Small sets, which want more passes.
SHORT = ("MRPC", "STS-B", "RTE", "WNUT-17", *DOMAIN_TASKS)
NINE = tuple(n for n in LONG + SHORT if n not in ("MNLI", *DOMAIN_TASKS))
NEW = "new weights"


@dataclasses.dataclass
class Settings:
    """What to measure."""

    presets: tuple[str, ...]
    """Trained presets' names, or presets' directories; a run's is known by the run."""
    output: str
    """Directory of the results."""
    glue: str = "GLUE"
    """GLUE's directory."""
    conll2000: str = "conll2000"
    """CoNLL-2000's directory."""
    wnut17: str = "wnut17"
    """WNUT-17's directory."""
    domain_tasks: str = "domain_tasks"
    """Directory of the domains' tasks (`acl_arc/train.jsonl`, ...)."""
    tasks: tuple[str, ...] = NINE
    """Which tasks."""
    new_weights: bool = True
    """Whether to fine-tune an encoder with new weights, too."""
    seeds: int = 3
    """Runs of each."""
    max_train_examples: int = 4000
    """Training examples of a task, at most."""
    max_dev_examples: int = 2000
    """Development examples of a task, at most."""
    learning_rate: float = 5e-4
    """Peak of the learning rate."""
    epochs: tuple[int, int] = (5, 10)
    """Passes over large and over small training sets."""
    dtype: str = "mixed_bfloat16"
    """Precision."""
    dropout: float | None = None
    """Dropout rate; the presets' own if not given."""


def tasks(settings, names):
    """Returns the tasks of these names that are wanted."""
    from keras_corrupt.tasks.conll import TaggingTask
    from keras_corrupt.tasks.glue import GlueTask

    tagging = {
        "CoNLL-2000": (settings.conll2000, "txt"),
        "WNUT-17": (settings.wnut17, "conll"),
    }
    for name in names:
        if name not in settings.tasks:
            continue
        if name in DOMAIN_TASKS:
            yield DomainTask(name, f"{settings.domain_tasks}/{name}")
        elif name in tagging:
            folder, suffix = tagging[name]
            files = {split: f"{folder}/{split}.{suffix}" for split in ("train", "dev")}
            yield TaggingTask(name, files, None, None, "bio")
        else:
            yield GlueTask(name, settings.glue)


def scores(settings, preset, column):
    """Fine-tunes on all tasks: name -> (metric, score of each seed)."""
    results = {}
    own = {} if settings.dropout is None else {"dropout": settings.dropout}
    for names, epochs in zip((LONG, SHORT), settings.epochs, strict=True):
        config = FinetuneConfig(
            preset=preset,
            output=f"{settings.output}/{column}/{epochs}",
            seeds=settings.seeds,
            retries=0,
            load_weights=column != NEW,
            max_length=128,
            max_train_examples=settings.max_train_examples,
            max_dev_examples=settings.max_dev_examples,
            dtype=settings.dtype,
            settings={
                "learning_rate": settings.learning_rate,
                "epochs": epochs,
                "weight_decay": 0.01,
                "report": "best",
                **own,
            },
        )
        if chosen := list(tasks(settings, names)):
            for row in finetune(chosen, config):
                metric = row.results[0]["metric"]
                results[row.task] = metric, [run["score"] for run in row.results]
    return results


def table(columns):
    """Returns a Markdown table of `scores` by column."""
    lines = [["task", "metric", *columns], ["---", "---", *["---:"] * len(columns)]]
    for task, (metric, _) in next(iter(columns.values())).items():
        cells = []
        for kind in columns.values():
            _, runs = kind[task]
            middle = statistics.median(runs)
            cells.append(f"{middle:.1f} ({min(runs):.1f} to {max(runs):.1f})")
        lines.append([task, metric, *cells])
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def plot(columns, path):
    """Draws every run's score, task by task."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 3.5))
    for number, (kind, rows) in enumerate(columns.items()):
        offset = 0.6 * ((number + 0.5) / len(columns) - 0.5)
        places = [
            (index + offset, score)
            for index, (_, runs) in enumerate(rows.values())
            for score in runs
        ]
        axes.plot(*zip(*places, strict=True), "o", alpha=0.6, label=kind)
    names = next(iter(columns.values()))
    axes.set_xticks(range(len(names)), names, rotation=30, ha="right")
    axes.set_ylabel("score, development set")
    axes.grid(axis="y", alpha=0.3)
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    figure.savefig(path, dpi=150, bbox_inches="tight")


def main():
    settings = tyro.cli(Settings, description=__doc__, use_underscores=True)
    if unknown := {*settings.tasks} - {*LONG, *SHORT}:
        raise SystemExit(f"--tasks may be {LONG + SHORT}; got {sorted(unknown)}.")
    columns = {name_of(preset): preset for preset in settings.presets}
    if len(columns) < len(settings.presets):
        raise SystemExit(f"Two of {settings.presets} have one name: {[*columns]}.")
    if settings.new_weights:
        columns[NEW] = settings.presets[0]
    results = {name: scores(settings, preset, name) for name, preset in columns.items()}
    plot(results, Path(settings.output, "scores.png"))
    print(table(results))


if __name__ == "__main__":
    main()
