"""One SavedModel of several tasks, against the model."""

import numpy as np
import pytest

from keras_corrupt.convert.saved_model import export_saved_model
from keras_corrupt.multitask import MultiTaskModel
from tests.downstream.conftest import ENCODER, scrambled
from tests.multitask.conftest import EXAMPLES, TASKS


def test_each_task_has_its_signatures(tokenizer, tmp_path):
    import tensorflow as tf

    tasks = {name: TASKS[name] for name in ("length", "words")}
    tasks["SST-2"] = {"class": "TextClassifier", "labels": ["no", "yes"]}
    model = scrambled(MultiTaskModel(ENCODER, tokenizer, tasks))
    export_saved_model(model, tmp_path / "saved")
    found = tf.saved_model.load(tmp_path / "saved").signatures
    pairs = {f"pair of {name}" for name in ("length", "SST-2")}
    assert {*found} == {*tasks, *pairs}

    def strings(tensor):
        return [value.decode() for value in tensor.numpy()]

    texts = tf.constant(EXAMPLES["animals"])
    expected = model.predictions(
        {
            "SST-2": EXAMPLES["animals"],
            "length": [("a dog ran", "the cat")],
            "words": EXAMPLES["words"][:1],
        }
    )
    assert strings(found["SST-2"](text=texts)["label"]) == expected["SST-2"]
    score = found["pair of length"](
        text=tf.constant(["a dog ran"]), second_text=tf.constant(["the cat"])
    )["score"]
    np.testing.assert_allclose(score, expected["length"], rtol=1e-5)
    tags = found["words"](sentence=tf.constant([" ".join(EXAMPLES["words"][0])]))
    assert strings(tags["tags"][0]) == expected["words"][0]


def test_tasks_that_cannot_be_exported_are_named(tokenizer, tmp_path):
    model = MultiTaskModel(ENCODER, tokenizer, {"pronouns": TASKS["pronouns"]})
    with pytest.raises(ValueError, match="got a CandidateRanker"):
        export_saved_model(model, tmp_path / "saved")
    assert not list(tmp_path.iterdir())
