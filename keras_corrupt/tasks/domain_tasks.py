"""The tasks on which continual pretraining is judged, two of each of two domains.

Citation intents (ACL-ARC) and relations (SciERC) are of computer science's papers;
HyperPartisan and AG News are news. Zheng et al. (2020), table 1, take them and their
settings from Gururangan et al., "Don't Stop Pretraining" (2020), whose release has a
folder for each: `train.jsonl`, `dev.jsonl` and `test.jsonl`, with `text` and `label`.
TSV and CSV files with these two columns are read, too.
"""

from pathlib import Path
from typing import NamedTuple

from keras_corrupt.tasks.tables import Columns, TableTask


class DomainSetting(NamedTuple):
    """How a task is fine-tuned, and what was reached on its test set.

    Attributes:
        epochs: Passes over the training examples.
        published: System, of RoBERTa-Base's size -> macro F1, in percent (table 1).
    """

    epochs: int
    published: dict


#: Row of table 1 -> its scores on the four tasks.
_SCORES = {
    "RoBERTa": (63.0, 77.3, 86.6, 93.9),
    "DAPT": (75.4, 80.8, 88.2, 93.9),
    "MLM": (75.34, 81.51, 91.00, 94.05),
    "FE-MLM": (76.24, 82.40, 92.35, 94.02),
    "MLM, spans": (76.63, 81.33, 91.72, 93.94),
    "FE-MLM, spans": (78.06, 81.99, 93.22, 94.13),
}
#: Task -> how often its training examples are gone through: AG News has many.
_EPOCHS = {"acl_arc": 10, "scierc": 10, "hyperpartisan": 10, "ag_news": 3}

DOMAIN_TASKS = {
    name: DomainSetting(epochs, {row: _SCORES[row][i] for row in _SCORES})
    for i, (name, epochs) in enumerate(_EPOCHS.items())
}


class DomainTask(TableTask):
    """One of the four tasks, scored by macro F1.

    Args:
        name: A key of `DOMAIN_TASKS`.
        folder: Folder with the files `train` and `dev`, and `test` if there is one.

    Raises:
        FileNotFoundError: A file is not there.
        ValueError: No such task, or a file does not fit: see `TableTask`.
    """

    def __init__(self, name, folder):
        if name not in DOMAIN_TASKS:
            raise ValueError(
                f"{name!r} is none of the tasks {', '.join(DOMAIN_TASKS)}."
            )
        train, dev, test = (_file(folder, split) for split in ("train", "dev", "test"))
        columns = Columns("text", label="label")
        test = test if test.exists() else None
        super().__init__(train, columns, dev=dev, test=test, name=name)
        self.metric_names = ("macro_f1", "accuracy")
        self.main_metric = "macro_f1"

    def fine_tuning(self, size):
        """Returns Gururangan et al.'s settings; their rate is one for large encoders.

        The epoch with the best score on `dev` counts.
        """
        settings = {
            "epochs": DOMAIN_TASKS[self.name].epochs,
            "batch_size": 16,
            "dropout": 0.1,
            "report": "best",
        }
        if size in ("base", "large"):
            settings |= {"learning_rate": 2e-5, "layer_decay": 1.0}
        return settings

    def published(self, size):
        """Returns scores on the test set, where a run's median is a score on `dev`."""
        scores = DOMAIN_TASKS[self.name].published if size == "base" else {}
        return {f"{system} (test)": score for system, score in scores.items()}


def _file(folder, split):
    """Returns the path of a split, as the release names it where there is none."""
    paths = [Path(folder) / f"{split}.{kind}" for kind in ("jsonl", "tsv", "csv")]
    return next((path for path in paths if path.exists()), paths[0])
