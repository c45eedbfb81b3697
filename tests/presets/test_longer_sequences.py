import numpy as np
import pytest

from keras_corrupt.models import Electra, MaskedLM, TwoTower
from keras_corrupt.presets.named_variables import named_weights
from tests.conftest import MODERN

LONGER = {"discriminator": {"max_length": 60}}


@pytest.fixture
def preset(sizes, tmp_path):
    Electra(**sizes).save_to_preset(tmp_path / "preset")
    return tmp_path / "preset"


def positions(model):
    return np.array(model.encoder.embeddings.position.embeddings)


def test_new_positions_are_copies_of_the_trained_ones(preset, inputs):
    short = Electra.from_preset(preset)
    long = Electra.from_preset(preset, **LONGER)
    table = positions(short)  # of 24 positions
    np.testing.assert_array_equal(
        positions(long), np.concatenate([table, table, table[:12]])
    )
    assert long.max_length == 60
    assert long.generator.encoder.max_length == 60
    # The networks still share the table, and read short texts as before.
    assert (
        long.generator.encoder.embeddings.position is long.encoder.embeddings.position
    )
    positions_masked = np.array([[1, 3]] * 6)
    for one, other in (
        (short.discriminator(inputs), long.discriminator(inputs)),
        (
            short.generator(inputs, positions_masked),
            long.generator(inputs, positions_masked),
        ),
    ):
        np.testing.assert_allclose(one, other, atol=1e-6)
    # A text that begins 24 positions later, behind padding, is the same to it.
    later = {n: np.pad(array, ((0, 0), (24, 0))) for n, array in inputs.items()}
    np.testing.assert_allclose(
        np.array(long.encoder(later))[:, 24:], long.encoder(inputs), atol=1e-5
    )


def test_a_longer_model_is_saved_and_loaded(preset, tmp_path):
    long = Electra.from_preset(preset, **LONGER)
    long.save_to_preset(tmp_path / "long")
    again = Electra.from_preset(tmp_path / "long")
    np.testing.assert_array_equal(positions(again), positions(long))


@pytest.mark.parametrize("cls", [MaskedLM, TwoTower])
def test_of_other_systems(cls, sizes, tmp_path):
    ids = {name: sizes[name] for name in ("mask_id", "unmaskable_ids")}
    short = cls(sizes["discriminator"], **ids)
    short.save_to_preset(tmp_path / "preset")
    main = next(iter(cls.network_arguments))
    long = cls.from_preset(tmp_path / "preset", **{main: {"max_length": 48}})
    (network,), (longer,) = short.networks.values(), long.networks.values()
    weights = named_weights(longer)
    for name, variable in named_weights(network).items():
        times = 2 if name.endswith("position/embeddings") else 1
        expected = np.concatenate([np.array(variable)] * times)
        np.testing.assert_array_equal(weights.pop(name), expected, err_msg=name)
    assert not weights


def test_fewer_positions_are_refused(preset):
    with pytest.raises(ValueError, match="has the shape"):
        Electra.from_preset(preset, discriminator={"max_length": 12})


def test_with_rotary_positions_there_is_nothing_to_copy(sizes, inputs, tmp_path):
    sizes["discriminator"] |= MODERN
    short = Electra(**sizes)
    short.save_to_preset(tmp_path / "preset")
    long = Electra.from_preset(tmp_path / "preset", **LONGER)
    assert long.encoder.input_limits.max_length == 60
    np.testing.assert_array_equal(
        np.array(long.encoder(inputs)), np.array(short.encoder(inputs))
    )
