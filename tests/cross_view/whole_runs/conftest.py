"""Short runs of all kinds, continued, and what they leave."""

import dataclasses
import runpy
import shutil
from pathlib import Path

import numpy as np
import pytest

from keras_corrupt.cross_view import (
    CrossViewConfig,
    ImageConfig,
)
from keras_corrupt.cross_view.presets import (
    IMAGE_PRESETS,
    PRESETS,
    TRANSLATION_PRESETS,
)
from keras_corrupt.cross_view.tasks.dependencies import DependencyTask
from keras_corrupt.cross_view.tasks.shapes import draw_shapes
from keras_corrupt.tasks.conll import TaggingTask
from keras_corrupt.training.callbacks import read_metrics
from tests.conftest import without_graphs
from tests.cross_view.conftest import (
    LABELS,
    SIZES,
    TRANSLATOR,
    sentences_of,
    translations_of,
    trees_of,
)


@pytest.fixture(autouse=True, scope="module")
def small():
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(PRESETS, "tiny", SIZES)
        patch.setitem(TRANSLATION_PRESETS, "tiny", TRANSLATOR)
        patch.setitem(IMAGE_PRESETS, "tiny", {"channels": [4] * 9})
        yield


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    directory, paths = tmp_path_factory.mktemp("files"), {}
    for seed, split in enumerate(("train", "dev")):
        sentences, tags = sentences_of(20, seed=seed)
        rows = [
            "".join(f"{w} {LABELS[t]}\n" for w, t in zip(words, known, strict=True))
            for words, known in zip(sentences, tags, strict=True)
        ]
        paths[split] = directory / f"{split}.txt"
        paths[split].write_text("\n".join(rows))
        paths[f"{split}_trees"] = directory / f"{split}.conllu"
        paths[f"{split}_trees"].write_text(conllu(sentences))
        paths[f"{split}_source"] = directory / f"{split}.en"
        paths[f"{split}_source"].write_text("\n".join(map(" ".join, sentences)))
        paths[f"{split}_target"] = directory / f"{split}.de"
        text = "\n".join(translations_of(sentences))
        paths[f"{split}_target"].write_text(text, encoding="utf-8")
    for seed, (split, count) in enumerate([("train", 12), ("dev", 10), ("more", 30)]):
        images, labels = draw_shapes(count, 16, seed)
        paths[f"{split}_images"] = directory / f"{split}.npz"
        np.savez(paths[f"{split}_images"], images=images, labels=labels)
    paths["text"] = directory / "text.txt"
    sentences = [words for words in sentences_of(60, 15, 7)[0] if len(words) > 3]
    paths["text"].write_text("\n".join(map(" ".join, sentences)))
    paths["vectors"] = directory / "glove.txt"
    size = SIZES["encoder"]["num_filters"] * 3
    paths["vectors"].write_text(f"cat{' 7' * size}\nzebra{' 8' * size}\n")
    return {name: str(path) for name, path in paths.items()}


def conllu(sentences):
    text = ""
    for words, tree in zip(sentences, trees_of(sentences), strict=True):
        for i, (word, edge) in enumerate(zip(words, tree, strict=True), 1):
            text += "\t".join(map(str, (i, word, *"____", *edge, *"__"))) + "\n"
        text += "\n"
    return text


def config_of(files, output, config_class=CrossViewConfig, **changes):
    of_images = config_class is ImageConfig
    config = config_class(
        output=str(output),
        preset="tiny",
        unlabelled=(files["more_images" if of_images else "text"],),
        in_words=not of_images,
        steps=6,
        batch_size=4,
        interval=2,
        ema=0.5,
    )
    return dataclasses.replace(config, **changes)


def continued_from_its_middle(run, train, task, config, capsys):
    """What is left if a run is killed after 4 updates or 5 ends as the run did."""
    directory, whole = run
    copy = Path(config.output)
    results = shutil.ignore_patterns("preset", "predictions", "results.json", "*.png")
    shutil.copytree(directory, copy, ignore=results)
    (copy / "checkpoints" / "step-000000006.npz").unlink()
    again = train(task, config)
    assert "Continuing at step 4." in capsys.readouterr().out
    for a, b in zip(whole.get_weights(), again.get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)
    found = [read_metrics(d / "metrics.csv") for d in (directory, copy)]
    for a, b in zip(*found, strict=True):
        assert a.pop("seconds") + b.pop("seconds") > 0
        for row in (a, b):
            # An image has no tokens.
            assert (row.pop("tokens_per_second") > 0) == (row["tokens"] > 0)
        assert a == b


@pytest.fixture(scope="module")
def task(files):
    return TaggingTask("pos", {k: files[k] for k in ("train", "dev")}, scheme="plain")


@pytest.fixture(scope="module")
def parsing_task(files):
    pytest.importorskip("ufal.chu_liu_edmonds")
    splits = {split: files[f"{split}_trees"] for split in ("train", "dev")}
    return DependencyTask("parsing", splits)


def run_without_files(recipe, monkeypatch, directory, capsys):
    """Runs a recipe in miniature on what it makes itself; returns what it prints."""
    flags = ["--smoke", "--unlabelled", "python-docs", "--output", str(directory)]
    monkeypatch.setattr("sys.argv", [str(recipe), *flags])
    with without_graphs(eagerly=False):  # The sentences are many.
        runpy.run_path(str(recipe), run_name="__main__")
    assert (directory / "preset" / "config.json").exists()
    return capsys.readouterr().out
