"""Born-Again Multi-Task networks: one model that learns many tasks of their teachers.

    python recipes/finetune_multitask.py --data GLUE_DIR --tasks RTE MRPC CoLA --distill
    python recipes/finetune_multitask.py --preset PRESET --task_file my_tasks.toml \\
        --distill --seeds 5
    python recipes/finetune_multitask.py --data GLUE_DIR --strategies single_to_multi \\
        single_to_multi_then_single no_annealing_0 --seeds 5

Clark's thesis, chapter 3. It trains a model of each task and one of all of them; with
`--distill` another one of all tasks, which the first ones teach: at first it learns
from their outputs, at last from the labels. It prints the median of the runs side by
side, with their significance. `--smoke` does all of it in a minute or two.

Stopped, the same command goes on where it was. Without `--preset` it starts from
`tiny_en`. Table 3.1, BERT-Large, 20 runs: average of GLUE without WNLI 84.0 for single
tasks, 85.5 for all in one model, 86.0 for such a model with teachers.

Tasks of your own are in a TOML file (`keras_corrupt/tasks/task_files.py`):

    [reviews]
    kind = "text"
    train = "reviews.csv"
    text = "review"
    label = "stars"

    [chunks]
    kind = "tagging"
    train = "train.conll"
    dev = "dev.conll"
"""

import dataclasses

from keras_corrupt.downstream import main
from keras_corrupt.multitask import MultiTaskConfig
from keras_corrupt.tasks import miniature
from keras_corrupt.tasks.glue import TASKS, GlueTask, WinogradTask
from keras_corrupt.tasks.task_files import read_task_file


@dataclasses.dataclass(frozen=True)
class Config(MultiTaskConfig):
    data: str = "tfds:glue"
    """A directory in GLUE's layout (`CoLA/train.tsv`, ...), or `tfds:glue`."""
    tasks: tuple[str, ...] | None = None
    """Which tasks of GLUE; without a `task_file` all but WNLI if not given."""
    task_file: str | None = None
    """A TOML file that names the files and columns of tasks, beside GLUE's tasks."""


def tasks(config):
    names = config.tasks
    if names is None:
        names = () if config.task_file else [t for t in TASKS if t != "WNLI"]
    of_glue = [
        WinogradTask(config.data) if name == "WNLI" else GlueTask(name, config.data)
        for name in names
    ]
    return of_glue + (read_task_file(config.task_file) if config.task_file else [])


def run(tasks, config):
    from keras_corrupt.multitask import run

    return run(tasks, config)


def config():
    return Config(
        preset="tiny_en",
        output="runs/multitask",
        max_length=128,
    )


if __name__ == "__main__":
    main(config(), tasks, __doc__, miniature.glue, run)
