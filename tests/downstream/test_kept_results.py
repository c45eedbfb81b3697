"""Results that are there, and of what they are."""

import dataclasses
import json
import shutil

import pytest

from keras_corrupt.downstream.finetuner import Finetuner
from tests.downstream.conftest import animals


@pytest.fixture
def kept(config, tmp_path):
    """A configuration, and the file of a result that is as if it had been run."""
    config = dataclasses.replace(config, seeds=1)
    finetuner = Finetuner(animals(), config)
    path = tmp_path / "out/animals/published/seed-0.json"
    path.parent.mkdir(parents=True)
    settings = finetuner.identity(finetuner.settings, 0)
    path.write_text(json.dumps({"settings": settings, "score": 50.0}))
    return config, path


def test_a_result_is_of_these_examples_alone(kept):
    config, path = kept
    before = path.read_bytes()
    assert "done:        1 of the runs" in Finetuner(animals(), config).banner()

    def changed(split, what):
        task = animals()
        getattr(task.splits[split], what)[3] = "cat dog"
        return task

    for split, what in [("train", "examples"), ("dev", "examples"), ("dev", "labels")]:
        with pytest.raises(ValueError, match=f"other examples than {split} has now"):
            Finetuner(changed(split, what), config)
    # Beyond the examples that are used, files may differ.
    with pytest.raises(ValueError, match="examples: was .*'train': 192"):
        Finetuner(animals(), dataclasses.replace(config, max_train_examples=3))
    assert path.read_bytes() == before


def test_a_result_is_of_this_preset_alone(kept, tmp_path):
    config, _ = kept
    copy = tmp_path / "preset"
    shutil.copytree(config.preset, copy)
    config = dataclasses.replace(config, preset=str(copy))
    assert Finetuner(animals(), config).kept
    for file in sorted(path for path in copy.rglob("*") if path.is_file()):
        content = file.read_bytes()
        file.write_bytes(content + b" ")
        if file.suffix == ".json":  # others no longer load
            with pytest.raises(ValueError, match="preset: was 'preset .*, asked"):
                Finetuner(animals(), config)
        file.write_bytes(content)


def test_results_may_be_moved(kept, tmp_path):
    config, path = kept
    result = json.loads(path.read_text()) | {"folder": str(path.parent)}
    path.write_text(json.dumps(result))
    (tmp_path / "out").rename(tmp_path / "moved")
    config = dataclasses.replace(config, output=str(tmp_path / "moved"))
    (best,) = Finetuner(animals(), config).run()
    assert best["folder"] == str(tmp_path / "moved/animals/published")


@pytest.mark.parametrize(
    "content",
    ["", "[]", "{}", '{"settings": 3, "score": 1}', '{"settings": {}, "score": 1}'],
)
def test_a_damaged_result_is_named(kept, content):
    config, path = kept
    path.write_text(content)
    with pytest.raises(ValueError, match="seed-0.json is damaged. Delete it"):
        Finetuner(animals(), config)
