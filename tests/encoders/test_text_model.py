import keras
import numpy as np
import pytest

from keras_corrupt.encoders import TransformerEncoder
from keras_corrupt.encoders.text_model import text_inputs
from tests.conftest import COMPILED, SIZES, make_inputs

pytestmark = pytest.mark.usefixtures("eager")

IDS = np.array([[2, 7, 9, 3, 0], [2, 8, 3, 0, 0]])


@pytest.mark.parametrize(
    "given",
    [
        IDS,
        IDS.astype("float32"),
        {"token_ids": IDS.astype("int64")},
        {"token_ids": IDS, "padding_mask": IDS != 0},
        {"token_ids": IDS, "segment_ids": 0 * IDS, "padding_mask": (IDS > 0) * 1.0},
    ],
)
def test_what_people_have_becomes_the_contract(given):
    inputs = text_inputs(given)
    expected = {"token_ids": IDS, "segment_ids": 0 * IDS, "padding_mask": IDS != 0}
    assert inputs.keys() == expected.keys()
    for name, array in expected.items():
        assert keras.backend.standardize_dtype(inputs[name].dtype) == "int32"
        np.testing.assert_array_equal(np.array(inputs[name]), array)


def test_padding_is_the_id_that_is_said_and_further_arrays_stay():
    starts = np.ones((2, 5), "int64")
    inputs = text_inputs({"token_ids": IDS, "starts": starts}, padding_id=3)
    np.testing.assert_array_equal(np.array(inputs["padding_mask"]), IDS != 3)
    np.testing.assert_array_equal(np.array(inputs["starts"]), starts)


@pytest.mark.parametrize(
    "given, got",
    [
        (IDS[0], "int64 .5,."),
        ({"input_ids": IDS}, "a dict of input_ids .int64 .2, 5.."),
        (["a text"], "a list"),
        (np.array(["a text"]), "str"),
        (IDS.astype("float16"), "float16 .2, 5."),
        (
            {"token_ids": IDS, "segment_ids": IDS[:, :3]},
            "a dict .*segment_ids .int64 .2, 3",
        ),
    ],
)
def test_anything_else_is_one_error_that_names_the_format(given, got):
    with pytest.raises(ValueError, match=f"`.batch, length.`.*Got {got}"):
        text_inputs(given)


@pytest.mark.parametrize("length, policy", [(None, "mixed_bfloat16"), (20, "float32")])
def test_an_encoder_is_a_layer_of_a_functional_model(tmp_path, length, policy):
    """Of floats, too, of which bfloat16 would round ids above 256."""
    ids = keras.Input((length,))
    sizes = {**SIZES["discriminator"], "vocabulary_size": 600}
    encoder = TransformerEncoder(**sizes, dtype=policy, name="ours")
    hidden = encoder(ids)
    assert tuple(hidden.shape) == (None, length, 16)
    logits = keras.layers.Dense(1, dtype="float32")(hidden[:, 0])
    model = keras.Model(ids, logits)
    inputs = make_inputs()["token_ids"].astype("int64")
    inputs[:, 1] = 257 + 2 * np.arange(6)
    targets = np.arange(6) % 2
    model.compile(keras.optimizers.Adam(0.01), "mse", jit_compile=COMPILED)
    before = np.array(model(inputs))
    model.fit(inputs, targets, verbose=0)
    after = np.array(model(inputs))
    assert np.abs(after - before).max() > 1e-3
    np.testing.assert_array_equal(
        after, np.array(model.layers[-1](encoder({"token_ids": inputs})[:, 0]))
    )
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    assert loaded.get_layer("ours").dtype_policy.name == policy
    np.testing.assert_array_equal(np.array(loaded(inputs)), after)


def test_a_summary_has_the_shapes(capsys):
    TransformerEncoder(**SIZES["discriminator"]).summary(line_length=100)
    lines = capsys.readouterr().out
    assert "?" not in lines
    assert "(None, None, 12)" in lines and "(None, None, 16)" in lines
