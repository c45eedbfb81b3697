"""Cross-View Training of taggers and parsers on one encoder.

    python recipes/cvt_multitask.py --task_file tasks.toml --unlabelled 'wiki/*.txt' \\
        --word_vectors glove.6B.300d.txt

The TOML file has a table for each task, its kind `tagging` (CoNLL's columns) or
`dependencies` (CoNLL-U):

    [chunks]
    kind = "tagging"
    train = "conll2000/train.txt"
    dev = "conll2000/dev.txt"
    scheme = "bioes"

A labelled batch is of one task, drawn at random. On text without labels all tasks'
auxiliary modules learn what their primary modules make of it, at once. Without
`--unlabelled` the same model learns from labelled sentences alone. Each task's model is
saved by itself. Without a file the command learns to tag and to parse the documentation
that comes with Python, by rules; trees need `pip install -e '.[parsing]'`.

Clark's thesis, 4.1.2: table 4.1 has the sizes and settings of `--preset base`, table
4.2 its scores; on chunking (CoNLL-2000) F1 is 96.6 with CVT, 96.9 with several tasks.
"""

import dataclasses

from keras_corrupt.cross_view import CrossViewMultiTaskConfig, main
from keras_corrupt.cross_view.tasks import TASK_KINDS
from keras_corrupt.tasks.task_files import read_task_file


@dataclasses.dataclass(frozen=True)
class Config(CrossViewMultiTaskConfig):
    task_file: str | None = None
    """The TOML file."""
    max_train: int | None = None
    """Labelled sentences of each task to use, from the first on; all if not given."""


def tasks(config):
    if config.task_file is None:
        from keras_corrupt.cross_view.tasks import made_tasks

        return [made_tasks.names_and_numbers(), made_tasks.long_and_short()]
    all_tasks = read_task_file(config.task_file, TASK_KINDS)
    return [task.first(config.max_train) for task in all_tasks]


def config():
    return Config(output="runs/cvt_multitask")


if __name__ == "__main__":
    main(config(), tasks, __doc__)
