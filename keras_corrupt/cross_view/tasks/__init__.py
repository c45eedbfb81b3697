"""What only chapter 4 of Clark's thesis evaluates: trees, translations, images."""

import functools

from keras_corrupt.cross_view.tasks.dependencies import DependencyTask
from keras_corrupt.tasks.conll import TaggingTask
from keras_corrupt.tasks.task_files import KINDS

#: What a TOML file of tasks can name for Cross-View Training: see `read_task_file`.
TASK_KINDS = {
    # Spans as the thesis tags them (4.3.1).
    "tagging": (functools.partial(TaggingTask, scheme="bioes"), KINDS["tagging"][1]),
    "dependencies": (DependencyTask, ("punctuation", "subtypes")),
}
