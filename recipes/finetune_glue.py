"""GLUE: nine tasks of understanding English, fine-tuned as the encoder's paper did.

    python recipes/finetune_glue.py --data GLUE_DIR --tasks MRPC RTE
    python recipes/finetune_glue.py --data GLUE_DIR --preset runs/electra_small/preset

Without `--preset` it fine-tunes `tiny_en`, which comes with the package. It prints the
median of each task's runs, for base and large encoders beside what papers
report (development sets). The thesis takes 10 runs, `--seeds 10`.
Clark's thesis, table 5.3, has only averages for the smaller sizes: ELECTRA-Small 79.9,
ELECTRA-Base 85.1, of eight tasks without WNLI; TEAMS, table 1: 80.7 and 85.6.

The thesis starts RTE and STS from a model of MNLI (5.2.4). So does a second run:

    python recipes/finetune_glue.py --preset runs/glue/MNLI/published/preset \\
        --tasks RTE STS-B MRPC --output runs/glue_from_mnli
"""

import dataclasses

from keras_corrupt.downstream import FinetuneConfig, main
from keras_corrupt.tasks import miniature
from keras_corrupt.tasks.glue import TASKS, GlueTask, WinogradTask


@dataclasses.dataclass(frozen=True)
class Config(FinetuneConfig):
    data: str = "tfds:glue"
    """A directory in GLUE's layout (`CoLA/train.tsv`, ...), or `tfds:glue`."""
    tasks: tuple[str, ...] = tuple(task for task in TASKS if task != "WNLI")
    """Which tasks. WNLI is trained as the ranking of candidates."""


def tasks(config):
    return [
        WinogradTask(config.data) if name == "WNLI" else GlueTask(name, config.data)
        for name in config.tasks
    ]


def config():
    return Config(
        preset="tiny_en",
        output="runs/glue",
        max_length=128,
        search=False,
        ensemble=0,
    )


if __name__ == "__main__":
    main(config(), tasks, __doc__, miniature.glue)
