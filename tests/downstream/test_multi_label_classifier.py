import dataclasses

import keras
import numpy as np
import pytest
from sklearn.metrics import f1_score

from keras_corrupt.downstream import MultiLabelClassifier, TextClassifier
from keras_corrupt.downstream.finetuner import Finetuner
from keras_corrupt.downstream.results import ensemble
from keras_corrupt.presets import load_preset
from keras_corrupt.tasks.multi_label import MultiLabelTask
from keras_corrupt.tasks.tables import Columns
from tests.downstream.conftest import ENCODER, cats_and_dogs, scrambled

TEXTS = ["the cat sat", ("a dog ran", "the dog"), "", "cats , dogs ."]
LABELS = [["cat"], ["dog"], [], ["dog", "cat"]]


@pytest.fixture
def classifier(tokenizer):
    model = MultiLabelClassifier(ENCODER, tokenizer, labels=["cat", "dog", "ant"])
    return scrambled(model)


def loss_of(model, labels):
    (batch,) = model.batches(model.features(TEXTS, labels), 4)
    inputs, targets, _ = batch
    outputs = model(inputs)
    logits = np.array(outputs["logits"], "float64")
    return float(model.compute_loss(inputs, targets, outputs)), logits


@pytest.mark.parametrize("weights", [None, [2.0, 1.0, 5.0]])
def test_the_loss_by_hand(classifier, weights):
    classifier.label_weights = weights
    loss, logits = loss_of(classifier, LABELS)
    present = np.array([[1, 0, 0], [0, 1, 0], [0, 0, 0], [1, 1, 0]])
    losses = present * np.log1p(np.exp(-logits)) * (weights or 1.0)
    losses += (1 - present) * np.log1p(np.exp(logits))
    assert loss == pytest.approx(losses.sum(axis=1).mean(), rel=1e-5)


def test_weights_of_classes_by_hand(tokenizer):
    model = TextClassifier(
        ENCODER, tokenizer, labels=["cat", "dog"], label_weights=[0.5, 3.0]
    )
    loss, logits = loss_of(scrambled(model), ["cat", "dog", "dog", "cat"])
    logs = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    losses = -logs[range(4), [0, 1, 1, 0]] * [0.5, 3.0, 3.0, 0.5]
    assert loss == pytest.approx(losses.mean(), rel=1e-5)
    soft = keras.ops.convert_to_tensor([[0.25, 0.75]])
    assert float(model.weights_of(soft)[0]) == pytest.approx(0.25 * 0.5 + 0.75 * 3)


def test_targets_of_fit_and_labels_in_arrays(classifier):
    inputs = classifier.tokenizer.pack(TEXTS, 8)
    labels = [["cat"], ["dog", "ant"]] * 2
    features = classifier.features(TEXTS, np.array(labels, object))
    targets = np.array([feature.targets["labels"] for feature in features])
    assert targets.tolist() == [[1, 0, 0], [0, 1, 1]] * 2
    classifier.compile(keras.optimizers.SGD(0.0))
    loss = classifier.evaluate(inputs, targets, verbose=0)
    assert loss == pytest.approx(loss_of(classifier, labels)[0], rel=1e-5)
    with pytest.raises(ValueError, match=r"shape .* 3\); got \(4,\)"):
        classifier.fit(inputs, np.zeros(4))
    with pytest.raises(ValueError, match="Targets are from 0 to 1"):
        classifier.fit(inputs, targets + 1)
    with pytest.raises(ValueError, match="lists of names; got the string 'catdog'"):
        classifier.features(TEXTS, ["catdog"] * 4)


def test_the_threshold_has_the_best_f1(classifier):
    rng = np.random.default_rng(0)
    # Few values, so that many are equal.
    outputs = [{"logits": row} for row in rng.integers(-3, 4, (40, 3)) / 2]
    labels = [
        [name for name in classifier.labels if rng.random() < 0.4] for _ in outputs
    ]
    classifier.calibrate(outputs, labels)
    true = np.array([[name in row for name in classifier.labels] for row in labels])

    def score(threshold):
        classifier.threshold = threshold
        given = classifier.decode(TEXTS, None, outputs)
        found = [[name in row for name in classifier.labels] for row in given]
        return f1_score(true, np.array(found), average="micro", zero_division=0)

    best = score(classifier.threshold)
    assert best == max(score(t) for t in np.linspace(0.01, 0.99, 99))


def test_presets_have_labels_and_threshold(classifier, tmp_path):
    classifier.threshold = 0.25
    classifier.save_to_preset(tmp_path / "preset")
    loaded = load_preset(tmp_path / "preset")
    assert type(loaded) is MultiLabelClassifier and loaded.threshold == 0.25
    np.testing.assert_array_equal(
        loaded.probabilities(TEXTS), classifier.probabilities(TEXTS)
    )
    assert loaded.predictions(TEXTS) == classifier.predictions(TEXTS)


def test_new_labels_have_new_weights_and_threshold(classifier, tokenizer, tmp_path):
    classifier.threshold, classifier.label_weights = 0.25, [1.0, 2.0, 3.0]
    classifier.save_to_preset(tmp_path / "several")
    one = TextClassifier(ENCODER, tokenizer, ["cat", "dog"], label_weights=[1.0, 2.0])
    one.save_to_preset(tmp_path / "one")
    for cls, name in ((MultiLabelClassifier, "several"), (TextClassifier, "one")):
        whole = cls.from_preset(tmp_path / name)
        assert whole.label_weights[1] == 2.0
        new = cls.from_preset(tmp_path / name, labels=["a", "b", "c", "d"])
        assert new.label_weights is None and getattr(new, "threshold", 0.5) == 0.5


def test_a_run_learns_both_labels(config, tmp_path):
    """Sentences are put together, so that they have one animal, two, or one twice."""
    paths = {}
    for name, count, seed in (("train", 256, 0), ("dev", 64, 5)):
        halves = cats_and_dogs(count, seed), cats_and_dogs(count, seed + 1)
        paths[name] = tmp_path / f"{name}.tsv"
        texts = zip(*(half.examples for half in halves), strict=True)
        labels = zip(*(half.labels for half in halves), strict=True)
        rows = [
            f"{' '.join(text)}\t{','.join(label)}"
            for text, label in zip(texts, labels, strict=True)
        ]
        paths[name].write_text("\n".join(["text\tlabels", *rows]) + "\n")
    task = MultiLabelTask(
        paths["train"], Columns("text", label="labels"), paths["dev"], name="animals"
    )
    finetuner = Finetuner(task, dataclasses.replace(config, seeds=1, ensemble=1))
    result = finetuner.run()[0]
    assert result["metrics"]["dev"]["micro_f1"] > finetuner.guess + 5
    alone = ensemble(finetuner, [result], 1)  # which has a threshold of its own
    assert alone["dev"]["micro_f1"] == result["metrics"]["dev"]["micro_f1"]
    model = MultiLabelClassifier.from_preset(f"{result['folder']}/preset")
    assert model.threshold != 0.5
    with pytest.raises(ValueError, match="Unknown label 'ant'"):
        model.features(["a"], [["ant"]])
