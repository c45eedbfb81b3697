"""Few examples of a task, and prompts for it.

LM-BFF (Gao et al., "Making Pre-trained Language Models Better Few-shot Learners",
2021): 16 examples of each class, drawn five times (section 3); manual prompts (table
1).
"""

import copy

import numpy as np

from keras_corrupt.tasks.text_task import TextTask

#: LM-BFF's, appendix A: 1,000 updates, which here are as many epochs as that makes of
#: 32 examples, each read four times.
SETTINGS = {
    "learning_rate": 1e-5,
    "epochs": 60,
    "batch_size": 8,
    "layer_decay": 1.0,
    "warmup_fraction": 0.0,
}

ENTAILMENT = {"entailment": "yes", "not_entailment": "no"}

#: Task of GLUE -> template, and each label's word.
GLUE_PROMPTS = {
    "CoLA": ("{first} This is [MASK] .", {"0": "incorrect", "1": "correct"}),
    "SST-2": ("{first} It was [MASK] .", {"0": "terrible", "1": "great"}),
    "MRPC": ("{first} [MASK] , {second}", {"0": "no", "1": "yes"}),
    "QQP": ("{first} [MASK] , {second}", {"0": "no", "1": "yes"}),
    "MNLI": (
        "{first} ? [MASK] , {second}",
        {"entailment": "yes", "neutral": "maybe", "contradiction": "no"},
    ),
    "QNLI": ("{first} ? [MASK] , {second}", ENTAILMENT),
    "RTE": ("{first} ? [MASK] , {second}", ENTAILMENT),
}


class FewExamples(TextTask):
    """A task with a few training examples of each class."""

    def fine_tuning(self, size):
        return SETTINGS


def few_examples(task, per_class, seed):
    """Returns a task with few training examples, the same number of each class.

    Args:
        task: A `TextTask` with labels.
        per_class: Examples of each class.
        seed: Which examples: 0, 1, ... give the draws of an experiment.

    Returns:
        A `FewExamples`, whose name ends in the seed.

    Raises:
        ValueError: A class has fewer.
    """
    if task.labels is None:
        raise ValueError(f"{task.name} has scores and no classes to draw from.")
    train, rng, chosen = task.splits["train"], np.random.default_rng(seed), []
    for label in task.labels:
        members = [i for i, x in enumerate(train.labels) if x == label]
        if len(members) < per_class:
            raise ValueError(
                f"{task.name} has {len(members)} training examples of {label!r}, fewer "
                f"than {per_class}: lower `examples_per_class`."
            )
        chosen += rng.permutation(members)[:per_class].tolist()
    splits = {**task.splits, "train": train.rows(chosen)}
    return FewExamples(
        f"{task.name}-{seed}", splits, task.labels, metrics=task.metric_names
    )


def prompted(task, template, label_words, demonstrations=False, num_contexts=1):
    """Returns a task whose classes are told by a word in a prompt.

    Args:
        task: A `TextTask` with labels.
        template: A text with `{first}`, for pairs `{second}`, and `[MASK]`.
        label_words: Dict of each label to its word.
        demonstrations: Whether prompts of training examples follow each prompt.
        num_contexts: How many draws of these each example is read with.

    Raises:
        ValueError: A label has no word.
    """
    if task.labels is None or {*task.labels} != {*label_words}:
        raise ValueError(
            f"`label_words` must have a word for each label of {task.name}, "
            f"{task.labels}; got {label_words!r}."
        )
    train = task.splits["train"]
    shown = [*zip(train.examples, train.labels, strict=True)] if demonstrations else []
    with_prompts = copy.copy(task)
    with_prompts.kind = "prompts"
    with_prompts.model_arguments = {
        "template": template,
        "label_words": dict(label_words),
        "demonstrations": shown,
        "num_contexts": num_contexts if shown else 1,
    }
    return with_prompts
