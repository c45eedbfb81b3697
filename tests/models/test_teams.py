import keras
import numpy as np
import pytest

from keras_corrupt.models import Teams, load_preset
from keras_corrupt.models.baselines import Unigram
from keras_corrupt.training import AdamW
from tests.conftest import COMPILED, SIZES, make_inputs
from tests.models.conftest import arrays, gradients

NO_DROPOUT = {"dropout": 0.0, "attention_dropout": 0.0}
ENCODER = SIZES["discriminator"] | {"num_layers": 2}


def make(generator_layers=2, **kwargs):
    """Two layers, of which the generator's lower one is the discriminator's."""
    ids = {name: SIZES[name] for name in ("mask_id", "unmaskable_ids")}
    sizes = ENCODER | NO_DROPOUT
    return Teams(sizes, generator_layers, **{**ids, **kwargs})


@pytest.fixture(scope="module")
def model():
    keras.utils.set_random_seed(0)
    model = make(mask_rate=0.5)
    model.compile(optimizer=AdamW(1e-3))
    for v in model.trainable_variables:
        v.assign(v + keras.random.normal(v.shape, stddev=0.2, seed=1))
    return model


def log_softmax(x):
    return x - np.log(np.exp(x).sum(-1, keepdims=True))


def test_loss_equals_numpy(model):
    inputs = make_inputs(batch=48)  # few of a new model's selections are right
    model.reset_metrics()
    outputs = model(inputs)
    loss = float(model.compute_loss(inputs, y_pred=outputs))

    o = arrays(outputs, "float64")
    weights, real = o["corrupted"].masking.weights, inputs["padding_mask"]
    targets = o["corrupted"].target_ids.astype(int)[..., None]
    nll = -np.take_along_axis(log_softmax(o["mlm"].logits), targets, -1)[..., 0]
    mlm = (nll * weights).sum() / weights.sum()
    replaced = inputs["token_ids"] != o["corrupted"].token_ids
    d = 1 / (1 + np.exp(-o["rtd"].logits))
    rtd = (-np.where(replaced, np.log(d), np.log(1 - d)) * real).sum() / real.sum()
    nll = -log_softmax(o["mws"].logits)[..., 0]
    mws = (nll * weights).sum() / weights.sum()

    assert loss == pytest.approx(mlm + 5 * rtd + 2 * mws, rel=1e-5)
    metrics = {m.name: float(m.result()) for m in model.metrics}
    expected = {"mlm_loss": mlm, "rtd_loss": rtd, "mws_loss": mws}
    for name, value in expected.items():
        assert metrics[name] == pytest.approx(value, rel=1e-5)
    won = (o["mws"].logits[..., :1] > o["mws"].logits[..., 1:]).all(-1)
    accuracy = (won * weights).sum() / weights.sum()
    assert 0 < accuracy < 1
    assert metrics["mws_accuracy"] == pytest.approx(accuracy)
    metrics = {"replaced_fraction": 0.1, "rtd_precision": 0.5, "rtd_recall": 0.5}
    baselines = model.objectives.baselines(metrics, Unigram(7.0, 0.05))
    assert baselines["mws_accuracy"] == (pytest.approx(1 / 6), "chance")


def test_norms_of_heads_are_the_encoders():
    sizes = ENCODER | {"layer_norm_epsilon": 1e-5}
    model = Teams(sizes, 2, mask_id=4, unmaskable_ids=(0, 2, 3))
    layers = model._flatten_layers()
    norms = [x for x in layers if isinstance(x, keras.layers.LayerNormalization)]
    assert {norm.epsilon for norm in norms} == {1e-5}


def test_a_model_without_an_opinion_selects_nothing(model, inputs):
    outputs = dict(model(inputs))
    outputs["mws"] = outputs["mws"]._replace(logits=0 * outputs["mws"].logits)
    model.reset_metrics()
    model.compute_loss(inputs, y_pred=outputs)
    metrics = {m.name: float(m.result()) for m in model.metrics}
    assert metrics["mws_accuracy"] == 0
    assert metrics["mws_loss"] == pytest.approx(np.log(6))


def test_candidates_are_the_original_and_others(model):
    outputs = model(make_inputs(batch=40))
    candidates = np.array(outputs["mws"].candidate_ids)
    assert candidates.shape[2] == 6
    assert (candidates[..., 0] == np.array(outputs["corrupted"].target_ids)).all()
    ordered = np.sort(candidates, axis=-1)
    assert (ordered[..., 1:] > ordered[..., :-1]).all()  # no two are the same
    again = np.array(model(make_inputs(batch=40))["mws"].candidate_ids)
    assert (again != candidates).any()


def test_hardest_candidates_are_the_generators_likeliest(inputs):
    outputs = make(candidates="hardest", num_negatives=3)(inputs)
    logits, targets = np.array(outputs["mlm"].logits), outputs["mlm"].target_ids
    np.put_along_axis(logits, np.array(targets)[..., None], -np.inf, -1)
    expected = np.argsort(-logits, axis=-1)[..., :3]
    assert (np.array(outputs["mws"].candidate_ids)[..., 1:] == expected).all()


def test_the_replacement_need_not_be_a_candidate(model):
    outputs = model(make_inputs(batch=40))
    sampled = np.array(outputs["corrupted"].sampled_ids)[..., None]
    among = (np.array(outputs["mws"].candidate_ids) == sampled).any(-1)
    assert 0 < among.mean() < 0.9  # 1 if the candidates began with the replacement


@pytest.mark.parametrize("off, on", [("rtd", ("mws", 2)), ("mws", ("rtd", 5))])
def test_one_task_only(off, on, inputs):
    model = make(**{f"{off}_weight": 0})
    outputs = model(inputs)
    loss = float(model.compute_loss(y_pred=outputs))
    metrics = {m.name: float(m.result()) for m in model.term_metrics.values()}
    other, weight = on
    expected = metrics["mlm_loss"] + weight * metrics[f"{other}_loss"]
    assert loss == pytest.approx(expected, rel=1e-6)
    assert metrics[f"{off}_loss"] > 0


def distinct(*networks):
    variables = {id(v): v for n in networks for v in n.trainable_variables}
    return sum(int(np.prod(v.shape)) for v in variables.values())


@pytest.mark.parametrize("tied, shared", [("half", 2), ("none", 0), ("all", 4)])
def test_sharing_saves_exactly_the_shared_layers(tied, shared):
    sizes = ENCODER | {"num_layers": 5}
    ids = {name: SIZES[name] for name in ("mask_id", "unmaskable_ids")}
    model = Teams(sizes, 4, tied_layers=tied, **ids)
    generator, discriminator = model.generator.encoder, model.discriminator.encoder
    for i, layer in enumerate(generator.layers_):
        assert (layer is discriminator.layers_[i]) == (i < shared)
    layer = distinct(discriminator.layers_[0])
    embeddings = distinct(discriminator.embeddings, discriminator.embedding_projection)
    parts = distinct(model.generator) + distinct(model.discriminator)
    assert parts - model.count_params() == embeddings + shared * layer
    assert distinct(model) == model.count_params()


def test_relative_positions_are_shared_and_seen_by_both_tasks(inputs):
    relative = {"relative_positions": {"num_buckets": 8, "max_distance": 16}}
    sizes = ENCODER | relative | {"initializer_range": 0.3}
    ids = {name: SIZES[name] for name in ("mask_id", "unmaskable_ids")}
    model = Teams(sizes, 2, **ids)
    discriminator, encoder = model.discriminator, model.discriminator.encoder
    for other in (discriminator.rtd_encoder, model.generator.encoder):
        assert other.position_bias is encoder.position_bias
    positions = np.tile(np.array([[1, 5]], "int32"), (6, 1))
    candidates = np.random.default_rng(0).integers(5, 50, (6, 2, 4))
    rtd, mws = discriminator.both_tasks(inputs, positions, candidates)
    np.testing.assert_allclose(rtd, discriminator(inputs), atol=1e-5)
    expected = discriminator.selection_head(encoder(inputs), positions, candidates)
    np.testing.assert_allclose(mws, expected, atol=1e-5)
    encoder.position_bias.table.assign(np.arange(16).reshape(8, 2))
    moved = discriminator.both_tasks(inputs, positions, candidates)
    for a, b in zip(moved, (rtd, mws), strict=True):
        assert abs(np.array(a) - np.array(b)).max() > 1e-3


def test_shared_layers_learn_from_all_three_losses(model, inputs):
    found = {term: gradients(model, inputs, [term]) for term in model.loss_weights}
    generator, discriminator = model.generator, model.discriminator

    def moved(term, part):
        # a softmax does not see a constant added to every key's logit
        variables = [v for v in part.trainable_variables if "key/bias" not in v.path]
        sizes = [np.abs(found[term][id(v)]).max() for v in variables]
        assert all(sizes) or not any(sizes)
        return all(sizes)

    common, selection = discriminator.encoder.layers_
    detection = discriminator.rtd_encoder.layers_[1]
    assert generator.encoder.layers_[0] is common
    assert discriminator.rtd_encoder.layers_[0] is common
    for part, terms in (
        (common, ["mlm", "rtd", "mws"]),
        (discriminator.encoder.embedding_projection, ["mlm", "rtd", "mws"]),
        (generator.encoder.layers_[1], ["mlm"]),
        (generator.head.transform, ["mlm"]),
        (detection, ["rtd"]),
        (discriminator.head.classifier, ["rtd"]),
        (selection, ["mws"]),
        (discriminator.selection_head.transform, ["mws"]),
    ):
        assert [term for term in model.loss_weights if moved(term, part)] == terms


@pytest.mark.parametrize(
    "options",
    [{}, {"tied_layers": "all", "exported": "rtd"}, {"task_layers": 0}],
    ids=str,
)
def test_preset_round_trip(tmp_path, options, inputs):
    model = make(**options)
    for v in model.trainable_variables:
        v.assign(v + keras.random.normal(v.shape, stddev=0.1))
    model.save_to_preset(tmp_path / "preset")
    loaded = load_preset(tmp_path / "preset")
    assert loaded.get_config() == model.get_config()
    assert loaded.count_params() == model.count_params()
    static = static_masks()
    a, b = (m({**inputs, **static}) for m in (model, loaded))
    np.testing.assert_array_equal(a["mlm"].logits, b["mlm"].logits)
    candidates = a["mws"].candidate_ids
    for x, y in zip(
        *(
            m.discriminator.both_tasks(inputs, static["masked_positions"], candidates)
            for m in (model, loaded)
        ),
        strict=True,
    ):
        np.testing.assert_array_equal(x, y)
    np.testing.assert_array_equal(model.encoder(inputs), loaded.encoder(inputs))


def static_masks():
    return {
        "masked_positions": np.tile(np.array([[1, 2, 0]], "int32"), (6, 1)),
        "masked_weights": np.tile(np.array([[1, 1, 0]], "float32"), (6, 1)),
    }


def test_keras_file_round_trip(tmp_path, inputs):
    model = make()
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert loaded.generator.encoder.layers_[0] is loaded.encoder.layers_[0]
    np.testing.assert_array_equal(model.encoder(inputs), loaded.encoder(inputs))


def test_static_masks_are_used(model, inputs):
    outputs = model({**inputs, **static_masks()})
    masked = np.array(outputs["mlm"].token_ids)
    assert (masked[:, 1:3] == 4).all()
    rest = np.delete(masked, [1, 2], axis=1)
    assert (rest == np.delete(inputs["token_ids"], [1, 2], axis=1)).all()
    assert outputs["mws"].logits.shape == (6, 3, 6)


def test_score_is_the_replaced_token_detections(tokenizer):
    sizes = ENCODER | {"vocabulary_size": 60}
    model = Teams(sizes, 2, tokenizer=tokenizer)
    (score,) = model.score(["the cat sat"])
    packed = tokenizer.pack(["the cat sat"], 24)
    rtd, _ = model.discriminator.both_tasks(
        packed, np.array([[1]]), np.array([[[7, 8, 9]]])
    )
    expected = 1 / (1 + np.exp(-np.array(rtd)[0, :5]))
    np.testing.assert_allclose(score.probabilities, expected, atol=1e-6)


@pytest.mark.usefixtures("graphs")
def test_fit_learns_a_pattern():
    """All tokens of a sequence are the same one."""
    ids = np.random.default_rng(0).integers(5, 50, (512, 1)).repeat(12, axis=1)
    ids = ids.astype("int32")
    x = {"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": 0 * ids + 1}
    sizes = ENCODER | NO_DROPOUT | {"initializer_range": 0.1}
    model = Teams(sizes, 2, mask_id=4, unmaskable_ids=(0, 2, 3))
    model.compile(AdamW(8e-3, global_clipnorm=1.0), jit_compile=COMPILED)
    model.fit(x, batch_size=64, epochs=16, verbose=0)
    last = model.evaluate(x, batch_size=64, verbose=0, return_dict=True)
    assert last["mws_accuracy"] > 0.8  # chance: 1/6
    assert last["mws_loss"] < 0.5 * np.log(6)
    assert last["rtd_auc"] > 0.95


@pytest.mark.parametrize(
    "options, message",
    [
        ({"candidates": "all"}, "candidates.*sampled.*hardest"),
        ({"tied_layers": 3}, "tied_layers.*half.*none.*all"),
        ({"exported": "mlm"}, "exported.*mws.*rtd"),
        ({"num_negatives": 0}, "num_negatives.*from 1"),
        ({"num_negatives": 50}, "num_negatives.*50"),
        ({"num_negatives": "five"}, "num_negatives.*five"),
        ({"mws_weight": -1}, "mws_weight.*at least 0"),
        ({"rtd_weight": "none"}, "rtd_weight.*at least 0"),
        ({"task_layers": 3}, "task_layers.*0 to 2"),
        ({"generator_layers": 3, "tied_layers": "all"}, "tied_layers.*0 to 2"),
        ({"mask_rate": 1.0}, "mask_rate"),
    ],
    ids=str,
)
def test_constructor_errors(options, message):
    with pytest.raises(ValueError, match=message):
        make(**options)
