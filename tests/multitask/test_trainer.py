"""What students learn from: labels, teachers, and what is between them."""

import types

import keras
import numpy as np
import pytest

from keras_corrupt.models.fine_tuning import FineTuningSettings
from keras_corrupt.multitask import MultiTaskModel
from keras_corrupt.multitask.strategies import STRATEGIES
from keras_corrupt.multitask.trainer import Trainer
from keras_corrupt.training.compiling import compiles_with_xla
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
    model.compile(keras.optimizers.SGD(0.1), jit_compile=compiles_with_xla())
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


def trainer_of(features, strategy="single_to_multi", **settings):
    """A `Trainer` of tasks of which no more is known than the features."""
    finetuners = {
        name: types.SimpleNamespace(train_features=rows)
        for name, rows in features.items()
    }
    settings = FineTuningSettings(learning_rate=0.1, **settings)
    return Trainer(finetuners, STRATEGIES[strategy], settings, config=None)


def test_targets_are_mixed_by_the_number_of_updates_done(tokenizer, soft):
    model = MultiTaskModel(ENCODER, tokenizer, TASKS)
    features = model.features(EXAMPLES, LABELS)
    trainer = trainer_of(features, epochs=3, batch_size=4)
    batches = model.batches(
        features,
        batch_size=4,
        soft_targets=soft,
        gold_weight=trainer.gold_weight,
        first_pass=2,
    )
    whole = list(batches)
    count = len(whole)
    names, seen = list(TASKS), set()
    for step, (x, y, w) in enumerate(whole, 2 * count):
        share = step / (3 * count - 1)
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
                label = np.asarray(feature.targets[key])
                if label.ndim < np.ndim(teacher):
                    label = np.eye(np.shape(teacher)[-1])[label]
                expected = share * label + (1 - share) * np.asarray(teacher)
                array = y[name][key][row]
                if key in model.part(name).soft_targets_of_tokens:
                    array = array[:tokens]
                np.testing.assert_allclose(array, expected, atol=1e-6)
                seen.add(key)
    assert seen == {"label", "score", "tag", "start", "end", "unanswerable", "right"}


def test_annealing_is_linear_from_the_first_update_to_the_last_of_all_epochs():
    features = {"a": range(10), "b": range(7)}  # 5 updates in each of 3 epochs
    settings = {"epochs": 3, "batch_size": 4}
    annealed = trainer_of(features, **settings)
    shares = [annealed.gold_weight(step) for step in range(15)]
    np.testing.assert_allclose(shares, np.linspace(0, 1, 15))
    constant = trainer_of(features, "no_annealing_0.5", **settings)
    assert {constant.gold_weight(step) for step in range(15)} == {0.5}
    once = trainer_of(features, epochs=1, batch_size=20)
    assert once.gold_weight(0) == 0.0
