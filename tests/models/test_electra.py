import numpy as np
import pytest
from keras import ops

from keras_corrupt.corruption.corrupted import Corrupted
from keras_corrupt.models import Electra
from keras_corrupt.training import AdamW
from tests.conftest import COMPILED, make_inputs
from tests.models.conftest import arrays, gradients, with_right_predictions


def make(sizes, dropout=0.0, **kwargs):
    sizes["discriminator"] |= {"dropout": dropout, "attention_dropout": dropout}
    return Electra(**{**sizes, **kwargs})


def test_loss_equals_numpy(sizes, inputs):
    model = make(sizes)
    model.compile(optimizer=AdamW(1e-3))
    outputs = with_right_predictions(model(inputs))
    loss = float(model.compute_loss(inputs, y_pred=outputs))

    o = arrays(outputs, "float64")
    text = o["corrupted"]
    logits, targets = o["mlm"].logits, text.target_ids.astype(int)
    weights = text.masking.weights
    logs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    nll = -np.take_along_axis(logs, targets[..., None], -1)[..., 0]
    mlm = (nll * weights).sum() / weights.sum()

    original, corrupted = inputs["token_ids"], text.token_ids
    replaced = original != corrupted
    d = 1 / (1 + np.exp(-o["rtd"].logits))
    bce = -np.where(replaced, np.log(d), np.log(1 - d))
    rtd = (bce * inputs["padding_mask"]).sum() / inputs["padding_mask"].sum()

    assert 0 < replaced.sum() <= weights.sum()
    assert loss == pytest.approx(mlm + 50 * rtd, rel=1e-5)
    metrics = {m.name: float(m.result()) for m in model.metrics}
    assert metrics["mlm_loss"] == pytest.approx(mlm, rel=1e-5)
    assert metrics["rtd_loss"] == pytest.approx(rtd, rel=1e-5)
    flagged = (d > 0.5) & (inputs["padding_mask"] == 1)
    hits = (flagged & replaced).sum()
    assert metrics["rtd_precision"] == pytest.approx(hits / max(1, flagged.sum()))
    assert metrics["rtd_recall"] == pytest.approx(hits / replaced.sum())
    fraction = replaced.sum() / inputs["padding_mask"].sum()
    assert metrics["replaced_fraction"] == pytest.approx(fraction)
    for name, ids in (
        ("mlm_accuracy", logits.argmax(-1)),
        ("sampled_accuracy", text.sampled_ids),
    ):
        right = (ids == targets) * weights
        assert metrics[name] == pytest.approx(right.sum() / weights.sum())
    assert metrics["mlm_accuracy"] > 0


def test_logits_are_no_coarser_in_bfloat16(sizes, inputs):
    logits = make(sizes, dtype="mixed_bfloat16")(inputs)["rtd"].logits
    coarse = ops.cast(ops.cast(logits, "bfloat16"), "float32")
    assert not np.array_equal(logits, coarse)


@pytest.mark.parametrize("spread", [1.0, 0.003])  # well trained; at first
def test_auc_is_the_probability_of_ranking_right(sizes, spread):
    inputs = make_inputs(batch=64)
    model = make(sizes)
    model.compile(optimizer=AdamW(1e-3))
    outputs = dict(model(inputs))
    rng = np.random.default_rng(0)
    replaced = np.array(outputs["rtd"].replaced)
    logits = spread * (rng.normal(size=replaced.shape) + 2 * replaced) - 2
    logits = logits.astype("float32")
    outputs["rtd"] = outputs["rtd"]._replace(logits=ops.convert_to_tensor(logits))
    model.compute_loss(inputs, y_pred=outputs)
    real = inputs["padding_mask"] == 1
    positive = logits[real & (replaced == 1)][:, None]
    negative = logits[real & (replaced == 0)][None, :]
    assert float(model.objectives["rtd"].auc.result()) == pytest.approx(
        (positive > negative).mean(), abs=0.02
    )


def test_a_sampled_original_counts_as_original():
    original = np.array([[5, 6, 7, 8]])
    corrupted = np.array([[5, 9, 7, 8]])  # position 2 was sampled, and came out as 7
    text = Corrupted(original, corrupted, None, None, None)
    assert np.array(text.replaced).tolist() == [[0, 1, 0, 0]]


def test_corruption_touches_chosen_positions_only(sizes, inputs):
    outputs = make(sizes)(inputs)
    text = outputs["corrupted"]
    corrupted, masked = np.array(text.token_ids), np.array(outputs["mlm"].token_ids)
    chosen = np.zeros(corrupted.shape, bool)
    positions, weights = map(np.array, text.masking)
    rows, slots = np.nonzero(weights)
    chosen[rows, positions[rows, slots]] = True
    assert (corrupted[~chosen] == inputs["token_ids"][~chosen]).all()
    assert (masked[chosen] == 4).all()
    sampled = np.array(text.sampled_ids)
    assert (corrupted[rows, positions[rows, slots]] == sampled[rows, slots]).all()


def test_every_term_trains_its_network(sizes, inputs):
    model = make(sizes)
    mlm = gradients(model, inputs, ["mlm"])
    rtd = gradients(model, inputs, ["rtd"])
    for v in model.generator.trainable_variables:
        # a softmax does not see a constant added to every key's logit
        if "key/bias" not in v.path:
            assert np.abs(mlm[id(v)]).max() > 0, v.path
    for v in model.discriminator.trainable_variables:
        if "key/bias" not in v.path:
            assert np.abs(rtd[id(v)]).max() > 0, v.path


def test_the_discriminators_loss_reaches_only_shared_embeddings(sizes, inputs):
    model = make(sizes)
    rtd = gradients(model, inputs, ["rtd"])
    embeddings = model.encoder.embeddings
    shared = {id(embeddings.token.embeddings), id(embeddings.position.embeddings)}
    own = [v for v in model.generator.trainable_variables if id(v) not in shared]
    assert len(own) == len(model.generator.trainable_variables) - 2
    assert all(np.abs(rtd[id(v)]).max() == 0 for v in own)
    mlm = gradients(model, inputs, ["mlm"])
    for v in model.discriminator.trainable_variables:
        assert (np.abs(mlm[id(v)]).max() > 0) == (id(v) in shared)


@pytest.mark.parametrize(
    "tied, shared", [("none", 0), ("token", 1), ("token_and_position", 2), ("all", 5)]
)  # the released code shares the segment table and the norm's two as well
def test_tied_embeddings(sizes, tied, shared):
    model = make(sizes, tied_embeddings=tied)
    ids = [id(v) for net in model.networks.values() for v in net.trainable_variables]
    assert len(ids) - len(set(ids)) == shared
    assert len(model.trainable_variables) == len(set(ids))


def test_static_masks_are_used(sizes, inputs):
    model = make(sizes)
    positions = np.tile(np.array([[1, 2, 0]], "int32"), (6, 1))
    weights = np.tile(np.array([[1, 1, 0]], "float32"), (6, 1))
    outputs = model(
        {**inputs, "masked_positions": positions, "masked_weights": weights}
    )
    with pytest.raises(ValueError, match="`masked_positions` and no `masked_weights`"):
        model({**inputs, "masked_positions": positions})
    masked = np.array(outputs["mlm"].token_ids)
    assert (masked[:, 1:3] == 4).all()
    rest = np.delete(masked, [1, 2], axis=1)
    assert (rest == np.delete(inputs["token_ids"], [1, 2], axis=1)).all()


@pytest.mark.usefixtures("graphs")
def test_fit_learns_a_pattern(sizes):
    """Sequences count upwards; a replaced token breaks the count."""
    rng = np.random.default_rng(0)
    start = rng.integers(5, 30, (512, 1))
    ids = ((start + np.arange(16)) % 45 + 5).astype("int32")
    x = {"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": 0 * ids + 1}
    sizes["discriminator"] |= {"hidden_size": 32}
    sizes["generator"] |= {"hidden_size": 16}
    model = make(sizes)
    model.compile(optimizer=AdamW(2e-3), jit_compile=COMPILED)
    first = model.evaluate(x, batch_size=64, verbose=0, return_dict=True)
    model.fit(x, batch_size=64, epochs=80, verbose=0)
    last = model.evaluate(x, batch_size=64, verbose=0, return_dict=True)
    assert last["mlm_loss"] < 0.8 * first["mlm_loss"]
    assert last["rtd_auc"] > 0.95


@pytest.mark.usefixtures("graphs")
def test_score_gives_each_token_a_probability(sizes, tokenizer):
    sizes["discriminator"] |= {"vocabulary_size": 60}
    model = make({k: v for k, v in sizes.items() if "id" not in k}, tokenizer=tokenizer)
    texts = ["the cat sat on the mat .", ("a dog", "ran slowly"), "the cat", "a " * 9]
    scores = model.score(texts, batch_size=1)
    assert scores[0].tokens == ["[CLS]", *texts[0].split(), "[SEP]"]
    assert scores[1].tokens[:4] == ["[CLS]", "a", "dog", "[SEP]"]
    together = model.score(texts)  # padding must not matter
    for a, b in zip(scores, together, strict=True):
        np.testing.assert_allclose(a.probabilities, b.probabilities, atol=1e-6)
    packed = tokenizer.pack([texts[0]], 24)
    logits = np.array(model.discriminator(packed))[0]
    np.testing.assert_allclose(
        scores[0].probabilities, 1 / (1 + np.exp(-logits)), atol=1e-6
    )


def test_score_errors(sizes, tokenizer):
    with pytest.raises(ValueError, match="tokenizer"):
        make(sizes).score(["text"])
    sizes["discriminator"] |= {"vocabulary_size": 60}
    model = make(sizes, tokenizer=tokenizer)
    with pytest.raises(ValueError, match="`texts` must be a list"):
        model.score("text")
    with pytest.raises(ValueError, match="a pair, has 43 tokens .* more than the 24"):
        model.score([("the cat " * 10, "the cat " * 10)])
    with pytest.raises(ValueError, match="`max_length` must be from 4 to .* 24; got 3"):
        model.score(["the cat"], max_length=3)


@pytest.mark.usefixtures("graphs")
def test_a_long_text_is_scored_in_windows(sizes, tokenizer):
    """Each token's probability is from the window in which it is farther inside."""
    sizes["discriminator"] |= {"vocabulary_size": 60}
    model = make({k: v for k, v in sizes.items() if "id" not in k}, tokenizer=tokenizer)
    words = ["the", "cat", "sat", "on", "a", "mat", "dog", "ran", "the", "."] * 3
    long, short = model.score([" ".join(words), "the cat"])
    assert long.tokens == ["[CLS]", *words, "[SEP]"]
    first, second = model.score([" ".join(words[:22]), " ".join(words[8:])])
    expected = [*first.probabilities[:16], *second.probabilities[8:]]
    np.testing.assert_allclose(long.probabilities, expected, atol=1e-6)
    np.testing.assert_allclose(
        short.probabilities, model.score(["the cat"])[0].probabilities, atol=1e-6
    )


@pytest.mark.parametrize("rate", [0, 1, 0.0, 1.0, -0.1, 1.5])
def test_mask_rate_bounds(sizes, rate):
    with pytest.raises(ValueError, match="mask_rate"):
        Electra(**sizes, mask_rate=rate)


def test_constructor_errors(sizes, tokenizer):
    with pytest.raises(ValueError, match="more than the model.s vocabulary_size=20"):
        sizes["discriminator"] |= {"vocabulary_size": 20}
        Electra(**sizes, tokenizer=tokenizer)
    with pytest.raises(ValueError, match="mask_id"):
        Electra(**{**sizes, "mask_id": 103})
    sizes["discriminator"] |= {"vocabulary_size": 50}
    for rate in (-0.1, 1.1, "x"):
        with pytest.raises(ValueError, match="keep_rate"):
            Electra(**sizes, keep_rate=rate)
    with pytest.raises(ValueError, match="tied_embeddings"):
        Electra(**sizes, tied_embeddings="none at all")


def test_a_new_batch_size_and_length_work(sizes):
    model = make(sizes)
    for batch, length in ((1, 8), (3, 24)):
        inputs = make_inputs(batch, length)
        outputs = model(inputs)
        assert outputs["rtd"].logits.shape == (batch, length)
        # each sequence is judged as it would be alone
        corrupted = {**inputs, "token_ids": np.array(outputs["corrupted"].token_ids)}
        last = {name: array[-1:] for name, array in corrupted.items()}
        np.testing.assert_allclose(
            np.array(model.discriminator(last))[0],
            np.array(outputs["rtd"].logits)[-1],
            atol=1e-5,
        )
