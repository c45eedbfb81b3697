"""One model of several tasks, against its tasks' own models."""

import keras
import numpy as np
import pytest

from keras_corrupt.downstream import TextClassifier, TokenTagger
from keras_corrupt.downstream.model import DownstreamModel
from keras_corrupt.downstream.optimizer import compiled
from keras_corrupt.models.fine_tuning import settings
from keras_corrupt.multitask import MultiTaskModel
from keras_corrupt.multitask.multi_task_model import check_names
from keras_corrupt.presets import load_preset
from keras_corrupt.presets.registry import find_class
from tests.conftest import gradients_of
from tests.downstream.conftest import ENCODER, scrambled
from tests.multitask.conftest import EXAMPLES, LABELS, TASKS, WHERE


@pytest.fixture
def model(tokenizer):
    return scrambled(MultiTaskModel(ENCODER, tokenizer, TASKS, dropout=0.0))


def one_batch(model, **kwargs):
    features = model.features(EXAMPLES, LABELS)
    (batch,) = model.batches(features, 16, **kwargs)
    return batch


def test_a_batch_has_each_rows_own_inputs_and_targets(model):
    x, y, weights = one_batch(model, exponent=0.0)
    features = model.features(EXAMPLES, LABELS)
    assert len({*x["task"][weights > 0].tolist()}) >= 3  # mixed within the batch
    names = list(TASKS)
    for row in np.flatnonzero(weights):
        name = names[x["task"][row]]
        count = x["padding_mask"][row].sum()
        ids = x["token_ids"][row, :count].tolist()
        found = [f for f in features[name] if f.inputs["token_ids"].tolist() == ids]
        assert found
        for key, value in found[0].inputs.items():
            if np.ndim(value):
                assert x[key][row, :count].tolist() == value.tolist()
        targets = [{key: y[name][key][row].tolist() for key in y[name] if key != "tag"}]
        assert targets[0].keys() <= found[0].targets.keys()
        if name in ("animals", "length"):
            assert targets[0] in [f.targets for f in found]
        # Of other tasks there is nothing.
        for other in set(names) - {name}:
            assert all(not np.any(array[row]) for array in y[other].values())


@pytest.mark.parametrize("name", list(TASKS))
def test_one_task_is_trained_as_by_its_own_model(name, tokenizer):
    """Step by step, dropout included, to the same weights."""
    kind = dict(TASKS[name])
    cls = find_class(kind.pop("class"), DownstreamModel)
    examples, labels = EXAMPLES[name] * 3, LABELS[name] * 3
    losses, weights = [], []
    for several in (False, True):
        keras.utils.set_random_seed(0)
        model = (
            MultiTaskModel(ENCODER, tokenizer, {name: TASKS[name]})
            if several
            else cls(ENCODER, tokenizer, **kind)
        )
        if several:
            features = model.features({name: examples}, {name: labels})
        else:
            features = model.features(examples, labels)
        compiled(model, settings("tiny", name), 10)
        batches = model.batches(features, 2, seed=7)
        record = model.fit(batches, epochs=2, verbose=0, shuffle=False)
        losses.append(record.history["loss"])
        weights.append([np.array(v) for v in model.trainable_variables])
    np.testing.assert_allclose(*losses, rtol=1e-6)
    for a, b in zip(*weights, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-6)


def test_all_heads_with_masked_losses_are_those_needed(model, tokenizer):
    x, y, w = one_batch(model, exponent=0.0)
    needed = MultiTaskModel(ENCODER, tokenizer, TASKS, dropout=0.0, all_heads=False)
    needed.set_weights(model.get_weights())
    found = []
    for each in (model, needed):
        loss = each.compute_loss(x, y, each(x), w)
        gradients = gradients_of(
            lambda each=each: each.compute_loss(x, y, each(x), w), each
        )
        found.append(
            (float(loss), [gradients[id(v)] for v in each.trainable_variables])
        )
    assert found[0][0] == pytest.approx(found[1][0], rel=1e-5)
    for a, b in zip(found[0][1], found[1][1], strict=True):
        np.testing.assert_allclose(a, b, atol=2e-6)


def test_the_heads_needed_train_to_the_same_weights(tokenizer):
    weights = []
    for all_heads in (True, False):
        keras.utils.set_random_seed(0)
        model = MultiTaskModel(
            ENCODER, tokenizer, TASKS, dropout=0.0, all_heads=all_heads
        )
        # Adam would make much of the rounding where a gradient is zero.
        model.compile(keras.optimizers.SGD(0.1), jit_compile=False)
        batches = model.batches(model.features(EXAMPLES, LABELS), 4)
        model.fit(batches, verbose=0, shuffle=False)
        weights.append(model.get_weights())
    for a, b in zip(*weights, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-5)


def test_the_loss_is_the_mean_of_the_tasks_by_their_rows(model):
    x, y, w = one_batch(model, exponent=0.0)
    outputs = model(x)
    expected = 0.0
    for i, (name, part) in enumerate(zip(TASKS, model.parts, strict=True)):
        own = w * (x["task"] == i)
        if own.any():
            loss = part.compute_loss(x, y[name], outputs[name], own)
            expected += float(loss) * own.sum() / w.sum()
    assert float(model.compute_loss(x, y, outputs, w)) == pytest.approx(expected)


def test_a_preset_predicts_all_tasks(model, tmp_path):
    path = str(tmp_path / "preset")
    model.save_to_preset(path)
    again = MultiTaskModel.from_preset(path)
    assert isinstance(load_preset(path), MultiTaskModel)
    found = again.predictions(EXAMPLES)
    assert found == model.predictions(EXAMPLES)
    assert found["animals"] == again.part("animals").predictions(EXAMPLES["animals"])
    features = model.features(EXAMPLES)
    assert model.decode(EXAMPLES, features, model.outputs(features)) == found
    # What knows of no tasks starts from the encoder, of a task from its head too.
    other = TokenTagger.from_preset(path, labels=["a", "b"])
    part = TextClassifier.from_preset(path, labels=["cat", "dog"])
    for start in (other, part):
        for a, b in zip(
            start.encoder.get_weights(), model.encoder.get_weights(), strict=True
        ):
            np.testing.assert_array_equal(a, b)
    model.part("words").save_to_preset(tmp_path / "words")
    tagger = TokenTagger.from_preset(tmp_path / "words")
    assert tagger.predictions(EXAMPLES["words"]) == found["words"]


def test_other_tasks_keep_the_heads_that_they_have_in_common(model, tmp_path):
    path = str(tmp_path / "preset")
    model.save_to_preset(path)
    tasks = {
        "words": TASKS["words"],
        "animals": {**TASKS["animals"], "labels": ["dog", "ant"]},
        "new": TASKS["words"],
    }
    other = MultiTaskModel.from_preset(path, tasks=tasks)

    def same(name):
        pairs = zip(
            other.part(name).head.get_weights(),
            model.part("words" if name == "new" else name).head.get_weights(),
            strict=True,
        )
        return all(np.array_equal(a, b) for a, b in pairs)

    assert [same(name) for name in tasks] == [True, False, False]


def test_a_keras_file_keeps_it(model, tmp_path):
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras")
    assert again.predictions({"places": [WHERE]}) == model.predictions(
        {"places": [WHERE]}
    )


def test_errors(tokenizer, model):
    def made(**tasks):
        MultiTaskModel(ENCODER, tokenizer, tasks)

    with pytest.raises(ValueError, match="one task or more"):
        made()
    with pytest.raises(ValueError, match="'Nothing' is none of the known classes"):
        made(a={"class": "Nothing"})
    with pytest.raises(ValueError, match="a PromptClassifier, which cannot be one of"):
        made(a={"class": "PromptClassifier"})
    with pytest.raises(ValueError, match="MultiLabelClassifier, .* threshold would be"):
        made(a={"class": "MultiLabelClassifier"})
    with pytest.raises(ValueError, match="Two tasks have one name, 'Words'"):
        made(words=TASKS["words"], Words=TASKS["words"])
    with pytest.raises(ValueError, match="without a slash; got 'a/b'"):
        check_names(["a/b"])
    with pytest.raises(ValueError, match="Unknown task 'SST-2'; the model's are"):
        model.predictions({"SST-2": ["the cat"]})
    with pytest.raises(ValueError, match="has none of the task length"):
        model.batches(model.features({"animals": ["the cat"]}, {"animals": ["cat"]}), 2)
    with pytest.raises(ValueError, match="Unknown label 'cow'"):
        model.features({"animals": ["the cat"]}, {"animals": ["cow"]})
