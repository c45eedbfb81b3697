"""SQuAD 1.1 and 2.0: answers that are spans of a text, with XLNet's head.

    python recipes/finetune_squad.py --data SQUAD_DIR
    python recipes/finetune_squad.py --preset runs/electra_small/preset --version 2.0

Clark's thesis, table 5.6 (development set, exact match and F1): ELECTRA-Base 84.5 and
90.8 on version 1.1, 80.5 and 83.3 on version 2.0, the median of 10 runs (`--seeds 10`).
Needs `pip install -e '.[squad]'`, for the official evaluation.
"""

import dataclasses
from typing import Literal

from keras_corrupt.downstream import FinetuneConfig, main
from keras_corrupt.tasks import miniature
from keras_corrupt.tasks.squad import SquadTask


@dataclasses.dataclass(frozen=True)
class Config(FinetuneConfig):
    data: str = "tfds:squad"
    """A directory with `train-v1.1.json` and `dev-v1.1.json`, or `tfds:squad`."""
    version: Literal["1.1", "2.0"] = "1.1"
    """Version 2.0 has questions without an answer."""
    head: Literal["xlnet", "bert"] = "xlnet"
    """XLNet's head looks for the end after the start, BERT's for both at once."""


def tasks(config):
    task = SquadTask(config.data, config.version)
    # The head is the model's alone: SQuAD does not say how spans are found.
    task.model_arguments["head_type"] = config.head
    return [task]


def config():
    return Config(
        preset="tiny_en",
        output="runs/squad",
        max_length=512,
    )


if __name__ == "__main__":
    main(config(), tasks, __doc__, miniature.squad)
