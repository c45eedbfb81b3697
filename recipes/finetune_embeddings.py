"""Vectors of texts, learned from pairs of texts that mean the same.

    python recipes/finetune_embeddings.py --train pairs.csv --text question \\
        --second_text answer
    python recipes/finetune_embeddings.py --preset PRESET --train nli.tsv \\
        --text premise --second_text entailment --hard_negative contradiction \\
        --dev sts.tsv --score score
    python recipes/finetune_embeddings.py --benchmark sts_b --data GLUE_DIR

Files are TSV, CSV or JSONL, also `.gz`. Columns go by name, or by number from 0 where
the file has no header. `dev` has pairs with scores, in the same two columns; without
it, some pairs of `train` are held out, to be told from texts that are no pair.

The third command learns from the pairs of MNLI, QQP and MRPC that mean the same, and is
judged on STS-B's development set. SimCSE (Gao et al., 2021), which learns from pairs of
natural language inference, reports an average Spearman's correlation of 81.6 on seven
tasks with BERT-Base.
"""

import dataclasses
from typing import Literal

from keras_corrupt.downstream import FinetuneConfig, main
from keras_corrupt.tasks import miniature
from keras_corrupt.tasks.sentence_pairs import pairs_of_glue, pairs_of_tables
from keras_corrupt.tasks.tables import Columns


@dataclasses.dataclass(frozen=True)
class Config(FinetuneConfig):
    train: str = "train.tsv"
    """File of the pairs to learn from."""
    text: str = "text"
    """Column of the first text."""
    second_text: str = "second_text"
    """Column of the text that means the same."""
    hard_negative: str | None = None
    """Column of a text that is like the first one and means something else, if any."""
    dev: str | None = None
    """File of pairs with scores; pairs that are held out of `train` if not given."""
    score: str = "score"
    """Column of the scores in `dev`."""
    dev_fraction: float = 0.1
    """Share of `train` to evaluate on where there is no `dev`."""
    temperature: float = 0.05
    """What cosines are divided by: lower, and the hardest negatives count more."""
    symmetric: bool = False
    """Whether second texts learn to find the first ones, too."""
    benchmark: Literal["sts_b"] | None = None
    """A known task; needs `data` alone."""
    data: str = "tfds:glue"
    """For the known task: a directory in GLUE's layout, or `tfds:glue`."""
    name: str | None = None
    """Name of the task in the results; the name of `train`, or of its folder if that is
    `train.tsv` or the like, if not given."""


def tasks(config):
    options = {"temperature": config.temperature, "symmetric": config.symmetric}
    if config.benchmark:
        return [pairs_of_glue(config.data, **options)]
    names = (config.text, config.second_text, config.hard_negative, config.score)
    if config.text.isdecimal():  # the file has no header
        names = [int(name) if (name or "").isdecimal() else name for name in names]
    text, second_text, third_text, score = names
    task = pairs_of_tables(
        config.train,
        Columns(text, second_text, third_text=third_text),
        dev=config.dev,
        score=score,
        dev_fraction=config.dev_fraction,
        name=config.name,
        **options,
    )
    return [task]


def config():
    return Config(
        preset="tiny_en",
        output="runs/embeddings",
        max_length=128,
    )


if __name__ == "__main__":
    main(config(), tasks, __doc__, miniature.pairs)
