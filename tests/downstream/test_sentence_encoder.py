"""`SentenceEncoder` by hand, and as sentence-transformers computes it.

The recorded losses are of tests/fixtures/record_sentence_transformers.py.
"""

import os
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest

from keras_corrupt.downstream import SentenceEncoder, TextClassifier
from keras_corrupt.downstream.sentence_encoder import pair_losses
from keras_corrupt.models import Electra
from keras_corrupt.multitask.multi_task_model import MultiTaskModel
from keras_corrupt.scoring import embed_texts
from tests.conftest import COMPILED
from tests.downstream.conftest import ENCODER, scrambled

RECORDED = Path(__file__).parents[1] / "fixtures" / "sentence_transformers.npz"
PAIRS = [
    ("the cat sat", "a cat sat on"),
    ("a dog ran", "the dog ran under the mat"),
    ("the mat", "a rug"),
]


@pytest.fixture
def encoder(tokenizer):
    return scrambled(SentenceEncoder(ENCODER, tokenizer, dropout=0.0))


def mean_loss(vectors, place, symmetric, temperature=0.05):
    """The mean of the losses of those that learn; all texts differ."""
    present = np.ones(len(place), bool)
    text = np.arange(len(place))
    losses = np.array(pair_losses(vectors, place, text, present, temperature))
    return losses[place <= 1 if symmetric else place == 0].mean()


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize(("name", "count"), [("pairs", 2), ("hard", 3)])
def test_the_loss_is_what_sentence_transformers_computes(name, count, symmetric):
    with np.load(RECORDED) as recorded:
        vectors = recorded["loss_vectors"][:, :count]
        expected = recorded[f"loss_{name}{'_symmetric' * symmetric}"]
    place = np.tile(np.arange(count), len(vectors))
    found = mean_loss(vectors.reshape(-1, vectors.shape[-1]), place, symmetric)
    assert found == pytest.approx(float(expected), rel=1e-5)


def by_loops(vectors, place, text, present, temperature):
    """InfoNCE by its definition, row by row, in float64."""
    vectors = vectors.astype("float64")
    losses = []
    for i in range(len(vectors)):
        partner = i + 1 if place[i] == 0 else i - 1
        right = np.exp(vectors[i] @ vectors[partner] / temperature)
        total = right
        for j in range(len(vectors)):
            is_candidate = place[j] > 0 if place[i] == 0 else place[j] == 0
            is_same = text[j] in (text[i], text[partner])
            if is_candidate and present[j] and not is_same:
                total += np.exp(vectors[i] @ vectors[j] / temperature)
        losses.append(-np.log(right / total))
    return np.array(losses)


def test_equal_texts_and_rows_of_padding_are_no_negatives():
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(12, 8)).astype("float32")
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    place = np.tile([0, 1, 2], 4)
    text = np.arange(12)
    text[3], text[7], text[5] = text[0], text[1], text[0]
    present = np.arange(12) < 9
    rows = vectors, place, text, present, 0.2
    found, expected = np.array(pair_losses(*rows)), by_loops(*rows)
    learn = place <= 1
    np.testing.assert_allclose(found[learn], expected[learn], rtol=1e-5)
    everywhere = by_loops(vectors, place, np.arange(12), present | True, 0.2)
    assert (everywhere[learn] > expected[learn] + 1e-3).any()


@pytest.mark.parametrize("symmetric", [False, True])
def test_the_loss_of_a_batch_by_hand(symmetric, tokenizer):
    model = scrambled(
        SentenceEncoder(
            ENCODER, tokenizer, temperature=0.5, symmetric=symmetric, dropout=0.0
        )
    )
    features = model.features(PAIRS)
    (batch,) = model.batches(features, batch_size=4)
    inputs, targets, weights = batch
    assert weights.tolist() == [1.0] * 6 + [0.0] * 2
    # The batch is padded by a copy of a pair, which is no negative.
    outputs = model(inputs)
    found = model.compute_loss(inputs, targets, outputs, weights)
    vectors = model.encode([text for pair in PAIRS for text in pair])
    place, text = np.tile([0, 1], 3), np.arange(6)
    losses = by_loops(vectors, place, text, text >= 0, 0.5)
    losses = losses if symmetric else losses[place == 0]
    assert float(found) == pytest.approx(losses.mean(), rel=1e-4)


def test_vectors_are_means_of_tokens_and_have_length_one(encoder):
    texts = ["the cat sat", "", "a " * 50, "dogs ."]
    vectors = encoder.encode(texts, batch_size=2)
    assert vectors.dtype == np.float32
    expected = embed_texts(encoder, texts)
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(vectors, expected, atol=1e-5)
    assert encoder.encode([]).shape == (0, 16)
    (cosine,) = encoder.predictions([(texts[0], texts[3])])
    assert cosine == pytest.approx(float(vectors[0] @ vectors[3]), abs=1e-5)


def test_texts_are_cut(tokenizer):
    model = SentenceEncoder(ENCODER, tokenizer, max_length=8)
    features = model.features([("the " * 50, "cat", "dog")])
    assert [len(f.inputs["token_ids"]) for f in features] == [8, 3, 3]
    assert features[0].inputs["token_ids"][-1] == tokenizer.separate_id
    assert [f.targets["place"] for f in features] == [0, 1, 2]


def test_it_learns_and_comes_back(encoder, tmp_path, preset):
    pairs = [(a, b) for a in ("cat", "dog", "mat", "rug") for b in (f"the {a} ran",)]
    encoder.compile(keras.optimizers.Adam(0.01), jit_compile=COMPILED)
    batches = encoder.batches(encoder.features(pairs), 4, seed=0)
    losses = encoder.fit(batches, epochs=8, verbose=0).history["loss"]
    assert losses[-1] < 0.5 * losses[0]
    encoder.save_to_preset(tmp_path / "preset")
    back = SentenceEncoder.from_preset(tmp_path / "preset")
    assert (back.temperature, back.symmetric) == (0.05, False)
    texts = [text for pair in pairs for text in pair]
    np.testing.assert_array_equal(back.encode(texts), encoder.encode(texts))
    changed = SentenceEncoder.from_preset(tmp_path / "preset", temperature=0.1)
    assert changed.temperature == 0.1
    np.testing.assert_array_equal(changed.encode(texts), encoder.encode(texts))
    start = SentenceEncoder.from_preset(preset)
    electra = Electra.from_preset(preset)
    assert start.pretrained_by == "Electra"
    expected = embed_texts(electra, ["the cat"])[0]
    (found,) = start.encode(["the cat"])
    np.testing.assert_allclose(found, expected / np.linalg.norm(expected), atol=1e-6)
    classifier = TextClassifier.from_preset(tmp_path / "preset", labels=["a", "b"])
    np.testing.assert_allclose(
        embed_texts(classifier, texts), embed_texts(encoder, texts), atol=1e-6
    )


def test_what_cannot_be_learned_from_is_refused(encoder, tokenizer):
    features = encoder.features
    for examples in (["a", "b"], [("a", "b"), ("a", "b", "c")], [("a", "b"), "a"]):
        with pytest.raises(ValueError, match="two texts, or that all have three"):
            encoder.batches(features(examples), 2)
    for examples, size in ((PAIRS, 1), (PAIRS[:1], 4)):
        with pytest.raises(ValueError, match="two pairs at least"):
            encoder.batches(features(examples), size)
    encoder.batches(features([("a", "b", "c")]), 1)
    with pytest.raises(ValueError, match=r"examples\[1\].*three of strings"):
        features(["a", ("a", "b", "c", "d")])
    with pytest.raises(ValueError, match="must be a list"):
        encoder.encode("a")
    for wrong in (0, -1.0, "x", float("inf"), float("nan")):
        with pytest.raises(ValueError, match="`temperature`"):
            SentenceEncoder(ENCODER, tokenizer, temperature=wrong)
    with pytest.raises(ValueError, match=r"batches\(model.features"):
        encoder.compute_loss({}, np.zeros(2), {})
    with pytest.raises(ValueError, match="Train it by itself"):
        MultiTaskModel(ENCODER, tokenizer, {"task": {"class": "SentenceEncoder"}})


ON_DEVICES = """
import numpy as np
import tensorflow as tf

devices = tf.config.list_physical_devices("CPU")
two = [tf.config.LogicalDeviceConfiguration()] * 2
tf.config.set_logical_device_configuration(devices[0], two)
from keras_corrupt.downstream.sentence_encoder import pair_losses
from keras_corrupt.objectives.loss import weighted_mean

strategy = tf.distribute.MirroredStrategy(
    ["CPU:0", "CPU:1"], cross_device_ops=tf.distribute.ReductionToOneDevice()
)
rng = np.random.default_rng(0)
vectors = rng.normal(size=(12, 4)).astype("float32")
vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
place = np.tile([0, 1, 2], 4).astype("int32")
text = np.array([0, 1, 2, 0, 4, 5, 6, 1, 8, 9, 10, 11], "int32")
weights = np.array([1.0] * 9 + [0.0] * 3, "float32")


@tf.function
def step(vectors, place, text, weights):
    with tf.GradientTape() as tape:
        tape.watch(vectors)
        losses = pair_losses(vectors, place, text, weights > 0, 0.2)
        loss = weighted_mean(losses, weights * tf.cast(place <= 1, "float32"))
    return loss, tape.gradient(loss, vectors)


def part(array):
    parts = [tf.constant(array[:6]), tf.constant(array[6:])]
    return strategy.experimental_distribute_values_from_function(
        lambda context: parts[context.replica_id_in_sync_group]
    )


arrays = vectors, place, text, weights
expected, gradient = step(*map(tf.constant, arrays))
losses, gradients = strategy.run(step, tuple(map(part, arrays)))
np.testing.assert_allclose(sum(losses.values), expected, rtol=1e-5)
found = np.concatenate([np.array(g) for g in gradients.values])
np.testing.assert_allclose(found, gradient, rtol=1e-5, atol=1e-6)
print("equal")
"""


def test_two_devices_contrast_what_one_does():
    ran = subprocess.run(
        [sys.executable, "-c", ON_DEVICES],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "KERAS_BACKEND": "tensorflow"},
    )
    assert ran.stdout.strip() == "equal", ran.stderr
