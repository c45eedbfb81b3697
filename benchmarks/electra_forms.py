"""Pretrains forms of ELECTRA for equally many steps, and fine-tunes them.

    python -m keras_corrupt.data prepare --corpus CORPUS --output DATA \\
        --sequence_length 64
    python -m benchmarks.electra_forms objectives DATA --glue GLUE_DIR --output RESULTS
    python -m benchmarks.electra_forms generators DATA --glue GLUE_DIR --output RESULTS

`objectives` are the steps from BERT to ELECTRA (Clark's thesis, 5.4.3, table 5.7),
`generators` its generators (5.3.2, figure 5.4) by their share of the encoder's width: a
quarter in ELECTRA itself. All have the encoder of the preset `tiny`, the same examples,
schedule, seed and number of steps, as in the thesis, so that narrow generators cost
less. Called again, it goes on where it was stopped; what both compare is trained once.
"""

import dataclasses
import statistics
from pathlib import Path
from typing import Literal

import tyro

from benchmarks import comparison, fine_tuning
from keras_corrupt.training.callbacks import read_metrics

FORMS = {
    "objectives": {
        "ELECTRA": ("Electra", {}),
        "All-Tokens MLM": ("AllTokensMLM", {}),
        "Replace MLM": ("ReplaceMLM", {}),
        "ELECTRA 15%": ("Electra", {"rtd_positions": "random"}),
        "BERT": ("MaskedLM", {}),
    },
    "generators": {
        "unigram": ("UnigramElectra", {}),
        "ELECTRA": ("Electra", {}),
        "1/2": ("Electra", {"generator_width": 0.5}),
        "3/4": ("Electra", {"generator_width": 0.75}),
        "1": ("Electra", {"generator_width": 1.0}),
    },
}


@dataclasses.dataclass
class Settings:
    """What to compare."""

    forms: tyro.conf.Positional[Literal["objectives", "generators"]]
    """Which forms."""
    data: tyro.conf.Positional[str]
    """A directory of prepared examples."""
    glue: str
    """GLUE's directory."""
    output: str
    """Directory for the runs, the table and the plot."""
    tasks: tuple[str, ...] = ("SST-2", "QNLI")
    """GLUE's tasks to fine-tune on."""
    steps: int = 10_000
    """Updates of each form."""
    batch_size: int = 64
    """Sequences in an update."""
    sequence_length: int = 64
    """Tokens in a sequence."""
    learning_rate: float = 2e-3
    """Peak learning rate."""
    warmup_steps: int = 1000
    """Updates until then. After 500, ELECTRA stays at an AUC of 0.55 for 10,000."""
    seeds: int = 3
    """Fine-tuning runs of each form and task; pretraining has one."""
    max_train_examples: int = 4000
    """Training examples of a task, at most."""
    max_dev_examples: int = 2000
    """Development examples of a task, at most."""


def configuration(name, settings):
    """Returns the `PretrainConfig` of a form."""
    model, objective = FORMS[settings.forms][name]
    return comparison.configuration(
        settings,
        Path(settings.output, "runs", name.replace("/", "_")),
        model=model,
        preset="tiny",
        objective=objective,
        batch_size=settings.batch_size,
        steps=settings.steps,
        interval=settings.steps // 10,
        warmup_steps=settings.warmup_steps,
        dtype="mixed_bfloat16",
    )


def row(name, settings):
    """Pretrains and fine-tunes a form; returns column -> value, or values of seeds."""
    config = configuration(name, settings)
    comparison.train(config)
    last = read_metrics(Path(config.output, "metrics.csv"))[-1]
    columns = {"FLOPs": settings.steps * comparison.step_flops(config)}
    columns |= {
        key: last[f"val_{key}"]
        for key in ("mlm_loss", "rtd_auc")
        if f"val_{key}" in last
    }
    tuning = fine_tuning.Settings(
        presets=(),
        glue=settings.glue,
        output=str(Path(settings.output, "tasks")),
        tasks=settings.tasks,
        seeds=settings.seeds,
        max_train_examples=settings.max_train_examples,
        max_dev_examples=settings.max_dev_examples,
    )
    preset = str(Path(config.output, "preset"))
    scores = fine_tuning.scores(tuning, preset, Path(config.output).name)
    return columns | {task: seeds for task, (_, seeds) in scores.items()}


def cell(value):
    """Writes a value, or the median of several and their range.

    >>> cell(0.51234), cell(3e14), cell([60.0, 62.0, 61.0]), cell(None)
    ('0.512', '3e+14', '61.0 (60.0 to 62.0)', '')
    """
    if isinstance(value, list):
        return f"{statistics.median(value):.1f} ({min(value):.1f} to {max(value):.1f})"
    return "" if value is None else f"{value:.3g}"


def table(rows):
    """Returns a Markdown table of name -> `row`."""
    names = list(dict.fromkeys(name for columns in rows.values() for name in columns))
    lines = [["", *names], ["---", *["---:"] * len(names)]]
    lines += [
        [name, *(cell(columns.get(key)) for key in names)]
        for name, columns in rows.items()
    ]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def draw(rows, settings):
    """Draws every fine-tuning run's score, form by form."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4 * len(settings.tasks), 3.5), layout="constrained")
    axes = figure.subplots(1, len(settings.tasks), squeeze=False)[0]
    for axis, task in zip(axes, settings.tasks, strict=True):
        for place, columns in enumerate(rows.values()):
            axis.plot([place] * settings.seeds, columns[task], "o", alpha=0.6)
        axis.set_xticks(range(len(rows)), list(rows), rotation=30, ha="right")
        axis.set(title=task, ylabel="score, development set")
        axis.grid(axis="y", alpha=0.3)
    figure.savefig(Path(settings.output, f"{settings.forms}.png"), dpi=110)


def main():
    settings = tyro.cli(Settings, description=__doc__, use_underscores=True)
    rows = {name: row(name, settings) for name in FORMS[settings.forms]}
    draw(rows, settings)
    Path(settings.output, f"{settings.forms}.md").write_text(table(rows) + "\n")
    print(table(rows))


if __name__ == "__main__":
    main()
