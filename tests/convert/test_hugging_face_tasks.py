"""Models of several tasks, and numbers, as Hugging Face's classes."""

import json

import numpy as np
import pytest

from keras_corrupt.convert import check
from keras_corrupt.convert.conversion import convert
from keras_corrupt.convert.options import Options
from keras_corrupt.downstream import (
    MultiLabelClassifier,
    SpanExtractor,
    TextClassifier,
    TokenTagger,
)
from keras_corrupt.multitask import MultiTaskModel
from tests.convert.conftest import assert_same_weights, written
from tests.downstream.conftest import ENCODER, scrambled
from tests.multitask.conftest import EXAMPLES, TASKS

TO = "hugging_face"
BERT_SPANS = {"class": "SpanExtractor", "head_type": "bert"}


def test_each_task_comes_back_bit_for_bit(tokenizer, tmp_path):
    tasks = {name: TASKS[name] for name in ("animals", "words")}
    model = MultiTaskModel(ENCODER, tokenizer, {**tasks, "places": BERT_SPANS})
    scrambled(model)
    theirs = written(model, tmp_path, TO)
    card = (theirs / "README.md").read_text()
    assert "keras_corrupt.multitask.MultiTaskModel" in card
    assert "animals, words, places" in card
    use = 'ElectraForSequenceClassification.from_pretrained(directory + "/animals")'
    assert use in card
    for name, cls in (
        ("animals", TextClassifier),
        ("words", TokenTagger),
        ("places", SpanExtractor),
    ):
        back = cls.from_preset(theirs / name)
        for network in ("encoder", "head"):
            ours = model.part(name).networks[network]
            assert_same_weights(ours, back.networks[network])
        examples = EXAMPLES[name]
        assert back.predictions(examples) == model.part(name).predictions(examples)


def test_each_task_is_checked(tokenizer, tmp_path):
    tasks = {"words": TASKS["words"], "places": BERT_SPANS}
    model = MultiTaskModel(ENCODER, tokenizer, tasks)
    made = check.outputs(model, check.make_inputs(model.encoder), Options())
    words, places = {"words/hidden", "words/logits"}, {"places/hidden", "places/spans"}
    assert made.keys() == {"hidden"} | words | places

    class Format:
        outputs = staticmethod(lambda directory, inputs: made)

    assert check.check(model, tmp_path, Format, Options()) == 0
    made["words/logits"] = made["words/logits"] + 1e-3
    with pytest.raises(ValueError, match="another words/logits"):
        check.check(model, tmp_path, Format, Options())


@pytest.mark.parametrize(
    ("name", "reason"),
    [("length", "sigmoid"), ("places", "XLNet"), ("pronouns", "CandidateRanker")],
)
def test_a_head_they_have_not_is_refused_before_anything_is_written(
    name, reason, tokenizer, tmp_path, monkeypatch
):
    tasks = {"animals": TASKS["animals"], name: TASKS[name]}
    MultiTaskModel(ENCODER, tokenizer, tasks).save_to_preset(tmp_path / "preset")
    made = []
    monkeypatch.setattr(
        "keras_corrupt.convert.hugging_face._write", lambda *a: made.append(a)
    )
    with pytest.raises(ValueError, match=f"The task {name}: .*{reason}"):
        convert(tmp_path / "preset", tmp_path / "theirs", to=TO)
    assert not made
    assert [path.name for path in tmp_path.iterdir()] == ["preset"]


@pytest.mark.parametrize(
    ("cls", "arguments"),
    [
        (TextClassifier, {"labels": [2, 1], "max_length": 12, "pairs": True}),
        (TextClassifier, {"score_range": [1, 5]}),
        (MultiLabelClassifier, {"labels": ["a", "b"], "threshold": 0.4}),
        (TokenTagger, {"labels": ["a", "b"], "dropout": 0.2}),
        (
            SpanExtractor,
            {"head_type": "bert", "answerability": True, "max_answer_length": 5},
        ),
    ],
)
def test_arguments_come_back(cls, arguments, tokenizer, tmp_path):
    model = scrambled(cls(ENCODER, tokenizer, **arguments))
    back = cls.from_preset(written(model, tmp_path, TO))
    ours, theirs = model.get_config(), back.get_config()
    assert {n: ours[n] for n in arguments} == {n: theirs[n] for n in arguments}
    assert theirs.keys() == ours.keys()
    for a, b in zip(model.get_weights(), back.get_weights(), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_names_and_arguments_that_somebody_changed(tokenizer, tmp_path):
    model = scrambled(TextClassifier(ENCODER, tokenizer, labels=[0, 1]))
    file = written(model, tmp_path, TO) / "config.json"
    config = json.loads(file.read_text())
    config["id2label"] = {"0": "bad", "1": "good"}
    file.write_text(json.dumps(config))
    assert TextClassifier.from_preset(file.parent).labels == ["bad", "good"]
    config["keras_corrupt"] = {"class": "TokenTagger", "labels": ["O"]}  # was another's
    config["problem_type"] = "multi_label_classification"
    file.write_text(json.dumps(config))
    assert MultiLabelClassifier.from_preset(file.parent).labels == ["bad", "good"]
    config["keras_corrupt"] = {"class": "TextClassifier", "label_weights": 3}
    file.write_text(json.dumps(config))
    with pytest.raises(ValueError, match="`keras_corrupt` is .* Take the entry out"):
        TextClassifier.from_preset(file.parent)


def test_a_number_goes_out_with_its_range(tokenizer, tmp_path):
    model = TextClassifier(ENCODER, tokenizer, score_range=[1, 5])
    scrambled(model)
    theirs = written(model, tmp_path, TO)
    made = check.outputs(model, check.make_inputs(model.encoder), Options())
    place = model.head(made["hidden"][:, 0])
    np.testing.assert_allclose(made["logits"], 1 + 4 * np.array(place), rtol=1e-5)
    config = json.loads((theirs / "config.json").read_text())
    assert config["problem_type"] == "regression"
    assert config["id2label"] == {"0": "score"}
    del config["keras_corrupt"]  # as another package writes it
    (theirs / "config.json").write_text(json.dumps(config))
    with pytest.raises(ValueError, match="a number's range"):
        TextClassifier.from_preset(theirs)
