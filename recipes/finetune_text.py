"""A file of your own: texts or pairs of texts with a label or a score.

    python recipes/finetune_text.py --train reviews.csv --text review --label stars
    python recipes/finetune_text.py --preset PRESET --train train.tsv --dev dev.tsv \\
        --text premise --second_text hypothesis --label relation
    python recipes/finetune_text.py --preset PRESET --train reviews.csv \\
        --text review --template "{first} It was [MASK] ." \\
        --label_words good great bad terrible
    python recipes/finetune_text.py --train songs.csv --text lyrics --label moods \\
        --multi_label --separator "|"
    python recipes/finetune_text.py --preset PRESET --benchmark acl_arc \\
        --data citation_intent --seeds 5

Files are TSV, CSV or JSONL, also `.gz`. Columns go by name, or by number from 0 where
the file has no header. Rows that cannot be used are counted and named.

The third command trains by prompts, for presets of MaskedLM or CocoLM and few examples.
The fourth one is for texts with any number of labels: a text gets each label whose
probability reaches a threshold, the best one on the development examples. The last one
is a task of Gururangan et al. (2020), in the files that they released, with their
settings; Zheng et al. (2020, table 1) take the same four.
"""

import dataclasses
from typing import Literal

from keras_corrupt.downstream import FinetuneConfig, main
from keras_corrupt.tasks import miniature
from keras_corrupt.tasks.domain_tasks import DomainTask
from keras_corrupt.tasks.few_shot import prompted
from keras_corrupt.tasks.multi_label import MultiLabelTask
from keras_corrupt.tasks.tables import Columns, TableTask


@dataclasses.dataclass(frozen=True)
class Config(FinetuneConfig):
    train: str = "train.tsv"
    """File of the training examples."""
    dev: str | None = None
    """File of the examples to evaluate on; a part of `train` if not given."""
    test: str | None = None
    """File of examples to label, if any."""
    text: str = "text"
    """Column of the text."""
    second_text: str | None = None
    """Column of the second text, for pairs."""
    label: str = "label"
    """Column of the label or score."""
    id: str | None = None
    """Column of what identifies an example; they are counted if not given."""
    labels: tuple[str, ...] | None = None
    """The labels; those found in `train` if not given."""
    multi_label: bool = False
    """Whether a text has any number of labels: names with `separator` between them, or
    a list in JSONL."""
    separator: str = ","
    """What stands between two labels of a text."""
    balance: bool = False
    """Whether rare labels weigh as much in training as frequent ones."""
    regression: bool = False
    """Whether labels are scores: numbers."""
    score_range: tuple[float, float] | None = None
    """The least and the greatest score; found in `train` if not given."""
    dev_fraction: float = 0.1
    """Share of `train` to evaluate on where there is no `dev`."""
    template: str | None = None
    """A prompt, `{first}` (`{second}`) being the text(s): the word that is expected in
    the place of `[MASK]` tells the label."""
    label_words: dict[str, str] = dataclasses.field(default_factory=dict)
    """For a prompt: each label and its word."""
    benchmark: Literal["acl_arc", "scierc", "hyperpartisan", "ag_news"] | None = None
    """A known task, with its settings and published scores; needs `data` alone."""
    data: str = "."
    """Folder of the known task: `train.jsonl`, `dev.jsonl` and perhaps `test.jsonl`."""
    name: str | None = None
    """Name of the task in the results; the name of `train`, or of its folder if that is
    `train.tsv` or the like, if not given."""


#: Fields of a file of one's own.
OF_A_FILE = (
    *("train", "dev", "test", "text", "second_text", "label", "id", "labels"),
    *("name", "multi_label", "separator", "balance", "regression", "score_range"),
    *("dev_fraction", "template"),
)


def tasks(config):
    if config.label_words and not config.template:
        raise ValueError("`label_words` are of a prompt: give a `template`, too.")
    if config.benchmark:
        for name in OF_A_FILE:
            if getattr(config, name) != getattr(Config, name):
                raise ValueError(
                    f"`{name}` is for a file of your own, not for `benchmark`."
                )
        return [DomainTask(config.benchmark, config.data)]
    if config.balance and config.template:
        raise ValueError("`balance` has no effect on a `template`: leave one out.")
    if config.multi_label and (
        config.regression or config.score_range or config.template
    ):
        raise ValueError(
            "`multi_label` is for labels without a score: leave out `regression`, "
            "`score_range` and `template`."
        )
    names = (config.text, config.second_text, config.label, config.id)
    if config.text.isdecimal():  # the file has no header
        names = [int(name) if (name or "").isdecimal() else name for name in names]
    table = {
        "train": config.train,
        "columns": Columns(*names),
        "dev": config.dev,
        "test": config.test,
        "labels": config.labels,
        "dev_fraction": config.dev_fraction,
        "name": config.name,
        "balance": config.balance,
    }
    if config.multi_label:
        return [MultiLabelTask(**table, separator=config.separator)]
    task = TableTask(
        **table, regression=config.regression, score_range=config.score_range
    )
    if config.template:
        task = prompted(task, config.template, config.label_words)
    return [task]


def config():
    return Config(
        preset="tiny_en",
        output="runs/text",
        max_length=128,
    )


if __name__ == "__main__":
    main(config(), tasks, __doc__, miniature.text)
