import numpy as np
import pytest

from keras_corrupt.cross_view.images.batches import ImageBatches
from keras_corrupt.cross_view.images.preprocessing import Preprocessing
from keras_corrupt.cross_view.tasks.shapes import draw_shapes

IMAGES, LABELS = draw_shapes(10, 12)


def batches_of(seed=0, labels=LABELS, batch_size=4, images=IMAGES, **moved):
    def prepare(images):
        return images.astype("float32")

    return ImageBatches(images, prepare, labels, batch_size, seed, **moved)


def test_batches_of_training_are_whole_and_of_all_images():
    batches = batches_of()
    rows = np.concatenate([batches.rows(i) for i in range(5)])  # two passes
    for images in (rows[:10], rows[10:]):
        assert sorted(images) == list(range(10))
    assert rows[:10].tolist() != rows[10:].tolist()
    for number in (3, 2):  # which depend on their number alone
        np.testing.assert_array_equal(batches_of().rows(number), batches.rows(number))
    inputs, labels = batches.batch(2)
    np.testing.assert_array_equal(inputs["images"], IMAGES[batches.rows(2)])
    np.testing.assert_array_equal(labels, LABELS[batches.rows(2)])
    assert inputs["padding_mask"].all() and inputs["labelled"].all()


def test_a_batch_can_be_larger_than_what_there_is():
    rows = batches_of(batch_size=25).rows(0)
    assert len(rows) == 25 and np.bincount(rows).min() >= 2


def test_the_last_batch_to_evaluate_is_filled_up():
    batches = batches_of(seed=None)
    assert len(batches) == 3
    inputs, labels = batches.batch(2)
    assert inputs["padding_mask"].tolist() == [1, 1, 0, 0]
    assert labels.tolist() == [*LABELS[8:], -1, -1]
    assert not batches_of(labels=None).batch(0)[0]["labelled"].any()


def test_images_are_moved_and_mirrored():
    image = np.zeros((1, 12, 12, 1), "uint8")
    image[0, 5, 3] = 1
    found = set()
    for number in range(200):
        batches = batches_of(images=image, labels=None, translate=2, flip=True)
        inputs, _ = batches.batch(number)
        for moved in inputs["images"]:
            (place,) = np.argwhere(moved[..., 0])
            found.add(tuple(place.tolist()))
    mirrored = 11 - 3
    expected = {
        (5 + down, column + right)
        for down in range(-2, 3)
        for right in range(-2, 3)
        for column in (3, mirrored)
    }
    assert found == expected
    again = batches_of(images=image, labels=None, translate=2, flip=True)
    np.testing.assert_array_equal(again.batch(199)[0]["images"], inputs["images"])


def test_what_is_new_at_an_edge_is_zero():
    image = np.ones((1, 12, 12, 3), "uint8")
    images = batches_of(images=image, labels=None, translate=2).batch(0)[0]["images"]
    assert {int(x.sum()) % 3 for x in images} == {0}
    assert any(image.sum() < 12 * 12 * 3 for image in images)


def fitted(images, method):
    layer = Preprocessing(images.shape[1:], method)
    layer.build()
    layer.fit(images)
    return layer


def test_colours_have_mean_0_and_variance_1():
    found = fitted(IMAGES, "colours").function()(IMAGES)
    assert found.dtype == np.float32 and found.shape == IMAGES.shape
    np.testing.assert_allclose(found.mean((0, 1, 2)), 0.0, atol=1e-4)
    np.testing.assert_allclose(found.std((0, 1, 2)), 1.0, atol=1e-4)


def test_zca_makes_pixels_uncorrelated_and_changes_them_little():
    rng = np.random.default_rng(0)
    mixing = rng.normal(size=(12, 12)) / 4 + np.eye(12)
    images = (rng.normal(size=(4000, 12)) @ mixing * 12 + 128).clip(0, 255)
    images = images.astype("uint8").reshape(-1, 2, 2, 3)
    layer = fitted(images, "zca")
    found = layer.function()(images).reshape(-1, 12)
    covariance = np.cov(found, rowvar=False)
    np.testing.assert_allclose(covariance, np.eye(12), atol=0.1)
    matrix = np.array(layer.matrix)
    np.testing.assert_allclose(matrix, matrix.T, atol=1e-3)  # which makes it ZCA
    assert (np.linalg.eigvalsh(matrix) > 0).all()


def test_zca_of_few_images_exaggerates_nothing():
    images, _ = draw_shapes(60, 12)
    prepare = fitted(images[:20], "zca").function()
    assert 0.5 < prepare(images[20:]).std() < 2.0


def test_images_that_are_all_alike():
    with pytest.raises(ValueError, match="`images` are all alike"):
        fitted(np.full((4, 12, 12, 3), 7, "uint8"), "zca")
