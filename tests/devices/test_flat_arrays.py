"""Arrays that lie one behind the other."""

import keras
import numpy as np
import pytest

from keras_corrupt.devices.flat_arrays import FlatArrays

LAYOUT = FlatArrays([(3, 2), (4,), (), (5, 1, 2)], [True, False, True, True])


def test_unpacking_gives_what_was_packed():
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=shape).astype("float32") for shape in LAYOUT.shapes]
    packed = [np.array(array) for array in LAYOUT.pack(arrays)]
    one, _, three, four = arrays
    np.testing.assert_array_equal(
        packed[0], np.concatenate([one.ravel(), three.ravel(), four.ravel()])
    )
    np.testing.assert_array_equal(packed[1], arrays[1])
    for array, found in zip(arrays, LAYOUT.unpack(packed), strict=True):
        np.testing.assert_array_equal(np.array(found), array)


@pytest.mark.skipif(keras.backend.backend() != "jax", reason="a program of JAX")
def test_a_compiler_leaves_out_packing_what_was_unpacked():
    import jax

    def doubled(flat_arrays):
        arrays = LAYOUT.unpack(flat_arrays)
        return [2 * array for array in LAYOUT.pack(arrays)]

    sizes = (17,), (4,)
    shapes = [jax.ShapeDtypeStruct(size, "float32") for size in sizes]
    text = jax.jit(doubled).lower(shapes).compile().as_text()
    assert "multiply" in text or "add" in text
    assert " concatenate(" not in text and " slice(" not in text
