"""Several tasks on one encoder."""

from types import SimpleNamespace

import keras
import numpy as np
import pytest
from keras import ops

from keras_corrupt.cross_view import CrossViewMultiTask, CrossViewTagger
from keras_corrupt.cross_view.multi_task.batches import TaskBatches, drawn
from keras_corrupt.cross_view.multi_task.model import EVERY_TASK
from keras_corrupt.cross_view.multi_task.setup import without_evaluated
from keras_corrupt.cross_view.text.batches import WordBatches
from keras_corrupt.cross_view.text.sentences import Sentences
from keras_corrupt.tasks.task import Split
from tests.cross_view.conftest import (
    batch_of_trees,
    make_parser,
    make_tagger,
    one_batch,
    sentences_of,
    trees_of,
)

#: As losses are compared, nothing is left to chance.
CERTAIN = {"labelled_dropout": 0.0, "unlabelled_dropout": 0.0}


@pytest.fixture(scope="module")
def model():
    keras.utils.set_random_seed(0)
    tagger = make_tagger(**CERTAIN)
    parser = make_parser(encoder=tagger.encoder, **CERTAIN)
    model = CrossViewMultiTask({"tags": tagger, "trees": parser})
    model.compile("sgd")
    return model


@pytest.fixture(scope="module")
def batches(model):
    """Kind -> inputs and targets of the same sentences."""
    sentences, tags = sentences_of(4)
    tagger, parser = model.parts
    found = {
        "tags": one_batch(tagger, sentences, tags),
        "trees": batch_of_trees(parser, sentences, trees_of(sentences)),
        "text": one_batch(tagger, sentences),
    }
    return found


def with_task(inputs, task):
    return {**inputs, "task": np.full_like(inputs["labelled"], task)}


def loss_of(model, inputs, classes):
    return float(model.compute_loss(inputs, classes, model(inputs, training=True)))


@pytest.mark.parametrize("task", [0, 1])
def test_a_labelled_batch_is_of_one_task(model, batches, task):
    inputs, classes = batches[model.names[task]]
    expected = loss_of(model.parts[task], inputs, classes)
    found = loss_of(model, with_task(inputs, task), classes)
    assert found == pytest.approx(expected, 1e-6) and found > 0


def test_all_tasks_learn_from_an_unlabelled_batch(model, batches):
    inputs, classes = batches["text"]
    alone = [loss_of(part, inputs, classes) for part in model.parts]
    assert min(alone) > 0
    found = loss_of(model, with_task(inputs, EVERY_TASK), classes)
    assert found == pytest.approx(sum(alone), 1e-6)
    for task, expected in enumerate(alone):
        one = loss_of(model, with_task(inputs, task), classes)
        assert one == pytest.approx(expected, 1e-6)


@pytest.mark.parametrize(
    ("kind", "task", "learn"),
    [
        ("tags", 0, {"encoder", "tags"}),
        ("trees", 1, {"encoder", "trees"}),
        ("text", EVERY_TASK, {"encoder", "auxiliary_tags", "auxiliary_trees"}),
        ("text", 1, {"encoder", "auxiliary_trees"}),
    ],
)
def test_who_learns(model, batches, kind, task, learn):
    import tensorflow as tf

    inputs, classes = batches[kind]
    with tf.GradientTape() as tape:
        outputs = model(with_task(inputs, task), training=True)
        loss = model.compute_loss(with_task(inputs, task), classes, outputs)
    layers = dict(model.networks)
    for name, part in zip(model.names, model.parts, strict=True):
        own = [v for module in part.auxiliary for v in module.trainable_variables]
        layers[f"auxiliary_{name}"] = SimpleNamespace(trainable_variables=own)
    variables = {n: [v.value for v in x.trainable_variables] for n, x in layers.items()}
    gradients = tape.gradient(loss, variables)
    found = {
        name
        for name, values in gradients.items()
        if any(g is not None and np.any(ops.convert_to_numpy(g)) for g in values)
    }
    assert found == learn


@pytest.mark.parametrize("task", [0, 1])
def test_modules_of_a_batchs_task_learn_its_labels(model, batches, task):
    part = model.parts[task]
    inputs, classes = batches[model.names[task]]
    before = loss_of(model, with_task(inputs, task), classes)
    logits = part.auxiliary_logits(inputs, part.encode(inputs, True)).values()
    more = part.labelled_auxiliary_loss(inputs, classes, {"labelled_auxiliary": logits})
    for each in model.parts:
        each.modules_learn_labels = True
    try:
        after = loss_of(model, with_task(inputs, task), classes)
    finally:
        for each in model.parts:
            each.modules_learn_labels = False
    assert after - before == pytest.approx(float(more), rel=1e-5) and more > 0


def test_parts_are_models_by_themselves(model, tmp_path):
    tagger, parser = model.parts
    assert tagger.encoder is parser.encoder
    sentences, _ = sentences_of(3, seed=1)
    tagger.save_to_preset(tmp_path / "tags")
    loaded = CrossViewTagger.from_preset(tmp_path / "tags")
    assert loaded.predictions(sentences) == tagger.predictions(sentences)


@pytest.mark.usefixtures("graphs")
def test_training_lowers_both_losses(batches):
    tagger = make_tagger(**CERTAIN)
    parser = make_parser(encoder=tagger.encoder, **CERTAIN)
    model = CrossViewMultiTask({"tags": tagger, "trees": parser})
    model.compile(keras.optimizers.Adam(0.01))
    labelled = [batches["tags"], batches["trees"]]
    given = [(with_task(x, task), y) for task, (x, y) in enumerate(labelled)]
    before = [loss_of(model, *batch) for batch in given]
    for _ in range(20):
        for inputs, classes in given:
            model.train_on_batch(inputs, classes)
    after = [loss_of(model, *batch) for batch in given]
    assert after[0] < 0.8 * before[0] and after[1] < 0.8 * before[1]


def test_parts_have_one_encoder():
    with pytest.raises(ValueError, match="`parts` must be .*; got 2 with 2"):
        CrossViewMultiTask({"a": make_tagger(), "b": make_parser()})
    with pytest.raises(ValueError, match="got 1 with 1"):
        CrossViewMultiTask({"a": make_tagger()})


def test_an_update_runs_the_encoder_once_for_all(model):
    tagger, parser = model.parts
    encoder = tagger.encoder.flops(10, 20)
    primary = tagger.primary.flops(10) + parser.primary.flops(10)
    modules = sum(m.flops(10) for part in model.parts for m in part.auxiliary)
    labelled = 3 * (encoder + primary / 2)
    unlabelled = 4 * encoder + primary + 3 * modules
    assert model.update_flops(10) == pytest.approx((labelled + unlabelled) / 2)
    tagger = make_tagger(views=[])
    twin = make_tagger(views=[], encoder=tagger.encoder)
    alone = CrossViewMultiTask({"a": tagger, "b": twin})
    assert alone.update_flops(10) == 3 * (encoder + tagger.primary.flops(10))


# === Batches ===


def test_tasks_are_drawn_and_each_goes_on_in_its_own_order(model):
    sentences, tags = sentences_of(10)
    words = Sentences(sentences)
    kinds = [
        WordBatches(words, model.parts[0].vocabulary, np.concatenate(tags), 2, seed)
        for seed in (0, 1)
    ]
    batches = TaskBatches(kinds, drawn(300, 2, 3, 1))
    assert 110 < (batches.tasks == 0).sum() < 190
    turns = [0, 0]
    for number, task in enumerate(batches.tasks[:40]):
        inputs, classes = batches.batch(number)
        expected, known = kinds[task].batch(turns[task])
        turns[task] += 1
        assert (inputs.pop("task") == task).all()
        keras.tree.map_structure(np.testing.assert_array_equal, inputs, expected)
        np.testing.assert_array_equal(classes, known)
    text = TaskBatches(kinds[:1], np.array([EVERY_TASK, 1]), np.zeros(2, int))
    assert [text.batch(i)[0]["task"].tolist() for i in (0, 1)] == [[-1, -1], [1, 1]]


def test_what_one_task_evaluates_no_other_learns():
    def task(train, dev):
        labels = [["x"] * len(words) for words in train]
        splits = {"train": Split(train, labels), "dev": Split(dev, [])}
        return SimpleNamespace(name="task", splits=splits)

    a = task([["the", "cat"], ["a", "dog"]], [["one"]])
    b = task([["one"], ["two", "words"], ["one"]], [["a", "dog"]])
    found, removed = without_evaluated([a, b])
    assert removed == [1, 2]
    assert [t.splits["train"].examples for t in found] == [
        [["the", "cat"]],
        [["two", "words"]],
    ]
    assert [t.splits["train"].labels for t in found] == [[["x", "x"]], [["x", "x"]]]
    assert len(a.splits["train"]) == 2  # what was given stays
    with pytest.raises(ValueError, match="All training sentences of task are other"):
        without_evaluated([a, task([["one"]], [["z"]])])
