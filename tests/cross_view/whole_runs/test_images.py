"""Runs on images."""

import json
import runpy
from pathlib import Path

import keras
import numpy as np
import pytest

from keras_corrupt.cross_view import (
    CrossViewImageClassifier,
    ImageConfig,
    train,
)
from keras_corrupt.cross_view.tasks.images import ImageTask
from keras_corrupt.cross_view.tasks.shapes import draw_shapes
from keras_corrupt.training.callbacks import read_metrics
from tests.cross_view.whole_runs.conftest import (
    config_of,
    continued_from_its_middle,
)

IMAGE_RECIPE = Path(__file__).parents[3] / "recipes" / "cvt_images.py"


@pytest.fixture(scope="module")
def image_task(files):
    splits = {split: files[f"{split}_images"] for split in ("train", "dev")}
    return ImageTask("shapes", splits, num_classes=4)


@pytest.fixture(scope="module")
def finished_images(files, image_task, tmp_path_factory):
    """An image classifier's run: its directory and its model."""
    run = tmp_path_factory.mktemp("images") / "run"
    return run, train(image_task, image_config(files, run))


def image_config(files, run):
    return config_of(files, run, ImageConfig, labelled_first=3)


def test_a_killed_image_classifier_ends_the_same(
    files, image_task, finished_images, tmp_path, capsys
):
    config = image_config(files, tmp_path / "killed")
    continued_from_its_middle(finished_images, train, image_task, config, capsys)


def test_what_a_run_on_images_leaves(image_task, finished_images):
    run, model = finished_images
    rows = read_metrics(run / "metrics.csv")
    assert rows[0]["cross_view_loss"] == 0  # labels have the first three updates
    assert rows[0]["loss"] > 2 * rows[0]["supervised_loss"]  # of auxiliary modules, too
    assert rows[-1]["cross_view_loss"] > 0 and rows[-1]["supervised_loss"] > 0
    # The last validation is of the average and its statistics, which the run ends with.
    results = json.loads((run / "results.json").read_text())
    assert results["dev"]["accuracy"] == pytest.approx(100 * rows[-1]["val_accuracy"])
    loaded = CrossViewImageClassifier.from_preset(run / "preset")
    dev = image_task.splits["dev"].examples
    predictions = loaded.predictions(dev)
    assert predictions == model.predictions(dev)
    inputs, _ = model.batches(dev, batch_size=10).batch(0)
    np.testing.assert_array_equal(model(inputs)["logits"], loaded(inputs)["logits"])
    lines = (run / "predictions" / "dev.txt").read_text().splitlines()
    assert lines == predictions


def test_an_image_classifier_learns_as_miyatos(finished_images):
    _, model = finished_images
    assert model.vat_norm == 8.0 and model.perturbation == "adversarial"
    optimizer = model.optimizer
    assert isinstance(optimizer, keras.optimizers.Adam)
    assert optimizer.global_clipnorm is None
    rates = [float(optimizer._learning_rate(step)) for step in (0, 4, 5, 6)]
    np.testing.assert_allclose(rates, [1e-3, 1e-3, 5e-4, 0], atol=1e-9)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"preset": "large"}, "Unknown preset 'large': .* tiny, base"),
        ({"views": ("future",)}, "`views` must be different ones of regions"),
        ({"views": ("word_dropout",)}, "`views` of regions, vat"),
        ({"perturbation": "some"}, "`perturbation` must be one of none"),
        ({"translate": 16}, "`translate` must be less than the images' size, 16 x"),
        ({"channels": (4, 4)}, "`channels` must be 9 positive"),
        ({"vat_norm": 0.0}, "--vat_norm 0.0 must be"),
        ({"unlabelled": ("nowhere.npz",)}, "nowhere.npz is not a file"),
        ({"unlabelled": ("shapes",)}, "images of 20 x 20 x 3, where others are of 16"),
        ({"views": ()}, "--views is empty"),
    ],
)
def test_bad_settings_of_images(files, image_task, tmp_path, changes, message):
    config = config_of(files, tmp_path / "run", ImageConfig, **changes)
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        train(image_task, config)
    assert not (tmp_path / "run").exists()


def test_images_are_no_sentences(files, task, tmp_path):
    config = config_of(files, tmp_path / "run", ImageConfig)
    with pytest.raises(ValueError, match="kind image_classification; got 'tagging'"):
        train(task, config)


def test_the_image_recipe_runs_without_files(monkeypatch, tmp_path, capsys):
    flags = ["--smoke", "--unlabelled", "shapes", "--output", str(tmp_path / "out")]
    flags += ["--views", "regions", "vat", "--translate", "2", "--flip"]
    monkeypatch.setattr("sys.argv", [str(IMAGE_RECIPE), *flags])
    runpy.run_path(str(IMAGE_RECIPE), run_name="__main__")
    text = capsys.readouterr().out
    assert "unlabelled: 100 images, views regions, vat (3 x 3 modules" in text
    assert "zca fitted to" in text
    assert "dev: accuracy" in text
    assert (tmp_path / "out" / "preset" / "config.json").exists()


def test_the_image_recipe_reads_files(monkeypatch, files, tmp_path, capsys):
    bare = tmp_path / "bare.npz"
    np.savez(bare, images=draw_shapes(3, 16)[0])
    flags = ["--train", files["train_images"], "--dev", files["dev_images"]]
    flags += ["--test", str(bare), "--num_classes", "5", "--max_train", "8", "--smoke"]
    flags += ["--preprocessing", "colours", "--output", str(tmp_path / "out")]
    monkeypatch.setattr("sys.argv", [str(IMAGE_RECIPE), *flags])
    runpy.run_path(str(IMAGE_RECIPE), run_name="__main__")
    text = capsys.readouterr().out
    assert "labelled:   8 images, none of class 4: " in text and "learns alone" in text
    assert "fitted to" not in text
    lines = (tmp_path / "out" / "predictions" / "test.txt").read_text().split()
    assert len(lines) == 3 and set(lines) <= set("01234")


def test_a_truncated_file_is_refused_in_a_line(monkeypatch, tmp_path):
    path = tmp_path / "train.bin"
    path.write_bytes(bytes(3000))
    flags = ["--train", str(path), "--dev", str(path), "--output", str(tmp_path / "o")]
    monkeypatch.setattr("sys.argv", [str(IMAGE_RECIPE), *flags])
    with pytest.raises(SystemExit, match="^Error: .*3,000 bytes are no whole.*$"):
        runpy.run_path(str(IMAGE_RECIPE), run_name="__main__")
