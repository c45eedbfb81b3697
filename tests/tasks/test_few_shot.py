from collections import Counter

import pytest

from keras_corrupt.tasks.few_shot import GLUE_PROMPTS, few_examples, prompted
from keras_corrupt.tasks.glue import TASKS
from keras_corrupt.tasks.task import Split
from keras_corrupt.tasks.text_task import TextTask


@pytest.fixture
def task():
    examples = [f"text {i}" for i in range(60)]
    train = Split(examples, ["a", "b", "b"] * 20, [str(i) for i in range(60)])
    dev = Split(["x", "y"], ["a", "b"], ["0", "1"])
    return TextTask("t", {"train": train, "dev": dev}, ["a", "b"], None, ("accuracy",))


def test_each_class_has_as_many(task):
    few = few_examples(task, 16, seed=3)
    train = few.splits["train"]
    assert Counter(train.labels) == {"a": 16, "b": 16}
    whole = task.splits["train"]
    rows = {*zip(whole.examples, whole.labels, whole.ids, strict=True)}
    drawn = [*zip(train.examples, train.labels, train.ids, strict=True)]
    assert {*drawn} < rows and len({*drawn}) == 32
    assert few.name == "t-3" and task.name == "t"
    assert few.splits["dev"] is task.splits["dev"]
    again, other = (few_examples(task, 16, seed).splits["train"] for seed in (3, 4))
    assert again == train and other != train
    with pytest.raises(ValueError, match="20 training examples of 'a', fewer than 21"):
        few_examples(task, 21, 0)


def test_prompts_know_the_examples_that_they_show(task):
    words = {"a": "yes", "b": "no"}
    few = few_examples(task, 2, 0)
    made = prompted(few, "{first} [MASK]", words, True, 5)
    assert made.kind == "prompts" and few.kind == "text_classification"
    train = few.splits["train"]
    shown = [*zip(train.examples, train.labels, strict=True)]
    assert made.model_arguments["demonstrations"] == shown
    assert made.model_arguments["num_contexts"] == 5
    assert prompted(few, "{first} [MASK]", words).model_arguments["num_contexts"] == 1
    with pytest.raises(ValueError, match="a word for each label of t-0"):
        prompted(few, "{first} [MASK]", {"a": "yes"})


def test_prompts_of_glue_fit_its_tasks():
    for name, (template, words) in GLUE_PROMPTS.items():
        assert {*words} == {*TASKS[name].labels}
        assert ("{second}" in template) == (len(TASKS[name].texts) == 2)


def test_scores_have_no_classes(task):
    task.labels = None
    with pytest.raises(ValueError, match="no classes to draw from"):
        few_examples(task, 1, 0)
    with pytest.raises(ValueError, match="a word for each label"):
        prompted(task, "{first} [MASK]", {"a": "yes", "b": "no"})
