"""What students learn from: labels, teachers, and what is between them."""

import keras
import numpy as np
import pytest

from keras_corrupt.downstream.soft_targets import mixed
from keras_corrupt.multitask import MultiTaskModel
from keras_corrupt.multitask.annealing import gold_weight
from keras_corrupt.training.runner import xla_pays
from tests.downstream.conftest import ENCODER, scrambled
from tests.multitask.conftest import EXAMPLES, LABELS, TASKS

EXAMPLES = {name: rows * 3 for name, rows in EXAMPLES.items()}
LABELS = {name: rows * 3 for name, rows in LABELS.items()}


@pytest.fixture
def soft(tokenizer):
    """What a teacher of all tasks puts out."""
    teacher = scrambled(MultiTaskModel(ENCODER, tokenizer, TASKS))
    features = teacher.features(EXAMPLES, LABELS)
    outputs = teacher.outputs(features)
    return {
        name: part.soft_targets(features[name], outputs[name])
        for name, part in zip(TASKS, teacher.parts, strict=True)
    }


def trained(tokenizer, labels=LABELS, **kwargs):
    keras.utils.set_random_seed(0)
    names = ("animals", "length", "words")  # The others take long to compile.
    model = MultiTaskModel(ENCODER, tokenizer, {name: TASKS[name] for name in names})
    features = model.features({name: EXAMPLES[name] for name in names}, labels)
    # Adam would make much of the rounding where a gradient is zero.
    model.compile(keras.optimizers.SGD(0.1), jit_compile=xla_pays())
    model.fit(model.batches(features, 8, **kwargs), epochs=2, verbose=0, shuffle=False)
    return [np.array(v) for v in model.trainable_variables]


def distance(a, b):
    return max(np.abs(x - y).max() for x, y in zip(a, b, strict=True))


def test_the_ends_of_annealing_are_labels_alone_and_the_teacher_alone(tokenizer, soft):
    labels = trained(tokenizer)
    gold = trained(tokenizer, soft_targets=soft, gold_weight=lambda step: 1.0)
    assert distance(labels, gold) < 1e-5
    teacher = trained(tokenizer, soft_targets=soft, gold_weight=lambda step: 0.0)
    assert distance(labels, teacher) > 1e-3
    # Of other labels, where nothing that the model reads tells them.
    others = {**LABELS, "animals": LABELS["animals"][::-1], "length": [8, 0] * 3}
    others["words"] = [[tags[0]] * len(tags) for tags in LABELS["words"]]
    again = trained(tokenizer, others, soft_targets=soft, gold_weight=lambda step: 0.0)
    assert distance(teacher, again) < 1e-6
    assert distance(labels, trained(tokenizer, others)) > 1e-3


def test_targets_are_mixed_by_the_number_of_updates_done(tokenizer, soft):
    model = MultiTaskModel(ENCODER, tokenizer, TASKS)
    features = model.features(EXAMPLES, LABELS)
    steps = []

    def weight(step):
        steps.append(step)
        return gold_weight(step, 40)

    batches = model.batches(
        features, 4, soft_targets=soft, gold_weight=weight, first_pass=2
    )
    whole = list(batches.as_numpy_iterator())
    count = len(whole)
    assert steps == list(range(2 * count, 3 * count))
    names, seen = list(TASKS), set()
    for step, (x, y, w) in zip(steps, whole, strict=True):
        for row in np.flatnonzero(w):
            name = names[x["task"][row]]
            tokens = x["padding_mask"][row].sum()
            ids = x["token_ids"][row, :tokens].tolist()
            start = x["start"][row] if name == "places" else None
            found = [
                (feature, target)
                for feature, target in zip(features[name], soft[name], strict=True)
                if feature.inputs["token_ids"].tolist() == ids
                and feature.inputs.get("start", start) == start
            ]
            feature, target = found[0]
            for key, teacher in target.items():
                label = feature.targets[key]
                expected = mixed(label, teacher, step / 39)
                array = y[name][key][row]
                if key in model.part(name).soft_targets_of_tokens:
                    array = array[:tokens]
                np.testing.assert_allclose(array, expected, atol=1e-6)
                seen.add(key)
    assert seen == {"label", "score", "tag", "start", "end", "unanswerable", "right"}


def test_annealing_is_linear_from_the_first_update_to_the_last():
    steps = [gold_weight(step, 101) for step in range(101)]
    np.testing.assert_allclose(steps, np.linspace(0, 1, 101))
    assert {gold_weight(step, 101, 0.5) for step in range(101)} == {0.5}
    assert gold_weight(0, 1) == 0.0
