"""ELECTRA with uniform and unigram generators (Clark's thesis, 5.3.2)."""

import keras
import numpy as np
import pytest

from keras_corrupt.corruption.unigram_generator import UnigramGenerator
from keras_corrupt.encoders import TransformerEncoder
from keras_corrupt.models import UnigramElectra, load_preset
from keras_corrupt.models.weightless import weightless
from keras_corrupt.training import AdamW, PretrainConfig
from keras_corrupt.training.starting import build
from tests.models.conftest import gradients

#: Of 50 tokens the first ten do not occur.
COUNTS = np.where(np.arange(50) < 10, 0, np.arange(50) ** 2)


@pytest.fixture
def own_sizes(sizes):
    del sizes["generator"]
    return sizes


@pytest.mark.parametrize("noise", ["unigram", "uniform"])
@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16"])
def test_samples_are_as_frequent_as_in_the_text(own_sizes, noise, dtype):
    model = UnigramElectra(**own_sizes, noise=noise, dtype=dtype)
    model.use_unigrams(COUNTS)
    draws = 40_000
    positions = np.zeros((4, draws // 4), "int32")
    found = model.generator.sample(positions, model.seed_generator)
    frequencies = np.bincount(np.array(found).ravel(), minlength=50) / draws
    expected = COUNTS / COUNTS.sum() if noise == "unigram" else np.full(50, 1 / 50)
    # Five standard deviations of a frequency; what does not occur has none.
    margin = 5 * np.sqrt(expected * (1 - expected) / draws)
    assert (np.abs(frequencies - expected) <= margin).all()


def test_tokens_of_a_large_vocabulary_are_as_frequent():
    # More than are drawn at once, some of which never occur.
    counts = np.arange(700.0) % 7
    counts[256:512] = 0
    generator = UnigramGenerator(700)
    generator.counts.assign(counts)
    positions = np.zeros((100, 1000), "int32")
    found = generator.sample(positions, keras.random.SeedGenerator(3))
    found = np.bincount(np.array(found).ravel(), minlength=700)
    expected = 100_000 * counts / counts.sum()
    assert not found[counts == 0].any()
    occurs = expected > 0
    chi2 = ((found - expected)[occurs] ** 2 / expected[occurs]).sum()
    assert chi2 < occurs.sum() + 5 * np.sqrt(2 * occurs.sum())


def test_loss_equals_numpy(own_sizes, inputs):
    model = UnigramElectra(**own_sizes, mask_rate=0.3)
    model.use_unigrams(COUNTS)
    model.compile(optimizer=AdamW(1e-3))
    outputs = model(inputs)
    loss = float(model.compute_loss(inputs, y_pred=outputs))
    real, corrupted = inputs["padding_mask"], np.array(outputs["corrupted"].token_ids)
    replaced = corrupted != inputs["token_ids"]
    assert (corrupted[replaced] >= 10).all()
    chosen = np.ceil(0.3 * real.sum(1) - 1e-6).sum()
    assert 0.7 * chosen < replaced.sum() <= chosen
    d = 1 / (1 + np.exp(-np.array(outputs["rtd"].logits, "float64")))
    losses = -np.where(replaced, np.log(d), np.log(1 - d))
    assert loss == pytest.approx(50 * (losses * real).sum() / real.sum(), rel=1e-5)
    found = gradients(model, inputs, ["rtd"])
    assert len(found) == len(model.discriminator.trainable_variables)


def test_presets_keep_the_counts(own_sizes, tmp_path):
    own_sizes["discriminator"] |= {"vocabulary_size": 53}  # more than the text has
    model = UnigramElectra(**own_sizes)
    model.use_unigrams(COUNTS)
    model.save_to_preset(tmp_path / "preset")
    loaded = load_preset(tmp_path / "preset")
    np.testing.assert_array_equal(loaded.generator.counts, [*COUNTS, 0, 0, 0])


def test_a_run_tells_the_counts(prepared, tmp_path):
    config = PretrainConfig("UnigramElectra", "tiny", str(tmp_path))
    model = build(config, prepared)
    counts = prepared.unigrams()
    assert len(counts) == model.vocabulary_size and counts.sum() > 1000
    np.testing.assert_array_equal(model.generator.counts, counts)


@pytest.mark.usefixtures("graphs")
def test_training_needs_counts(own_sizes, inputs):
    model = UnigramElectra(**own_sizes)
    model.compile(optimizer=AdamW(1e-3))
    with pytest.raises(ValueError, match=r"call `use_unigrams\(counts\)`.*uniform"):
        model.fit(inputs, verbose=0)
    model.use_unigrams(COUNTS)
    model.fit(inputs, verbose=0)  # in a graph, whose batch size is not known
    with pytest.raises(ValueError, match="`noise` must be one of .*got 'zipf'"):
        UnigramElectra(**own_sizes, noise="zipf")


def test_costs_are_the_discriminators():
    with weightless():
        model = UnigramElectra.from_preset("base")
        encoder = TransformerEncoder(**model.encoder.architecture)
    expected = encoder.flops(512, training=True)
    expected += 512 * (2 * 768 * 768 + 768 + 9 * 768 + 2 * 768 + 1 + 4)
    assert model.forward_flops(512) == expected
    assert model.activation_bytes(8, 512) == encoder.activation_bytes(8, 512, 4)
