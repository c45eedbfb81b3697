"""Ids and lengths that a model cannot read, and files of weights that Keras cannot."""

import h5py
import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_corrupt.devices.batches import Batches
from keras_corrupt.encoders import TransformerEncoder
from keras_corrupt.models import MaskedLM
from tests.conftest import COMPILED, SIZES, make_inputs

ENCODER = SIZES["discriminator"]


@pytest.fixture(scope="module")
def model():
    """A model of 50 tokens, 2 segments and 24 positions."""
    model = MaskedLM(ENCODER, mask_id=4, unmaskable_ids=(0, 2, 3))
    model.compile("sgd", jit_compile=COMPILED, run_eagerly=not COMPILED)
    return model


def wrong(name, value):
    inputs = make_inputs()
    inputs[name][4, 3] = value
    return inputs


@pytest.mark.parametrize(
    "given, message",
    [
        (wrong("token_ids", 50), r"`token_ids` .* from 0 to 49\. .* Got 50\."),
        (wrong("token_ids", -1), r"`token_ids` .* from 0 to 49\. .* Got -1\."),
        (wrong("segment_ids", 2), r"`segment_ids` .* from 0 to 1\. .* Got 2\."),
        (make_inputs(length=25), r"length of max_length=24 at most\. .* Got 25\."),
    ],
)
def test_arrays_that_the_model_cannot_read_are_refused(model, given, message):
    for use in (model.fit, model.evaluate, model.predict):
        with pytest.raises(ValueError, match=message):
            use(given, verbose=0)
    with pytest.raises(ValueError, match=message):
        model.fit(make_inputs(), validation_data=(given,), verbose=0)


class OfKeras(keras.utils.PyDataset):
    def __init__(self, parts):
        super().__init__()
        self.parts, self.ended = parts, 0

    def __len__(self):
        return len(self.parts)

    def __getitem__(self, number):
        return (self.parts[number],)

    def on_epoch_end(self):
        self.ended += 1


def test_a_dataset_of_keras_is_told_of_the_ends_of_epochs(model):
    dataset = OfKeras([make_inputs()])
    model.fit(dataset, epochs=2, verbose=0)
    assert dataset.ended >= 2  # Keras begins once before it trains


@pytest.mark.parametrize(
    "kind", ["dataset", "pairs", "generator", "batches", "of Keras"]
)
def test_batches_are_checked_as_they_are_read(model, kind):
    """The second batch has the wrong id; the model is as fit for use as before."""
    given = wrong("token_ids", 50)
    batches = tf.data.Dataset.from_tensor_slices(given).batch(3)
    error, got = tf.errors.InvalidArgumentError, r".*Got from.*50"
    if kind == "pairs":
        batches = batches.map(lambda inputs: (inputs, None))
    if kind == "generator":
        batches = ({name: a[i : i + 3] for name, a in given.items()} for i in (0, 3))
        error, got = ValueError, r".* Got 50\."
    if kind in ("batches", "of Keras"):
        parts = [{name: a[i : i + 3] for name, a in given.items()} for i in (0, 3)]
        batches = Batches(parts.__getitem__, 2) if kind == "batches" else OfKeras(parts)
        error, got = ValueError, r".* Got 50\."
    with pytest.raises(error, match=rf"`token_ids` of the model are from 0 to 49{got}"):
        model.fit(batches, verbose=0)
    assert np.isfinite(model.predict(make_inputs(), verbose=0)["mlm"].logits).all()


def test_batches_that_it_can_read_pass_unchanged(model):
    given = make_inputs(length=24)
    batches = tf.data.Dataset.from_tensor_slices((given, [0.5] * 6)).batch(4)
    (inputs, weights), _ = model.input_limits.checked(batches)
    for name, array in given.items():
        np.testing.assert_array_equal(inputs[name], array[:4])
    np.testing.assert_array_equal(weights, [0.5] * 4)


def test_files_of_weights_that_do_not_say_where_they_belong_are_refused(tmp_path):
    encoder = TransformerEncoder(**ENCODER)
    encoder.save_weights(tmp_path / "new.weights.h5")
    (tmp_path / "new.weights.h5").rename(tmp_path / "new.h5")
    with pytest.raises(ValueError, match=r"Rename the file to end in `\.weights\.h5`"):
        encoder.load_weights(tmp_path / "new.h5")
    with pytest.raises(ValueError, match=r"could not load the model from .*old\.h5"):
        encoder.save(tmp_path / "old.h5")
    for name in ("old.h5", "old.weights.h5"):
        keras.Model.save(encoder, tmp_path / "old.h5")
        (tmp_path / "old.h5").rename(tmp_path / name)
        with h5py.File(tmp_path / name) as file:
            assert "layer_names" in file["model_weights"].attrs
        with pytest.raises(ValueError, match=f"{name} holds .* in Keras 2's format"):
            encoder.load_weights(tmp_path / name)
