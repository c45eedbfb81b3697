"""GLUE with 16 examples of each class, by prompts (LM-BFF; COCO-LM's table 4).

    python recipes/finetune_prompts.py --preset runs/coco_lm_base/preset --data GLUE_DIR
    python recipes/finetune_prompts.py --preset PRESET --tasks SST-2 --no_prompts

A text is put before `It was [MASK] .`; the word that the model expects tells the class.
Takes presets of systems with a vocabulary head: MaskedLM, CocoLM. `--no_prompts`
fine-tunes a new head on the same examples, to compare. Prints the mean and the standard
deviation over five draws of examples. The settings are LM-BFF's: 60 epochs are its
1,000 updates with two classes and four contexts. Without demonstrations or prompts
there are a quarter as many in an epoch; `--settings epochs 240` makes up for that.
Prompts of one's own: `--template` and `--label_words` of finetune_text.py.
"""

import dataclasses
import statistics
from collections import defaultdict

from keras_corrupt.commands.bounds import Bounds, check_bounds
from keras_corrupt.downstream import FinetuneConfig, main
from keras_corrupt.tasks import miniature
from keras_corrupt.tasks.few_shot import GLUE_PROMPTS, few_examples, prompted
from keras_corrupt.tasks.glue import GlueTask


@dataclasses.dataclass(frozen=True)
class Config(FinetuneConfig):
    data: str = "tfds:glue"
    """A directory in GLUE's layout (`SST-2/train.tsv`, ...), or `tfds:glue`."""
    tasks: tuple[str, ...] = ("SST-2", "MNLI")
    """Which tasks: those with classes."""
    examples_per_class: int = 16
    """Training examples of each class."""
    splits: int = 5
    """Draws of training examples."""
    prompts: bool = True
    """Whether to use prompts, or a new head."""
    demonstrations: bool = True
    """Whether prompts of training examples follow a prompt, one of each class."""
    num_contexts: int = 4
    """How many draws of demonstrations an example is read with."""

    def shrunk(self):
        fewer = min(self.examples_per_class, 3)
        return dataclasses.replace(
            super().shrunk(), examples_per_class=fewer, splits=min(self.splits, 2)
        )

    def check(self):
        super().check()
        names = "examples_per_class", "splits", "num_contexts"
        check_bounds(vars(self), dict.fromkeys(names, Bounds(1)))


def tasks(config):
    for name in config.tasks:
        if name not in GLUE_PROMPTS:
            raise ValueError(f"`tasks` may be {[*GLUE_PROMPTS]}; got {name!r}.")
    few_shot = []
    for name in config.tasks:
        task = GlueTask(name, config.data)
        for split in range(config.splits):
            few = few_examples(task, config.examples_per_class, split)
            if config.prompts:
                contexts = config.demonstrations, config.num_contexts
                few = prompted(few, *GLUE_PROMPTS[name], *contexts)
            few_shot.append(few)
    return few_shot


def config():
    return Config(
        preset="runs/coco_lm_base/preset",
        output="runs/prompts",
        seeds=1,
        max_length=256,
    )


def small_files(folder):
    """Writes GLUE's files, and a new model that knows their words."""
    from keras_corrupt.models import Electra, MaskedLM

    tokenizer = Electra.from_preset("tiny_en").tokenizer
    sizes = {"vocabulary_size": tokenizer.vocabulary_size}
    model = MaskedLM.from_preset("tiny", encoder=sizes, tokenizer=tokenizer)
    model.save_to_preset(folder / "preset")
    return {**miniature.glue(folder), "preset": str(folder / "preset")}


def summary(rows):
    """Returns a line for each task: the mean over its draws and their deviation."""
    scores = defaultdict(list)
    for row in rows:
        task, _, _ = row.task.rpartition("-")
        scores[task, row.results[0]["metric"]] += [run["score"] for run in row.results]
    return "\n".join(
        f"{task}: {metric} {statistics.mean(x):.1f} ({statistics.pstdev(x):.1f})"
        for (task, metric), x in scores.items()
    )


if __name__ == "__main__":
    rows = main(config(), tasks, __doc__, small_files)
    print(f"\nMean (standard deviation) over draws:\n{summary(rows)}")
