import gzip
import io
import lzma

import numpy as np
import pytest

from keras_corrupt.cross_view.tasks.images import ImageTask, read_images
from keras_corrupt.cross_view.tasks.shapes import SHAPES, draw_shapes


def records(count, num_classes=10):
    """Random images and labels, and CIFAR-10's bytes of them."""
    rng = np.random.default_rng(count)
    images = rng.integers(0, 256, (count, 32, 32, 3), "uint8")
    labels = np.arange(count, dtype="uint8") % num_classes
    content = b"".join(
        bytes([label]) + b"".join(image[..., c].tobytes() for c in range(3))
        for image, label in zip(images, labels, strict=True)
    )
    return images, labels, content


def saved(array):
    """NumPy's bytes of one array, which are no archive."""
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


@pytest.mark.parametrize(
    "name, pack",
    [("a.bin", bytes), ("a.bin.gz", gzip.compress), ("a.bin.xz", lzma.compress)],
)
def test_records_of_cifar(tmp_path, name, pack):
    images, labels, content = records(5)
    (tmp_path / name).write_bytes(pack(content))
    found = read_images(tmp_path / name, num_classes=10)
    np.testing.assert_array_equal(found[0], images)
    np.testing.assert_array_equal(found[1], labels)
    assert read_images(str(tmp_path / name))[1] is None  # they are not read


def test_several_files_are_read_in_order(tmp_path):
    for i in (1, 2):
        (tmp_path / f"data_{i}.bin").write_bytes(records(i)[2])
    np.savez(tmp_path / "more.npz", images=records(3)[0], labels=records(3)[1])
    paths = [str(tmp_path / "data_*.bin"), str(tmp_path / "more.npz")]
    images, labels = read_images(paths, num_classes=10)
    expected = [records(i)[0] for i in (1, 2, 3)]
    np.testing.assert_array_equal(images, np.concatenate(expected))
    assert labels.tolist() == [0, 0, 1, 0, 1, 2]


def test_grey_images_have_one_colour(tmp_path):
    np.savez(tmp_path / "grey.npz", images=np.zeros((2, 14, 15), "uint8"))
    assert read_images(tmp_path / "grey.npz")[0].shape == (2, 14, 15, 1)


def archive(directory, name="a.npz", **arrays):
    arrays = {"images": records(4)[0], "labels": np.array([0, 1, 1, 0])} | arrays
    np.savez(directory / name, **{k: v for k, v in arrays.items() if v is not None})
    return str(directory / name)


@pytest.mark.parametrize(
    "arrays, message",
    [
        ({"images": None}, r"it has \['labels'\], and no `images`"),
        ({"images": np.zeros((4, 32, 32, 3))}, "must be uint8 .* got float64"),
        ({"images": np.zeros((4, 9), "uint8")}, r"got uint8 \[4, 9\]"),
        ({"images": np.zeros((0, 9, 9), "uint8"), "labels": None}, "has no image"),
        ({"labels": np.array([0, 1])}, "must be 4 whole numbers"),
        ({"labels": np.array([0, 1, 2, 0.5])}, "got float64"),
        ({"labels": np.array([0, 1, 2, 7])}, "image 3 has the label 7; .* 0 to 2"),
        ({"labels": np.array([0, -1, 2, 0])}, "image 1 has the label -1"),
        ({"labels": None}, "has no `labels`"),
        ({"images": np.array([{}])}, "allow_pickle"),
    ],
)
def test_archives_that_are_wrong(tmp_path, arrays, message):
    with pytest.raises(ValueError, match=message) as error:
        read_images(archive(tmp_path, **arrays), num_classes=3)
    assert "\n" not in str(error.value) and "a.npz" in str(error.value)


@pytest.mark.parametrize(
    "name, content, message",
    [
        ("a.bin", bytes(3072), "3,072 bytes are no whole number of records"),
        ("a.bin", b"", "has no image"),
        ("a.bin.gz", gzip.compress(records(2)[2])[:-20], "is damaged"),
        ("a.bin.gz", b"no archive", "is damaged"),
        ("a.npz", saved(np.zeros(3)), "it is no archive of arrays"),
        ("a.bin.xz", lzma.compress(records(2)[2])[:-20], "is damaged"),
        ("a.npz", b"PK no archive", "a.npz"),
        ("a.png", b"", "must end in .npz, .bin, .bin.gz"),
    ],
)
def test_files_that_are_wrong(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=message) as error:
        read_images(tmp_path / name)
    assert "\n" not in str(error.value)


def test_no_file(tmp_path):
    with pytest.raises(FileNotFoundError, match="none.bin is not a file"):
        read_images(tmp_path / "none.bin")
    with pytest.raises(ValueError, match="`paths` is empty"):
        read_images([])


class TestTask:
    @pytest.fixture
    def files(self, tmp_path):
        labels = np.array([0, 0, 0, 1, 0, 2])
        train = archive(tmp_path, "train.npz", images=records(6)[0], labels=labels)
        return {"train": train, "dev": archive(tmp_path, "dev.npz")}

    def test_labels_are_numbers(self, files):
        task = ImageTask("cifar", files)
        assert task.model_arguments["labels"] == list("0123456789")
        assert task.model_arguments["image_shape"] == [32, 32, 3]
        assert task.splits["dev"].labels == list("0110")
        assert task.guesses(task.splits["dev"]) == ["0"] * 4
        found = task.metrics(list("0011"), task.splits["dev"])
        assert found == {"accuracy": 50.0}
        assert not any(task.unseen.values())

    def test_few_labels_are_of_all_classes(self, files):
        train = ImageTask("cifar", files, max_train=4).splits["train"]
        assert train.labels == list("0012")
        np.testing.assert_array_equal(train.examples, records(6)[0][[0, 1, 3, 5]])
        assert len(ImageTask("cifar", files, max_train=100).splits["train"]) == 6

    def test_images_to_classify_need_no_labels(self, files, tmp_path):
        files["test"] = archive(tmp_path, "test.npz", labels=None)
        task = ImageTask("cifar", files)
        assert task.splits["test"].labels is None
        path = task.write_predictions(list("0120"), "test", tmp_path)
        assert open(path).read() == "0\n1\n2\n0\n"

    def test_a_fingerprint_is_of_every_pixel(self, files):
        split = ImageTask("cifar", files).splits["dev"]
        before = split.fingerprint()
        split.examples = split.examples.copy()
        split.examples[2, 16, 16, 1] ^= 1
        assert split.fingerprint() != before

    def test_what_cannot_be_learned(self, files, tmp_path):
        small = archive(tmp_path, "small.npz", images=np.zeros((4, 28, 28), "uint8"))
        with pytest.raises(ValueError, match="dev has images of 28 x 28 x 1, where"):
            ImageTask("cifar", {**files, "dev": small})
        with pytest.raises(ValueError, match="needs a 'train' and a 'dev'"):
            ImageTask("cifar", {"train": files["train"]})
        with pytest.raises(ValueError, match="`num_classes` must be 2 or more"):
            ImageTask("cifar", files, num_classes=1)
        with pytest.raises(ValueError, match=r"of the class \['0'\] alone"):
            ImageTask("cifar", files, max_train=1)


def test_shapes_differ_and_their_centres_tell_them():
    images, labels = draw_shapes(400, seed=1)
    assert np.bincount(labels).tolist() == [100] * len(SHAPES)
    again, _ = draw_shapes(400, seed=1)
    np.testing.assert_array_equal(images, again)
    assert (images != draw_shapes(400, seed=2)[0]).mean() > 0.5
