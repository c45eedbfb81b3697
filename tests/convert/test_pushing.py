"""Models go to hubs: Hugging Face's as a server on this machine, Kaggle's library."""

import sys
from pathlib import Path

import kagglehub
import numpy as np
import pytest
from huggingface_hub import constants

from keras_corrupt import models
from keras_corrupt.convert import __main__
from keras_corrupt.convert.pushing import Destination
from keras_corrupt.presets.named_variables import named_weights
from tests.convert.conftest import assert_same_weights
from tests.convert.hub_server import Hub

OURS = {
    *("README.md", "config.json", "tokenizer.json", "tokenizer_config.json"),
    *("tokenizer_settings.json", "vocab.txt"),
    *("discriminator/model.safetensors", "generator/model.safetensors"),
}


@pytest.fixture
def hub(monkeypatch, tmp_path):
    hub = Hub()
    monkeypatch.setattr(constants, "ENDPOINT", hub.url)
    template = hub.url + "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_TELEMETRY", True)
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "token"))
    monkeypatch.setenv("HF_TOKEN", hub.token)
    yield hub
    hub.close()


@pytest.fixture
def run(monkeypatch, capsys):
    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["convert", *map(str, arguments)])
        __main__.main()
        return capsys.readouterr().out

    return run


@pytest.fixture
def trained(electra, tmp_path):
    """The directory of a run that has kept two presets; each has its own weights."""
    for i, name in enumerate(("presets/step-000000010", "presets/step-000000020", "")):
        (bias, *_) = electra.discriminator.head.trainable_variables
        bias.assign(np.full(bias.shape, i))
        (tmp_path / "run" / "presets").mkdir(parents=True, exist_ok=True)
        electra.save_to_preset(tmp_path / "run" / (name or "preset"))
    (tmp_path / "run" / "metrics.csv").write_text("step,val_rtd_auc\n30,0.75\n")
    return tmp_path / "run"


def first_bias(model):
    return float(np.array(model.discriminator.head.trainable_variables[0]).flat[0])


def test_a_run_goes_out_and_comes_back(run, hub, trained, electra):
    printed = run(trained / "preset", "--push", "hf://owner/name")
    revisions = hub.revisions["owner/name"]
    assert [*revisions] == ["main", "step-10", "step-20"]
    for name, files in revisions.items():
        assert {*files} == OURS
        assert f"hf://owner/name{'@' + name if name != 'main' else ''}: 8 " in printed
    assert not hub.private
    size = len(revisions["main"]["vocab.txt"])
    assert f"  {size:>13,}  vocab.txt" in printed
    card = revisions["main"]["README.md"].decode()
    assert "# name" in card and "| val_rtd_auc | 0.75 |" in card
    assert "load_preset" in card
    for address, bias in (("", 2), ("@step-10", 0), ("@step-20", 1)):
        model = models.load_preset(f"hf://owner/name{address}")
        assert first_bias(model) == bias
        assert_same_weights(model.generator, electra.generator)
    assert model.tokenizer.fingerprint == electra.tokenizer.fingerprint
    # What is there stays there, and a second push is one more commit.
    revisions["main"]["LICENSE"] = b"theirs"
    (trained / "preset" / "README.md").write_text("# Mine\n")
    run(trained / "preset", "--push", "hf://owner/name")
    assert {*revisions["main"]} == {*OURS, "LICENSE"}
    assert revisions["main"]["README.md"] == b"# Mine\n"


def test_a_dry_run_asks_nobody(run, hub, trained, monkeypatch):
    monkeypatch.delenv("HF_TOKEN")
    before = {path: path.stat().st_mtime_ns for path in trained.rglob("*")}
    printed = run(trained / "preset", "--push", "hf://owner/name", "--dry_run")
    assert not hub.asked and not hub.revisions
    assert printed.endswith("Nothing was pushed.\n")
    addresses = [line for line in printed.splitlines() if line.startswith("hf:")]
    places = [address.partition(": ")[0] for address in addresses]
    assert places == [f"hf://owner/name{r}" for r in ("", "@step-10", "@step-20")]
    for name in OURS:
        assert printed.count(f"  {name}\n") == 3
    size = (trained / "preset/discriminator/model.safetensors").stat().st_size
    assert f"{size:,}  discriminator/model.safetensors" in printed
    assert before == {path: path.stat().st_mtime_ns for path in trained.rglob("*")}


def test_another_format_goes_to_a_revision_of_a_private_repository(
    run, hub, trained, tmp_path
):
    flags = "--to", "hugging_face", "--push", "hf://owner/name@v1", "--private"
    run(trained / "preset", tmp_path / "theirs", *flags, "--no_check")
    assert hub.private == {"owner/name"}
    revisions = hub.revisions["owner/name"]
    assert [*revisions] == ["main", "v1"] and not revisions["main"]
    written = {
        path.relative_to(tmp_path / "theirs").as_posix(): path.read_bytes()
        for path in (tmp_path / "theirs").rglob("*")
        if path.is_file()
    }
    assert revisions["v1"] == written
    # Without a target the presets that the run has kept are converted, too.
    flags = "--to", "hugging_face", "--push", "hf://owner/name"
    run(trained / "preset", *flags, "--no_check")
    for revision in ("main", "step-10", "step-20"):
        assert {*revisions[revision]} == {*written}
    assert revisions["main"]["model.safetensors"] == written["model.safetensors"]
    assert revisions["step-10"]["model.safetensors"] != written["model.safetensors"]


def test_a_trained_preset_goes_out_by_its_name(run, hub):
    run("tiny_en", "--push", "hf://owner/tiny")
    files = hub.revisions["owner/tiny"]["main"]
    assert {*files} == OURS
    assert files["README.md"].startswith(b"# tiny_en")  # the preset's own card
    back = models.load_preset("hf://owner/tiny")
    expected = models.load_preset("tiny_en")
    for name, variable in named_weights(expected.discriminator).items():
        theirs = named_weights(back.discriminator)[name]
        np.testing.assert_array_equal(variable, theirs)


def test_errors_come_before_anything_is_made(run, hub, trained, monkeypatch, tmp_path):
    source, target = trained / "preset", tmp_path / "target"

    def fails(match, *flags):
        with pytest.raises(SystemExit, match=match) as error:
            run(source, *flags)
        assert "\n" not in str(error.value)
        assert not target.exists()

    for wrong in ("s3://owner/name", "owner/name", "hf://name", "kaggle://a/b/c"):
        fails(f"`push` must be hf://owner/name.*got '{wrong}'", "--push", wrong)
    fails("give a `target`")
    fails("--dry_run are for --push", target, "--dry_run")
    hub.token = "another"
    fails("hf://owner/name cannot be pushed to.*401", "--push", "hf://owner/name")
    monkeypatch.delenv("HF_TOKEN")
    fails("needs a token.*hf auth login", target, "--push", "hf://owner/name")
    monkeypatch.setattr("kagglehub.config.get_kaggle_credentials", lambda: None)
    fails("needs a token.*kagglehub", target, "--push", "kaggle://a/b/keras/c")
    monkeypatch.setitem(sys.modules, "kagglehub.config", None)
    fails("pip install kagglehub", target, "--push", "kaggle://a/b/keras/c")
    assert not hub.revisions


def test_kaggle_gets_a_variation_for_each_preset(run, trained, monkeypatch):
    pushed = {}

    def model_upload(handle, directory):
        pushed[handle] = {path.name for path in Path(directory).iterdir()}

    monkeypatch.setattr(kagglehub, "model_upload", model_upload)
    monkeypatch.setattr("kagglehub.config.get_kaggle_credentials", lambda: "token")
    run(trained / "preset", "--push", "kaggle://me/model/keras/small")
    handle = "me/model/keras/small"
    assert [*pushed] == [handle, f"{handle}-step-10", f"{handle}-step-20"]
    assert all("config.json" in names for names in pushed.values())

    def refuses(handle, directory):
        raise RuntimeError("Quota.\nMore.")

    monkeypatch.setattr(kagglehub, "model_upload", refuses)
    with pytest.raises(SystemExit, match="small cannot be pushed to: Quota."):
        run(trained / "preset", "--push", "kaggle://me/model/keras/small")


def test_addresses():
    assert Destination("hf://a/b").address() == "hf://a/b"
    assert Destination("hf://a/b@v1").address() == "hf://a/b@v1"
    assert Destination("hf://a/b@v1").address("step-1") == "hf://a/b@step-1"
