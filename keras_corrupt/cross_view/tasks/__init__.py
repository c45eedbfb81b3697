"""What only chapter 4 of Clark's thesis evaluates: trees, translations, images."""

from keras_corrupt.cross_view.tasks.dependencies import DependencyTask
from keras_corrupt.tasks.task_files import KINDS

#: What a TOML file of tasks can name for Cross-View Training: see `read_task_file`.
TASK_KINDS = {
    "tagging": KINDS["tagging"],
    "dependencies": (DependencyTask, ("punctuation", "subtypes")),
}
