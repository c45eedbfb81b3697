import keras
import numpy as np
import pytest

from keras_corrupt.models import (
    CocoLM,
    Electra,
    ElectraTT,
    Electric,
    MaskedLM,
    Teams,
    TwoTower,
)
from keras_corrupt.presets.named_variables import named_variables


def make(system, sizes):
    discriminator, ids = sizes["discriminator"], {"mask_id": 4, "unmaskable_ids": (0,)}
    if system is Teams:
        return Teams(discriminator, 2, **ids)
    if system is CocoLM:
        discriminator["embedding_size"] = discriminator["hidden_size"]
        discriminator["relative_positions"] = {"num_buckets": 8, "max_distance": 16}
        return CocoLM(discriminator, {"num_layers": 1}, **ids)
    if system in (MaskedLM, TwoTower):
        return system(discriminator, **ids)
    return system(**sizes)


@pytest.mark.parametrize(
    "system", [CocoLM, Electra, ElectraTT, Electric, MaskedLM, Teams, TwoTower]
)
def test_every_variable_has_a_name_and_the_same_in_another_model(system, sizes):
    names = named_variables(make(system, sizes))
    model = make(system, sizes)  # Keras's automatic names count on
    again = named_variables(model)
    assert list(names) == list(again)
    assert {id(v) for v in again.values()} == {id(v) for v in model.variables}
    shapes = {name: tuple(v.shape) for name, v in names.items()}
    assert shapes == {name: tuple(v.shape) for name, v in again.items()}


def test_a_shared_variable_has_the_name_of_its_owner(sizes):
    model = Electra(**sizes)
    names = {id(v): name for name, v in named_variables(model).items()}
    table = model.generator.encoder.embeddings.token.embeddings
    assert names[id(table)] == "discriminator/encoder/embeddings/token/embeddings"
    # By itself the generator has all that it uses.
    assert "encoder/embeddings/token/embeddings" in named_variables(model.generator)


def test_a_variable_without_an_attribute_is_an_error():
    class Hidden(keras.layers.Layer):
        def __init__(self):
            super().__init__()
            self.add_weight(shape=(2,), name="lost")

    with pytest.raises(ValueError, match="no attribute leads to: .*lost"):
        named_variables(Hidden())


def test_values_go_back_by_name(sizes):
    one, other = Electra(**sizes), Electra(**sizes)
    names = named_variables(other)
    for name, variable in named_variables(one).items():
        names[name].assign(variable)
    for a, b in zip(one.weights, other.weights, strict=True):
        np.testing.assert_array_equal(np.array(a), np.array(b))
