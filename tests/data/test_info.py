"""`dataset.json`: damaged ones, and older ones."""

import json

import pytest

from keras_corrupt.data.info import DatasetError, load_dataset_info


@pytest.mark.parametrize(
    "change",
    [
        lambda content: content.pop("train"),
        lambda content: content.pop("skipped_rows"),
        lambda content: content["train"]["shards"][0].pop("sha256"),
        lambda content: content.update(format="other"),
        lambda content: content.update(format_version=99),
        lambda content: content.update(surprise=1),
        lambda content: content["train"]["shards"][0].update(file="../../etc/passwd"),
        lambda content: content.update(train=[]),
    ],
)
def test_damaged_info(prepared, tmp_path, change):
    parsed = json.loads((prepared.directory / "dataset.json").read_text())
    change(parsed)
    (tmp_path / "dataset.json").write_text(json.dumps(parsed))
    with pytest.raises(DatasetError, match="not a dataset.json that this version"):
        load_dataset_info(tmp_path)


def test_examples_from_before_some_settings(prepared, tmp_path):
    parsed = json.loads((prepared.directory / "dataset.json").read_text())
    for name in ("text_column", "on_bad_rows"):
        del parsed["settings"][name]
    (tmp_path / "dataset.json").write_text(json.dumps(parsed))
    assert load_dataset_info(tmp_path).settings == prepared.settings
