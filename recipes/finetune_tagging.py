"""Tags of words: chunks, named entities, parts of speech, in CoNLL's column files.

    python recipes/finetune_tagging.py --train conll2000/train.txt \\
        --dev conll2000/dev.txt
    python recipes/finetune_tagging.py --preset PRESET --scheme plain \\
        --train en_ewt-ud-train.conllu --dev en_ewt-ud-dev.conllu --tag_column 3

Reports the F1 of whole spans, or the accuracy of plain tags. Clark's thesis (2.6.1)
describes the tasks; it has no result of ELECTRA on them.
"""

import dataclasses
from typing import Literal

from keras_corrupt.downstream import FinetuneConfig, main
from keras_corrupt.tasks import miniature
from keras_corrupt.tasks.conll import TaggingTask


@dataclasses.dataclass(frozen=True)
class Config(FinetuneConfig):
    train: str = "train.txt"
    """File of the training sentences."""
    dev: str = "dev.txt"
    """File of the sentences to evaluate on."""
    test: str | None = None
    """File of sentences to tag, if any."""
    word_column: int | None = None
    """Column of the words, from 0; the first, or CoNLL-U's second, if not given."""
    tag_column: int | None = None
    """Column of the tags, from 0; the last, or CoNLL-U's fourth, if not given."""
    scheme: Literal["bio", "bioes", "plain"] = "bio"
    """How the model tags spans, whatever the files do; `plain` for other tags."""
    name: str = "tagging"
    """Name of the task in the results."""


def tasks(config):
    files = {"train": config.train, "dev": config.dev}
    if config.test:
        files["test"] = config.test
    columns = config.word_column, config.tag_column
    return [TaggingTask(config.name, files, *columns, config.scheme)]


def config():
    return Config(
        preset="tiny_en",
        output="runs/tagging",
        max_length=128,
    )


if __name__ == "__main__":
    main(config(), tasks, __doc__, miniature.tagging)
