from pathlib import Path

import keras
import numpy as np
import pytest
from keras import ops

from keras_corrupt.encoders import TransformerEncoder
from keras_corrupt.encoders.position_bias import RelativePositionBias, bucket_of
from tests.conftest import SIZES, gradients_of

CONFIG = SIZES["discriminator"]
RELATIVE = {"num_buckets": 8, "max_distance": 16}
#: By tests/fixtures/record_t5_buckets.py.
T5_BUCKETS = Path(__file__).parents[1] / "fixtures" / "t5_buckets.npz"
SIZES_OF_PAPERS = [(32, 128), (64, 128), (128, 256)]  # COCO-LM, table 6


def test_buckets_by_hand():
    """8 buckets: 0, 1 and two that double from 2 on, on either side."""
    distances = np.array([0, -1, -2, -3, -5, -6, -16, -99, 1, 2, 5, 6, 16, 99])
    buckets = np.array(bucket_of(distances, 8, 16))
    # 2 * 8 ** (1 / 2) is 5.66: where the second of these begins.
    assert buckets.tolist() == [0, 1, 2, 2, 2, 3, 3, 3, 5, 6, 6, 7, 7, 7]


@pytest.mark.parametrize("num_buckets, max_distance", SIZES_OF_PAPERS)
def test_buckets_are_those_of_transformers(num_buckets, max_distance):
    recorded = np.load(T5_BUCKETS)
    distances = recorded["distances"].astype("int32")
    expected = recorded[f"{num_buckets}_{max_distance}"]
    assert set(expected) == set(range(num_buckets)) - {num_buckets // 2}
    found = np.array(bucket_of(distances, num_buckets, max_distance))
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("num_buckets, max_distance", SIZES_OF_PAPERS)
def test_buckets_that_round_up_are_those_of_the_released_code(
    num_buckets, max_distance
):
    half, exact = num_buckets // 2, num_buckets // 4
    distances = np.arange(-600, 601)
    found = np.array(bucket_of(distances, num_buckets, max_distance, rounds_up=True))
    size = np.maximum(abs(distances), 1)
    grown = np.log(size / exact) / np.log((max_distance - 1) / exact)
    grown = np.ceil(np.round(grown * (half - 1 - exact), 9)) + exact
    expected = np.where(size < exact, abs(distances), np.minimum(grown, half - 1))
    np.testing.assert_array_equal(found, expected + half * (distances > 0))
    if num_buckets == 32:  # where T5's buckets have 8 to 11 as one
        assert found[600 - np.array([8, 9, 10, 85, 86])].tolist() == [8, 9, 9, 14, 15]


def test_bias_is_the_tables_number_of_key_less_query():
    layer = RelativePositionBias(**RELATIVE, num_heads=3)
    layer.build()
    table, bias = np.array(layer.table), np.array(layer(length=7))
    assert bias.shape == (1, 3, 7, 7)
    for head, query, key in np.ndindex(3, 7, 7):
        bucket = int(np.array(bucket_of(np.array([key - query]), 8, 16))[0])
        assert bias[0, head, query, key] == table[bucket, head]


def test_gradient_counts_the_pairs_of_each_bucket_in_bfloat16():
    layer = RelativePositionBias(**RELATIVE, num_heads=3, dtype="mixed_bfloat16")
    layer.build()
    gradient = gradients_of(lambda: ops.sum(layer(length=100)), layer)[id(layer.table)]
    distances = np.arange(100)[None, :] - np.arange(100)[:, None]
    counts = np.bincount(np.array(bucket_of(distances, 8, 16)).ravel(), minlength=8)
    np.testing.assert_array_equal(gradient, np.tile(counts[:, None], 3))


def attention_by_numpy(layer, x, bias):
    def heads(dense):
        y = x @ np.array(dense.kernel) + np.array(dense.bias)
        return y.reshape(*y.shape[:2], layer.num_heads, -1).swapaxes(1, 2)

    query, key, value = heads(layer.query), heads(layer.key), heads(layer.value)
    logits = query @ key.swapaxes(2, 3) / np.sqrt(query.shape[-1]) + bias
    weights = np.exp(logits - logits.max(-1, keepdims=True))
    context = weights / weights.sum(-1, keepdims=True) @ value
    dense = layer.output_projection
    context = context.swapaxes(1, 2).reshape(x.shape)
    return context @ np.array(dense.kernel) + np.array(dense.bias)


@pytest.mark.parametrize("dropout", [0.0, 1e-7])
def test_every_layer_adds_the_bias_to_the_scaled_logits(dropout):
    encoder = TransformerEncoder(
        **CONFIG,
        relative_positions=RELATIVE,
        initializer_range=0.5,
        attention_dropout=dropout,
    )
    x = np.random.default_rng(0).normal(size=(2, 9, 16)).astype("float32")
    inputs = {"token_ids": np.zeros((2, 9), "int32"), "padding_mask": np.ones((2, 9))}
    mask, bias = encoder.attention_mask(inputs), encoder.attention_bias(inputs)
    for layer in encoder.layers_:
        found = layer.attention(x, mask, bias, training=True)
        expected = attention_by_numpy(layer.attention, x, np.array(bias))
        without = layer.attention(x, mask, training=True)
        np.testing.assert_allclose(np.array(found), expected, atol=1e-4)
        assert abs(expected - np.array(without)).max() > 0.1


def test_the_encoder_uses_it(inputs):
    config = CONFIG | {"initializer_range": 0.3}
    encoder = TransformerEncoder(**config, relative_positions=RELATIVE)
    encoder.position_bias.table.assign(np.random.default_rng(0).normal(size=(8, 2)))
    before = np.array(encoder(inputs))
    gradient = gradients_of(lambda: ops.sum(encoder(inputs)[..., 0]), encoder)
    assert (abs(gradient[id(encoder.position_bias.table)][:4]) > 1e-4).all()
    encoder.position_bias.table.assign(np.zeros((8, 2)))
    assert abs(np.array(encoder(inputs)) - before).max() > 0.01
    same = TransformerEncoder(**CONFIG)
    variables = [v for v in encoder.variables if v.name != "table"]
    for ours, theirs in zip(same.variables, variables, strict=True):
        ours.assign(theirs)
    np.testing.assert_allclose(same(inputs), encoder(inputs), atol=1e-6)


def test_saves_loads_and_is_tied(tmp_path, inputs):
    encoder = TransformerEncoder(
        **CONFIG, relative_positions=RELATIVE, attention="right_to_left"
    )
    encoder.save(tmp_path / "encoder.keras")
    loaded = keras.saving.load_model(tmp_path / "encoder.keras")
    assert loaded.get_config() == encoder.get_config()
    assert loaded.relative_positions == RELATIVE
    np.testing.assert_array_equal(np.array(encoder(inputs)), np.array(loaded(inputs)))
    tied = TransformerEncoder(
        **encoder.get_config(), tied_to=encoder, tied_parts=("position_bias",)
    )
    assert tied.position_bias is encoder.position_bias
    untied = TransformerEncoder(**encoder.get_config(), tied_to=encoder)
    assert untied.position_bias is not encoder.position_bias


def test_a_layer_of_its_config_is_the_same():
    layer = RelativePositionBias(8, 20, 3, initializer_range=0.5, rounds_up=True)
    copy = RelativePositionBias.from_config(layer.get_config())
    for each in (layer, copy):
        each.build()
    assert 0.2 < np.array(copy.table).std() < 0.8
    copy.table.assign(layer.table)
    np.testing.assert_array_equal(copy(length=60), layer(length=60))


def test_errors_name_the_argument():
    with pytest.raises(ValueError, match="`num_buckets`.*multiple of 4.*got 30"):
        RelativePositionBias(30, 128, 2)
    with pytest.raises(ValueError, match="`max_distance`.*8.*got 8"):
        RelativePositionBias(32, 8, 2)
    encoder = TransformerEncoder(**CONFIG, relative_positions=RELATIVE)
    with pytest.raises(ValueError, match="`tied_parts`.*position_bias"):
        TransformerEncoder(**CONFIG, tied_to=encoder, tied_parts=("position_bias",))
