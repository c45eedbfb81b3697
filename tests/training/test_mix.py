"""`--mix`: other corpora among a run's examples."""

import dataclasses
import json
import re
import shutil

import numpy as np
import pytest

from keras_corrupt.data.corpus import CorpusError
from keras_corrupt.data.info import load_dataset_info
from keras_corrupt.data.pipeline import make_dataset
from keras_corrupt.models import MaskedLM
from keras_corrupt.training import Checkpoints, main, pretrain
from keras_corrupt.training.callbacks import read_metrics, validate
from tests.training.conftest import command_line

pytestmark = pytest.mark.usefixtures("presets")


@pytest.fixture(scope="module")
def old(write_corpus, tmp_path_factory):
    return write_corpus(tmp_path_factory.mktemp("old") / "old.txt", 30, seed=9)


@pytest.fixture
def mixing(config, old):
    return dataclasses.replace(
        config,
        model="MaskedLM",
        mix=((old, 0.25),),
        validation_fraction=0.2,
        workers=1,
    )


class Killed(BaseException):
    """Ends a run as SIGKILL would."""


def test_a_run_with_a_mix_goes_on_exactly(mixing, tmp_path, monkeypatch, capsys):
    seen = []
    fit = MaskedLM.fit

    def spied(self, batches, *args, **kwargs):
        seen.append(np.array(next(iter(batches))["token_ids"]))
        return fit(self, batches, *args, **kwargs)

    monkeypatch.setattr(MaskedLM, "fit", spied)
    whole = dataclasses.replace(mixing, output=str(tmp_path / "whole"))
    model = pretrain(whole)
    printed = capsys.readouterr().out
    save = Checkpoints.save

    def save_and_die(self, model, step, phase):
        save(self, model, step, phase)
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(Checkpoints, "save", save_and_die)
        with pytest.raises(Killed):
            pretrain(mixing)
    other = pretrain(mixing)
    for a, b in zip(model.weights, other.weights, strict=True):
        np.testing.assert_array_equal(np.array(a), np.array(b))

    # The second process began at step 3 of that mixture.
    added = load_dataset_info(tmp_path / "run" / "mix_1")
    mixture = make_dataset(
        mixing.data,
        batch_size=16,
        max_length=32,
        seed=mixing.seed,
        start_step=3,
        mix=[(added.directory, 0.25)],
    )
    expected = np.array(next(iter(mixture))["token_ids"])
    np.testing.assert_array_equal(seen[-1], expected)

    # Both held-out parts are validated on, and told apart.
    row = read_metrics(tmp_path / "run" / "metrics.csv")[-1]
    batches = make_dataset(added.directory, "validation", batch_size=16, max_length=32)
    found = validate(other, batches.take(2))
    assert row["val_mix_1_mlm_loss"] == pytest.approx(found["val_mlm_loss"], rel=1e-5)
    assert row["val_mix_1_mlm_loss"] != row["val_mlm_loss"]
    table = printed.split(f"validation on {mixing.mix[0][0]}\n")[1]
    loss = f"{row['val_mix_1_mlm_loss']:.3f}"
    assert table.split("masked LM loss (nats)")[1].split()[0] == loss

    assert re.search(r"mix 1: +0.25 of the examples are from .*old.txt", printed)

    # It is recorded, and a run does not go on with another.
    settings = json.loads((tmp_path / "run" / "run.json").read_text())
    assert settings["mix"] == [list(mixing.mix[0])]
    name = f"text of --mix {mixing.mix[0][0]}"
    assert settings["examples"][name] == added.fingerprint
    with pytest.raises(ValueError, match="mix: was .*0.25.*asked .*0.3"):
        pretrain(dataclasses.replace(mixing, mix=((mixing.mix[0][0], 0.3),)))


def test_a_corpus_to_mix_in_is_read_before_the_other_one_is_prepared(mixing, tmp_path):
    bad = tmp_path / "bad.jsonl"
    bad.write_text('{"txt": "a"}\n')
    texts = {"data": None, "corpus": (mixing.mix[0][0],), "mix": ((str(bad), 0.25),)}
    with pytest.raises(CorpusError, match=f'^--mix {bad}: .*no field "text"'):
        pretrain(dataclasses.replace(mixing, **texts))
    assert not (tmp_path / "run").exists()


def test_examples_made_before_can_be_mixed_in(mixing, tmp_path, monkeypatch):
    prepared = tmp_path / "prepared"
    shutil.copytree(mixing.data, prepared)
    mixing = dataclasses.replace(mixing, mix=((str(prepared), 0.0),), steps=2)
    pretrain(mixing)
    row = read_metrics(tmp_path / "run" / "metrics.csv")[-1]
    # They are the corpus's own.
    assert row["val_mix_1_mlm_loss"] == row["val_mlm_loss"]
    assert not (tmp_path / "run" / "mix_1").exists()


@pytest.mark.parametrize(
    "flags, message",
    [
        (["absent.txt", "0.1"], "absent.txt': no such file"),
        (["{old}", "1.0"], "--mix has the fractions 1.0"),
        (["{old}", "0.6", "{old}", "0.6"], "--mix has the fractions 0.6, 0.6"),
    ],
)
def test_a_mix_that_cannot_be(config, old, monkeypatch, tmp_path, flags, message):
    flags = [flag.replace("{old}", old) for flag in flags]
    flags = [*command_line(config), "--mix", *flags]
    monkeypatch.setattr("sys.argv", ["recipe.py", *flags])
    with pytest.raises(SystemExit) as caught:
        main(config, "A recipe.")
    assert message in str(caught.value.code)
    assert not (tmp_path / "run").exists()
