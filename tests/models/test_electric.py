import math

import keras
import numpy as np
import pytest

from keras_corrupt.corruption import (
    choose_positions,
    gather_tokens,
    maskable_tokens,
    replace_tokens,
)
from keras_corrupt.models import Electric
from keras_corrupt.objectives import noise_contrastive as objective
from keras_corrupt.objectives import token_probabilities as electra_tt
from keras_corrupt.training import AdamW
from tests.conftest import COMPILED, SIZES, make_inputs
from tests.models.conftest import arrays, gradients


def make(sizes, dropout=0.0, **kwargs):
    sizes["discriminator"] |= {"dropout": dropout, "attention_dropout": dropout}
    return Electric(**{**sizes, **kwargs})


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


# === The objective, against NumPy ===


def numpy_loss(energies, log_q, noise, k, n):
    """5.1.3 with algorithm 2's D, which is the probability of data there."""
    p_hat, q = np.exp(-energies), np.exp(log_q)
    d = (n - k) * p_hat / ((n - k) * p_hat + k * q)
    return -np.where(noise, np.log(1 - d), np.log(d))


def test_loss_equals_numpy(sizes, inputs):
    model = make(sizes)
    model.compile(optimizer=AdamW(1e-3))
    outputs = model(inputs)
    loss = float(model.compute_loss(inputs, y_pred=outputs))
    o = arrays(outputs)

    states = model.generator(inputs)
    positions = np.tile(np.arange(20, dtype="int32"), (6, 1))
    logits = np.array(model.generator.head(states, positions), "float64")
    log_q = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    ids = inputs["token_ids"]
    learned = ~np.isin(ids, [0, 2, 3])
    cloze = -np.take_along_axis(log_q, ids[..., None], -1)[..., 0]

    noise = np.zeros(ids.shape, bool)
    positions, weights = o["corrupted"].masking
    rows, slots = np.nonzero(weights)
    noise[rows, positions[rows, slots]] = True
    corrupted = o["corrupted"].token_ids
    energies = np.array(model.discriminator({**inputs, "token_ids": corrupted}))
    k, n = noise.sum(1, keepdims=True), learned.sum(1, keepdims=True)
    real = inputs["padding_mask"].sum(1, keepdims=True)
    np.testing.assert_array_equal(k, np.ceil(0.15 * real - 1e-9))
    of_noised = np.take_along_axis(log_q, corrupted[..., None], -1)[..., 0]
    nce = numpy_loss(energies, of_noised, noise, k, n)

    expected = cloze[learned].mean() + 50 * nce[learned].mean()
    assert loss == pytest.approx(expected, rel=1e-5)
    metrics = {m.name: float(m.result()) for m in model.metrics}
    assert metrics["cloze_loss"] == pytest.approx(cloze[learned].mean(), rel=1e-5)
    assert metrics["nce_loss"] == pytest.approx(nce[learned].mean(), rel=1e-5)
    data = learned & ~noise
    assert metrics["energy"] == pytest.approx(energies[data].mean(), rel=1e-4)
    right = (logits.argmax(-1) == ids)[noise].mean()
    assert metrics["cloze_accuracy"] == pytest.approx(right)


def test_a_sampled_original_counts_as_noise(sizes, inputs):
    model = make(sizes, mask_rate=0.9)
    # A generator that is sure of one token samples it everywhere.
    bias = np.zeros(50, "float32")
    bias[7] = 1e3
    model.generator.head.bias.assign(bias)
    ids = np.where(np.isin(inputs["token_ids"], [0, 2, 3]), inputs["token_ids"], 7)
    outputs = model({**inputs, "token_ids": ids.astype("int32")})
    np.testing.assert_array_equal(np.array(outputs["corrupted"].token_ids), ids)
    counted = np.array(outputs["rtd"].replaced).sum(1)
    weights = np.array(outputs["corrupted"].masking.weights)
    np.testing.assert_array_equal(counted, weights.sum(1))
    assert counted.min() > 5


def test_odds_are_finite_where_nothing_is_left(sizes):
    """A text of one token, which is replaced, and a text of special tokens alone."""
    ids = np.array([[2, 9, 3, 0], [2, 3, 0, 0]], "int32")
    model = make(sizes)
    outputs = model(ids)
    assert np.isfinite(np.array(outputs["rtd"].logits)).all()
    assert np.array(outputs["rtd"].replaced).tolist() == [[0, 1, 0, 0], [0, 0, 0, 0]]


def test_algorithm_1_equals_numpy():
    rng = np.random.default_rng(0)
    n, vocabulary, k = 5, 4, 3
    table = rng.normal(size=(n, vocabulary, vocabulary))  # E of a token and the next

    def energies_of(texts):
        texts = np.array(texts)
        return np.stack(
            [table[t, texts[:, t], texts[:, (t + 1) % n]] for t in range(n)], axis=1
        ).astype("float32")

    q = rng.dirichlet(np.ones(vocabulary), size=n)
    text = rng.integers(0, vocabulary, n)
    positions, samples = np.array([4, 1, 4]), np.array([2, 0, text[4]])

    def d(texts):  # of 5.1.3: the probability of data
        p_hat = np.exp(-energies_of(texts)).astype("float64")
        noise = np.take_along_axis(q, texts.T, axis=1).T
        return n * p_hat / (n * p_hat + k * noise)

    expected = -np.log(d(text[None])).sum()
    for position, sample in zip(positions, samples, strict=True):
        replaced = text.copy()
        replaced[position] = sample
        expected -= np.log(1 - d(replaced[None])[0, position])
    found = objective.nce_loss_one_by_one(
        energies_of, np.log(q).astype("float32"), text, positions, samples
    )
    assert float(found) == pytest.approx(expected, rel=1e-5)


# === What it learns ===

P = np.array([0.4, 0.3, 0.15, 0.1, 0.05])
BIASED_Q = np.array([0.1, 0.1, 0.2, 0.3, 0.3])


def toy_texts(number, rng):
    """Texts of independent tokens 5 to 9 with probabilities P, of many lengths."""
    inputs = make_inputs(number)
    tokens = 5 + rng.choice(5, size=inputs["token_ids"].shape, p=P)
    special = np.isin(inputs["token_ids"], [0, 2, 3])
    return {
        **inputs,
        "token_ids": np.where(special, inputs["token_ids"], tokens).astype("int32"),
    }


def newton(logits_of, labels, tokens):
    """Minimises the binary cross-entropy over a number for each token."""
    found = np.zeros(5)
    for _ in range(20):
        d = sigmoid(logits_of(found))
        gradient = np.bincount(tokens, d - labels, 5)
        step = gradient / np.bincount(tokens, d * (1 - d), 5)
        found -= np.clip(step, -1, 1)
    return found


def test_energies_are_log_probabilities_whatever_q_is():
    """And sum to one. ELECTRA's other labels need another formula than Electric's."""
    rng = np.random.default_rng(0)
    inputs = toy_texts(12000, rng)
    ids = inputs["token_ids"]
    seed = keras.random.SeedGenerator(0)
    masking = choose_positions(inputs, 0.15, (0, 2, 3), seed)
    samples = 5 + rng.choice(5, size=masking.positions.shape, p=BIASED_Q)
    corrupted = np.array(replace_tokens(ids, masking, samples.astype("int32")))
    learned = np.array(maskable_tokens(inputs, (0, 2, 3)))
    originals = np.array(gather_tokens(ids, masking.positions))
    log_q = objective.log_noise(
        *(-np.log(BIASED_Q)[np.clip(x - 5, 0, 4)] for x in (ids, samples)), masking
    )
    np.testing.assert_allclose(
        np.exp(np.array(log_q))[learned], BIASED_Q[corrupted[learned] - 5], rtol=1e-5
    )
    assert (originals == samples).any()
    sampled = np.array(objective.sampled_labels(masking, ids.shape[1]))
    k, n = sampled.sum(1), learned.sum(1)
    tokens = corrupted[learned] - 5
    offsets = objective.noise_logits(np.zeros(ids.shape), log_q, k, n)
    offsets = np.array(offsets, "float64")[learned]
    energies = newton(lambda e: e[tokens] + offsets, sampled[learned], tokens)

    noise = np.bincount(tokens, sampled[learned], 5)
    data = np.bincount(tokens, 1 - sampled[learned], 5)
    errors = np.sqrt(1 / noise + 1 / data)
    assert errors.max() < 0.03
    assert (np.abs(energies + np.log(P)) < 4 * errors).all()
    assert abs(np.log(np.exp(-energies).sum())) < 0.03

    replaced = (corrupted != ids)[learned]
    logits = newton(lambda z: z[tokens], replaced, tokens)
    arguments = logits[None], np.log(BIASED_Q)[None], k.sum()[None], n.sum()[None]
    exact, thesis = (
        np.array(electra_tt.log_probabilities(*arguments, rule))[0]
        for rule in ("exact", "thesis")
    )
    # Lengths differ, and with them k / n, which is ceil(0.15 n) / n.
    assert (np.abs(exact - np.log(P)) < 4 * errors + 0.02).all()
    assert np.exp(thesis[0]) > 1.25 * P[0]


@pytest.mark.usefixtures("graphs")
def test_networks_learn_the_energies():
    rng = np.random.default_rng(0)
    inputs = toy_texts(1024, rng)
    sizes = {**SIZES["discriminator"], "num_layers": 1}
    sizes |= {"dropout": 0.0, "attention_dropout": 0.0}
    ids = {name: SIZES[name] for name in ("mask_id", "unmaskable_ids")}
    model = Electric(sizes, SIZES["generator"], **ids)
    model.compile(optimizer=AdamW(1e-2), jit_compile=COMPILED)
    model.fit(inputs, batch_size=64, epochs=12, verbose=0)
    result = model.evaluate(inputs, batch_size=128, verbose=0, return_dict=True)
    entropy = -(P * np.log(P)).sum()
    assert result["cloze_loss"] == pytest.approx(entropy, abs=0.05)
    assert result["energy"] == pytest.approx(entropy, abs=0.15)
    energies = np.array(model.discriminator.predict(inputs, verbose=0))
    means = [energies[inputs["token_ids"] == v].mean() for v in range(5, 10)]
    np.testing.assert_allclose(means, -np.log(P), atol=0.3)


# === The networks ===


def test_energy_is_a_product_with_the_last_state(sizes, inputs):
    discriminator = make(sizes).discriminator
    hidden = np.array(discriminator.encoder(inputs))
    (weights,) = discriminator.head.trainable_variables
    expected = hidden @ np.array(weights)[:, 0]
    np.testing.assert_allclose(np.array(discriminator(inputs)), expected, atol=1e-5)


def test_q_is_a_constant_to_the_discriminators_loss(sizes, inputs):
    """It reaches the embeddings that are shared, and nothing else of the generator."""
    model = make(sizes)
    embeddings = model.encoder.embeddings
    shared = {id(embeddings.token.embeddings), id(embeddings.position.embeddings)}
    towers = model.generator.left_to_right, model.generator.right_to_left
    for tower in towers:
        assert shared <= {id(v) for v in tower.trainable_variables}
    nce = gradients(model, inputs, ["nce"])
    cloze = gradients(model, inputs, ["cloze"])
    for v in model.generator.trainable_variables:
        if "key/bias" not in v.path:  # a softmax does not see it
            assert (np.abs(nce[id(v)]).max() > 0) == (id(v) in shared), v.path
            assert np.abs(cloze[id(v)]).max() > 0, v.path
    for v in model.discriminator.trainable_variables:
        if "key/bias" not in v.path:
            assert np.abs(nce[id(v)]).max() > 0, v.path
            assert (np.abs(cloze[id(v)]).max() > 0) == (id(v) in shared), v.path


def test_corruption_touches_chosen_positions_only(sizes, inputs):
    text = arrays(make(sizes)(inputs))["corrupted"]
    sampled = np.array(objective.sampled_labels(text.masking, 20)) == 1
    ids, corrupted = inputs["token_ids"], text.token_ids
    assert (ids[~sampled] == corrupted[~sampled]).all()
    assert (ids[sampled] != corrupted[sampled]).any()
    assert not np.isin(ids[sampled], [0, 2, 3]).any()


def test_probabilities_of_a_sample_are_those_of_the_objective(sizes, tokenizer):
    sizes["discriminator"] |= {"vocabulary_size": 60, "initializer_range": 0.3}
    sizes = {name: sizes[name] for name in ("discriminator", "generator")}
    model = make(sizes, tokenizer=tokenizer)
    (score,) = model.score(["the cat sat on the mat"])
    inputs = tokenizer.pack(["the cat sat on the mat"], 24)
    q = np.exp(
        -np.array(
            model.generator.head.loss(model.generator(inputs), inputs["token_ids"])
        )
    )[0]
    p_hat = np.exp(-np.array(model.discriminator(inputs)))[0]
    # As in training: two of eight tokens, of which [CLS] and [SEP] are never sampled.
    n, k = 6, 2
    corrupted, _, _ = model.corrupter.corrupt(inputs)
    assert np.array(corrupted.masking.weights).sum() == k
    expected = k * q / (k * q + (n - k) * p_hat)
    np.testing.assert_allclose(score.probabilities[1:-1], expected[1:-1], rtol=1e-4)
    assert score.probabilities[0] == score.probabilities[-1] == 0


def test_costs_are_those_of_the_parts(sizes):
    model = make(sizes)
    encoder = model.encoder.flops(20, training=True)
    towers = 2 * model.generator.left_to_right.flops(20, training=True)
    head = model.generator.head.flops(20) + model.generator.head.flops(3)
    energies = 20 * (2 * 16 + 2)
    assert model.forward_flops(20) == encoder + towers + head + energies
    assert math.prod(model.discriminator.head.energy.shape) == 16
