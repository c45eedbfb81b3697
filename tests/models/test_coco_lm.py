import math

import keras
import numpy as np
import pytest
from keras import ops

from keras_corrupt.corruption import corrupters
from keras_corrupt.models import CocoLM
from keras_corrupt.objectives import contrastive
from keras_corrupt.training import PretrainConfig
from keras_corrupt.training.pretraining import check_batch_size
from tests.conftest import SIZES, make_inputs
from tests.models.conftest import arrays, gradients
from tests.models.make_coco_lm import (
    log_softmax,
    make,
    mean,
    scrambled,
)

TASKS = "clm all_token_lm rtd clm_without_copy clm_without_stop_gradient".split()


def at(array, index):
    return np.take_along_axis(array, index[..., None], -1)[..., 0]


def contrastive_by_loops(first, second):
    """Equation 3, literally: `[texts, size]` each."""
    views = [*first, *second]
    losses = []
    for i, s in enumerate(views):
        cosine = [s @ t / np.linalg.norm(s) / np.linalg.norm(t) for t in views]
        positive = cosine[(i + len(first)) % len(views)]
        others = sum(np.exp(c) for j, c in enumerate(cosine) if j != i)
        losses.append(np.log(others) - positive)
    return np.mean(losses)


def expected_terms(model, inputs, outputs):
    """All losses in NumPy, from logits, and from [CLS] of both views."""
    o = arrays(outputs)
    text, real = o["corrupted"], inputs["padding_mask"]
    (positions, weights), targets = text.masking, text.target_ids
    replaced = inputs["token_ids"] != text.token_ids
    terms = {"mlm": mean(-at(log_softmax(o["mlm"].logits), targets), weights)}
    copying = 1 / (1 + np.exp(o["rtd"].logits))
    terms["rtd"] = mean(-np.log(np.where(replaced, 1 - copying, copying)), real)
    if model.token_task == "all_token_lm":
        hidden = np.array(model.encoder({**inputs, "token_ids": text.token_ids}))
        head = model.discriminator.vocabulary_head
        table = np.array(model.encoder.embeddings.token.embeddings)
        softmax = np.exp(log_softmax(hidden @ table.T + np.array(head.bias)))
        softmax = at(softmax, inputs["token_ids"])
        terms["lm"] = mean(-np.log(~replaced * copying + (1 - copying) * softmax), real)
        del terms["rtd"]
    elif model.token_task != "rtd":
        softmax = at(np.exp(log_softmax(o["lm"].logits)), targets)
        copying = np.take_along_axis(copying, positions, 1)
        same = np.take_along_axis(~replaced, positions, 1)
        probability = same * copying + (1 - copying) * softmax
        if model.token_task == "clm_without_copy":
            probability = softmax
        terms["lm"] = mean(-np.log(probability), weights)
    if model.sequence_task == "scl":
        views = ({**inputs, "token_ids": text.token_ids}, inputs)
        terms["scl"] = contrastive_by_loops(
            *(np.array(model.encoder(view))[:, 0].astype("float64") for view in views)
        )
    return terms


@pytest.mark.parametrize("sequence_task", ["scl", "none"])
@pytest.mark.parametrize("token_task", TASKS)
def test_loss_equals_numpy(token_task, sequence_task, inputs):
    options = {"token_task": token_task, "sequence_task": sequence_task}
    model = scrambled(make(mask_rate=0.5, crop_fraction=1.0, **options))
    outputs = model(inputs)
    # Some samples are the originals: copying shows.
    text = outputs["corrupted"]
    fixed = np.where(np.arange(10) % 2, text.target_ids, text.sampled_ids)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(corrupters, "sample_tokens", lambda *_: fixed.astype("int32"))
        masks = text.masking._asdict()
        given = {**inputs, **{f"masked_{n}": np.array(x) for n, x in masks.items()}}
        outputs = model(given)
    loss = float(model.compute_loss(inputs, y_pred=outputs))
    terms = expected_terms(model, inputs, outputs)
    metrics = {m.name: float(m.result()) for m in model.metrics}
    found = {name[:-5] for name in metrics if name.endswith("_loss")}
    assert found == set(terms) == set(model.loss_weights)
    for name, value in terms.items():
        assert metrics[f"{name}_loss"] == pytest.approx(value, rel=1e-4)
    weights = {"mlm": 1, "rtd": 50, "lm": 1, "scl": 1}
    total = sum(weights[name] * value for name, value in terms.items())
    assert loss == pytest.approx(total, rel=1e-4)


def test_losses_have_the_papers_weights():
    assert make().loss_weights == {"mlm": 1.0, "rtd": 50.0, "lm": 1.0, "scl": 1.0}
    weights = make(rtd_weight=2.0, scl_weight=0.0).loss_weights
    assert (weights["rtd"], weights["scl"]) == (2.0, 0.0)


def test_rows_of_padding_are_no_negatives():
    rng = np.random.default_rng(0)
    views = rng.normal(size=(5, 2, 8)).astype("float32")
    views[3] = 0.0  # whatever it is
    present = np.array([True, True, True, False, True])
    unit = contrastive.unit_vectors(views)
    same = np.eye(5, dtype=bool)
    loss = contrastive.contrastive_loss(contrastive.cosines(unit, unit), same, present)
    loss = np.array(loss)
    assert np.isfinite(loss).all()
    rest = views[present].astype("float64")
    expected = contrastive_by_loops(rest[:, 0], rest[:, 1])
    assert loss[present].mean() == pytest.approx(expected, rel=1e-5)


def test_a_batch_of_one_contrasts_nothing():
    """It trains by the other losses; nothing is infinite."""
    model = make()
    inputs = make_inputs(batch=1)
    loss = float(model.compute_loss(inputs, y_pred=model(inputs)))
    metrics = {m.name: float(m.result()) for m in model.metrics}
    assert metrics["scl_loss"] == pytest.approx(0.0, abs=1e-6)
    assert np.isfinite(loss) and loss > metrics["mlm_loss"]
    assert np.isfinite(list(metrics.values())).all()
    assert model.smallest_batch == 2
    assert make(sequence_task="none").smallest_batch == 1


@pytest.mark.parametrize("batch_size, accumulate", [(1, 1), (4, 4)])
def test_a_run_with_batches_of_one_text_is_refused(batch_size, accumulate):
    config = PretrainConfig(
        model="CocoLM",
        preset="tiny",
        output="",
        batch_size=batch_size,
        accumulate=accumulate,
    )
    model = make()
    message = rf"--batch_size {batch_size} .*--accumulate {accumulate}.* 2 sequences"
    with pytest.raises(ValueError, match=message):
        check_batch_size(config, model)
    check_batch_size(config, make(sequence_task="none"))


def test_a_text_of_three_tokens_and_one_of_none():
    model = make(mask_rate=0.5)
    ids = np.array([[2, 9, 3, 0], [2, 3, 0, 0], [0, 0, 0, 0], [2, 9, 8, 3]], "int32")
    outputs = model({"token_ids": ids})
    assert np.isfinite(float(model.compute_loss(y_pred=outputs)))
    found = gradients(model, {"token_ids": ids}, list(model.loss_weights))
    assert all(np.isfinite(g).all() for g in found.values())


# === Gradients ===


@pytest.fixture(scope="module")
def model():
    keras.utils.set_random_seed(0)
    return scrambled(make(mask_rate=0.5))


def sizes_of(found, part):
    # A softmax does not see a constant added to every key's logit.
    variables = [v for v in part.trainable_variables if "key/bias" not in v.path]
    return [np.abs(found[id(v)]).max() for v in variables]


def test_every_term_trains_its_network(model, inputs):
    found = {term: gradients(model, inputs, [term]) for term in model.loss_weights}
    main, auxiliary = model.discriminator, model.generator
    table = main.encoder.embeddings.token
    assert auxiliary.encoder.embeddings.token is table
    for part, terms in (
        (table, ["mlm", "rtd", "lm", "scl"]),
        (auxiliary.encoder.layers_[0], ["mlm"]),
        (auxiliary.encoder.embeddings.position, ["mlm"]),
        (auxiliary.encoder.position_bias, ["mlm"]),
        (auxiliary.head.transform, ["mlm"]),
        (main.encoder.layers_[0], ["rtd", "lm", "scl"]),
        (main.encoder.embeddings.position, ["rtd", "lm", "scl"]),
        (main.encoder.position_bias, ["rtd", "lm", "scl"]),
        # None through the copy probability in L_LM.
        (main.head, ["rtd"]),
    ):
        moved = {term: sizes_of(found[term], part) for term in found}
        assert all(all(s) or not any(s) for s in moved.values())
        assert [term for term in found if all(moved[term])] == terms
    bias = id(main.vocabulary_head.bias)
    assert [term for term in found if found[term][bias].any()] == ["lm"]


@pytest.mark.parametrize("task", ["all_token_lm", "clm_without_stop_gradient"])
def test_without_stop_gradient_l_lm_trains_copying(task, inputs):
    model = scrambled(make(mask_rate=0.5, token_task=task))
    assert all(sizes_of(gradients(model, inputs, ["lm"]), model.discriminator.head))


def test_a_transform_may_come_before_the_contrast(inputs):
    """Without it, the vectors of [CLS] are contrasted: `test_loss_equals_numpy`."""
    model = scrambled(make(crop_fraction=1.0, sequence_transform=True))
    outputs = model(inputs)
    hidden = model.encoder({**inputs, "token_ids": outputs["corrupted"].token_ids})
    head = model.discriminator.sequence_head
    kernel, bias = (np.array(v, "float64") for v in head.transform.variables)
    gamma, beta = (np.array(v, "float64") for v in head.norm.variables)
    x = np.array(hidden, "float64")[:, 0] @ kernel + bias
    x = x / 2 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))
    x = (x - x.mean(-1, keepdims=True)) / x.std(-1, keepdims=True)
    x = x * gamma + beta
    x /= np.linalg.norm(x, axis=-1, keepdims=True)
    found = np.array(outputs["views"].cosines)[:, 0, :, 0]  # of the first views
    np.testing.assert_allclose(found, x @ x.T, atol=1e-3)
    scl = gradients(model, inputs, ["scl"])
    assert all(np.abs(scl[id(v)]).max() > 0 for v in head.trainable_variables)


def test_contrast_has_gradients_into_both_views(inputs):
    """What stands in one view only is moved by that view."""
    model = scrambled(make(crop_fraction=1.0, replacements="random"))
    rows = np.arange(6)
    ids = inputs["token_ids"].copy()
    ids[rows, 1] = 10  # replaced by 11 below, so that the crop alone has it
    ids[(ids == 11) | ((ids == 10) & (np.arange(20) > 1))] = 12
    given = {
        **inputs,
        "token_ids": ids,
        "masked_positions": np.full((6, 1), 1, "int32"),
        "masked_weights": np.ones((6, 1), "float32"),
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(keras.random, "randint", lambda *_: ops.full((6, 1), 11, "int32"))
        found = gradients(model, given, ["scl"])
    table = found[id(model.encoder.embeddings.token.embeddings)]
    assert np.abs(table[10]).max() > 1e-4 and np.abs(table[11]).max() > 1e-4
    assert not table[13:][~np.isin(np.arange(13, 50), ids)].any()


# === Sampling ===


def test_samples_are_drawn_without_dropout_and_learned_with_it(inputs, monkeypatch):
    seen = []

    def sample(logits, seed):
        seen.append(np.array(logits))
        return ops.cast(ops.argmax(logits, axis=-1), "int32")

    monkeypatch.setattr(corrupters, "sample_tokens", sample)
    model = scrambled(make(generator={"dropout": 0.5}))
    outputs = model(inputs, training=True)
    masked = {**inputs, "token_ids": outputs["mlm"].token_ids}
    positions = outputs["corrupted"].masking.positions
    expected = model.generator(masked, positions, training=False)
    np.testing.assert_allclose(seen[0], np.array(expected), atol=1e-5)
    assert abs(seen[0] - np.array(outputs["mlm"].logits)).max() > 0.1
    monkeypatch.undo()
    found = gradients(model, inputs, ["mlm"])  # still learns
    assert any(sizes_of(found, model.generator.encoder.layers_[0]))


def test_special_tokens_may_be_masked_padding_not(model):
    inputs = make_inputs(batch=40)
    outputs = model(inputs)
    text = outputs["corrupted"]
    targets = np.array(text.target_ids)[np.array(text.masking.weights) > 0]
    assert {2, 3} < set(targets.tolist()) and 0 not in targets


def test_random_replacements_are_uniform():
    model = make(replacements="random", mask_rate=0.9)
    sampled = model(make_inputs(batch=300))["corrupted"].sampled_ids
    counts = np.bincount(np.array(sampled).ravel(), minlength=50)
    expected = counts.sum() / 50
    assert len(counts) == 50
    assert ((counts - expected) ** 2 / expected).sum() < 49 + 5 * np.sqrt(2 * 49)


# === Networks of the ablations ===


def test_networks_share_token_embeddings_all_embeddings_or_nothing():
    every = ("token", "position", "segment", "norm")
    for tied, shared in (("token", every[:1]), ("all", every), ("none", ())):
        model = make(tied_embeddings=tied)
        main, auxiliary = model.discriminator.encoder, model.generator.encoder
        for part in every:
            ours, theirs = (getattr(e.embeddings, part) for e in (auxiliary, main))
            assert (ours is theirs) == (part in shared)
        assert auxiliary.position_bias is not main.position_bias
        # One table for all layers of a network.
        tables = [v for v in model.variables if v.name == "table"]
        assert [tuple(v.shape) for v in tables] == [(8, 2), (8, 2)]


def test_without_relative_positions_and_with_electras_auxiliary(inputs):
    narrow = {"num_layers": 2, **SIZES["generator"]}
    model = make(encoder={"relative_positions": None}, generator=narrow)
    for network in (model.discriminator, model.generator):
        assert network.encoder.position_bias is None
    assert model.generator.encoder.hidden_size == 8
    assert model.generator.encoder.embedding_projection is not None
    again = CocoLM.from_config(model.get_config())
    assert again.count_params() == model.count_params()
    assert np.isfinite(float(model.compute_loss(y_pred=model(inputs))))
