"""What a run refuses: an error of one line before long work, and nothing written."""

import dataclasses
import errno
import json
import os
import re
import shutil
from pathlib import Path

import pytest

from keras_corrupt.data.prepare import prepare_dataset
from keras_corrupt.training import (
    PretrainConfig,
    loop,
    main,
    pretrain,
    pretraining,
    run_directory,
)
from keras_corrupt.training.config import BOUNDS
from keras_corrupt.training.run_directory import locked
from tests.training.conftest import command_line, contents

pytestmark = pytest.mark.usefixtures("presets")


def run(monkeypatch, config, *flags):
    """Runs a recipe's command; returns its exit status or message."""
    flags = [*command_line(config), *map(str, flags)]
    monkeypatch.setattr("sys.argv", ["recipe.py", *flags])
    with pytest.raises(SystemExit) as caught:
        main(config, "A recipe.")
    return caught.value.code


# === Settings ===


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"preset": "huge"}, r"--preset huge: unknown; known are tiny, small, base"),
        ({"steps": 8e0}, "--steps 8.0 must be a whole number, such as 10"),
        ({"data": None}, "what to train on: --corpus .* or --data"),
        ({"data": "absent"}, "absent: holds no dataset.json.*Prepare it with"),
        (
            {"objective": {"mask_rate": 0.0}},
            "mask_rate` must lie.*got 0.0",
        ),
        (
            {"objective": {"mask_rate": 1.0}},
            "mask_rate` must lie.*got 1.0",
        ),
        (
            {"objective": {"mask_rate": "x"}},
            "mask_rate` must lie.*got 'x'",
        ),
        (
            {"objective": {"mask_rat": 0.15}},
            "'mask_rat'. The nearest are mask_rate",
        ),
        (
            {"objective": {"generator": {"layers": 1}}},
            "no option 'generator.layers'.*generator.num_layers",
        ),
        ({"objective": {"generator": 3}}, "'generator'.*is a network.*not 3"),
        ({"model": "Elektra"}, "'Elektra' is none of the known.*Electric, MaskedLM"),
        ({"model": "absent:Own"}, "'absent:Own' cannot be imported: No module"),
        ({"model": "math:sqrt"}, "'math:sqrt' is none of the known"),
        ({"objective": {"tied_embeddings": "x"}}, "token_and_position.*got 'x'"),
        ({"sequence_length": 41}, "--sequence_length 41 is longer than the 40 pos"),
        ({"sequence_length": 16}, "up to 32 tokens, more than max_length=16.*again"),
        ({"accumulate": 3}, "--batch_size 16 is not divisible by --accumulate 3"),
        ({"warmup_steps": 6}, "--warmup_steps 6 must be less than --steps 6"),
        ({"keep_presets": 4}, "--keep_presets 4 is no multiple of --interval 3"),
        ({"init_from": "absent"}, "'absent'.*nor a directory"),
        (
            {"model": "CocoLM", "fill_rows": True},
            "--fill_rows puts several texts into a row, and CocoLM compares rows",
        ),
    ],
)
def test_bad_settings(config, tmp_path, changes, message):
    with pytest.raises(ValueError, match=message):
        pretrain(dataclasses.replace(config, **changes))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"batch_size": 0}, "--batch_size 0 must be at least 1"),
        ({"sequence_length": -1}, "--sequence_length -1 must be at least 5"),
        ({"learning_rate": 0.0}, "--learning_rate 0.0 must be above 0"),
        ({"learning_rate": float("nan")}, "--learning_rate nan must be above 0"),
        ({"learning_rate": float("inf")}, "--learning_rate inf must be above 0"),
        ({"weight_decay": -1.0}, "--weight_decay -1.0 must be at least 0"),
        ({"beta_2": 1.0}, "--beta_2 1.0 must be at least 0 and less than 1"),
        ({"ema": 1.0}, r"--ema 1\.0 must be at least 0 and less than 1"),
        (
            {"validation_fraction": 0},
            "--validation_fraction 0 must be above 0 and less",
        ),
        ({"seed": -1}, "--seed -1 must be at least 0 and less than 4,294,967,296"),
        ({"steps": 0}, "--steps 0 must be at least 1"),
        ({"workers": 0}, "--workers 0 must be at least 1"),
    ],
)
def test_numbers_out_of_bounds(config, changes, message):
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(config, **changes).check()


def test_no_number_may_be_nan(config):
    for name in BOUNDS:
        with pytest.raises(ValueError, match=f"--{name} nan must be "):
            dataclasses.replace(config, **{name: float("nan")}).check()
    numbers = {
        field.name
        for field in dataclasses.fields(PretrainConfig)
        if str(field.type) in ("<class 'int'>", "<class 'float'>")
    }
    assert numbers - {"process_id"} <= BOUNDS.keys()


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"corpus": ("{here}/empty.txt",)}, "empty.txt|no document|no text"),
        ({"corpus": ("{here}/absent*.txt",)}, r"absent\*\.txt"),
        ({"vocabulary": "{here}"}, "(?i)director"),
        ({"vocabulary": "{here}/vocab.txt"}, r"\[MASK\]"),
        ({"vocabulary": "{here}/absent.txt"}, "absent.txt"),
        ({"sequence_length": 2}, "--sequence_length 2 must be at least 5"),
    ],
)
def test_bad_corpus_or_vocabulary(config, tmp_path, corpus, changes, message):
    here = tmp_path / "here"
    here.mkdir()
    (here / "empty.txt").write_text("")
    (here / "vocab.txt").write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\nthe\n")
    before = contents(tmp_path)
    placed = json.loads(json.dumps(changes).replace("{here}", str(here)))
    config = dataclasses.replace(config, data=None, corpus=(corpus,), workers=1)
    config = dataclasses.replace(config, **placed)
    with pytest.raises((ValueError, OSError), match=message):
        pretrain(config)
    assert contents(tmp_path) == before
    assert not os.path.exists(config.output)


def test_data_of_another_vocabulary_than_init_from(
    config, corpus, settings, finished, tmp_path
):
    other = tmp_path / "other"
    prepare_dataset(corpus, other, **settings | {"vocabulary_size": 100})
    config = dataclasses.replace(
        config, data=str(other), init_from=str(finished.directory / "preset")
    )
    with pytest.raises(ValueError, match="another vocabulary.*Prepare it anew"):
        pretrain(config)
    assert not os.path.exists(config.output)


def test_sequences_longer_than_the_positions_of_init_from(config, finished):
    config = dataclasses.replace(
        config, sequence_length=41, init_from=str(finished.directory / "preset")
    )
    with pytest.raises(ValueError, match="41 is longer than the 40 positions"):
        pretrain(config)
    assert not os.path.exists(config.output)


def test_output_with_foreign_files_is_left_alone(config, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "thesis.tex").write_text("important")
    before = contents(tmp_path)
    with pytest.raises(ValueError, match="not the directory of a run.*new one"):
        pretrain(config)
    assert contents(tmp_path) == before
    assert contents(tmp_path) == before


def test_output_with_another_run_lists_each_difference(finished):
    before = contents(finished.directory)
    other = dataclasses.replace(
        finished.config, learning_rate=1e-3, steps=7, objective={"mask_rate": 0.25}
    )
    with pytest.raises(ValueError) as caught:
        pretrain(other)
    message = str(caught.value)
    assert "learning_rate: was 0.01, asked 0.001" in message
    assert "steps: was 6, asked 7" in message
    assert "objective: was {'mask_rate': 0.2}, asked {'mask_rate': 0.25}" in message
    assert message.count(": was ") == 3
    assert "delete it" in message
    assert f"--init_from {finished.directory}/preset and another --output" in message
    assert contents(finished.directory) == before


def test_output_where_another_process_trains(finished):
    with locked(finished.directory):
        with pytest.raises(ValueError, match="Another process is training in"):
            pretrain(finished.config)
    pretrain(finished.config)  # free again


def test_no_other_process_can_train_where_one_does(config, monkeypatch):
    def second(*_, **__):
        pretrain(config)

    monkeypatch.setattr(loop, "train", second)
    with pytest.raises(ValueError, match="Another process is training in"):
        pretrain(config)


@pytest.mark.parametrize("flags", [["--nonsense", "1"], ["--steps", "many"]])
def test_a_flag_that_is_none_exits_with_2(config, tmp_path, monkeypatch, capsys, flags):
    monkeypatch.setattr("sys.argv", ["recipe.py", *command_line(config), *flags])
    with pytest.raises(SystemExit) as caught:
        main(config, "A recipe.")
    assert caught.value.code == 2
    assert flags[0] in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_errors_reach_the_command_line_in_one_line(config, tmp_path, monkeypatch):
    flags = [*command_line(config), "--accumulate", "3"]
    monkeypatch.setattr("sys.argv", ["recipe.py", *flags])
    with pytest.raises(SystemExit, match="^Error: --batch_size 16 is not divisible"):
        main(config, "A recipe.")
    assert list(tmp_path.iterdir()) == []


# === --data decides how examples are made ===


@pytest.mark.parametrize(
    "flags, message",
    [
        (["--vocabulary_size", "99"], "--vocabulary_size 99: .* made with 120. Leave"),
        (["--vocabulary-size=30522"], "--vocabulary_size 30522: .* made with 120"),
        (["--no-lowercase"], "--lowercase False: .* made with True"),
        (["--tokenizer", "unigram"], "--tokenizer unigram: .* made with wordpiece"),
        (["--documents", "lines"], "--documents lines: .* made with blank_lines"),
        (["--vocabulary", "vocab.txt"], "--vocabulary vocab.txt: .* one of their own"),
        (["--corpus", "other.txt"], "--corpus other.txt: .*a.txt, .*b.txt. Leave"),
    ],
)
def test_a_flag_that_the_data_decide_otherwise(config, monkeypatch, flags, message):
    error = run(monkeypatch, config, *flags)
    assert re.match(f"Error: {message}", error), error
    assert not os.path.exists(config.output)


def test_flags_as_the_data_have_them_are_right(config, monkeypatch):
    def stop(config):
        raise ValueError("reached")

    monkeypatch.setattr(pretraining, "pretrain", stop)
    flags = ["--vocabulary_size", 120, "--lowercase", "--corpus", "--steps", 7]
    assert run(monkeypatch, config, *flags) == "Error: reached"


def test_what_the_data_were_made_with_is_recorded_and_shown(finished, prepared):
    settings = json.loads((finished.directory / "run.json").read_text())
    assert settings["vocabulary_size"] == 120  # the configuration said 30522
    assert settings["validation_fraction"] == 0.1
    assert settings["corpus"] == [source["name"] for source in prepared.corpus]
    assert settings["examples"] == {
        "vocabulary": prepared.tokenizer_fingerprint,
        "text": prepared.fingerprint,
    }
    made = "made with: +wordpiece vocabulary of 120; lower case; accents removed; from "
    assert re.search(f"{made}.*a.txt, .*b.txt", finished.printed)


@pytest.mark.parametrize(
    "changes, name", [({"seed": 1}, "text"), ({"vocabulary_size": 100}, "vocabulary")]
)
def test_another_corpus_in_the_place_of_the_data(
    config, corpus, settings, finished, tmp_path, changes, name
):
    shutil.copytree(finished.directory, config.output)
    path = Path(config.output) / "run.json"
    was = json.loads(path.read_text())
    prepare_dataset(corpus, tmp_path / "other", **settings | changes)
    config = dataclasses.replace(config, data=str(tmp_path / "other"))
    path.write_text(json.dumps(was | {"data": config.data}))
    before = contents(Path(config.output))
    with pytest.raises(ValueError, match=f"--data .*other has another {name} than"):
        pretrain(config)
    assert contents(Path(config.output)) == before


def test_longer_sequences_than_the_data_have_are_warned_of(config, monkeypatch, capsys):
    def stop(*_, **__):
        raise ValueError("reached")

    monkeypatch.setattr(loop, "train", stop)
    with pytest.raises(ValueError, match="reached"):
        pretrain(dataclasses.replace(config, sequence_length=40))
    assert capsys.readouterr().err.splitlines()[-1] == (
        f"Warning: the examples of --data {config.data} have 32 tokens at most; the "
        "rest of --sequence_length 40 is padding, which costs as much as text. With "
        "--fill_rows it is text."
    )


# === The run's directory ===


@pytest.mark.parametrize(
    "output, message",
    [
        ("file", "--output .*file cannot be the directory of a run: File exists"),
        ("file/run", "--output .*run cannot be the directory of a run: Not a dir"),
        ("x" * 300, "--output .*xx cannot be the directory of a run: File name too lo"),
        (".", r"--output \. exists and is not the directory of a run"),
    ],
)
def test_places_for_no_run(config, tmp_path, monkeypatch, output, message):
    (tmp_path / "file").write_text("important")
    monkeypatch.chdir(tmp_path)
    error = run(monkeypatch, dataclasses.replace(config, output=output))
    assert re.match(f"Error: {message}", error) and "\n" not in error
    assert contents(tmp_path).keys() == {"file"}


def test_an_empty_directory_that_was_there_stays(config, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    config = dataclasses.replace(config, output=".", data=None, corpus=("absent.txt",))
    assert "absent.txt" in run(monkeypatch, config)
    assert list(tmp_path.iterdir()) == []


def test_a_directory_that_cannot_be_written_to(finished, monkeypatch):
    def read_only(**_):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    before = contents(finished.directory)
    monkeypatch.setattr(run_directory.tempfile, "TemporaryFile", read_only)
    with pytest.raises(OSError, match="--output .* a run: Read-only file system. Mend"):
        pretrain(finished.config)
    assert contents(finished.directory) == before


def test_a_disk_that_is_full_at_once(config, tmp_path, monkeypatch):
    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        error = run(monkeypatch, config)
    assert re.match("Error: Could not write .*run.json: No space left on dev", error)
    assert list(tmp_path.iterdir()) == []


def settings_left(directory):
    """What `run_directory` does with what a killed process left."""
    with run_directory.run_directory(directory, {"steps": 6}):
        (directory / "data").mkdir()
        return json.loads((directory / "run.json").read_text())


@pytest.mark.parametrize("left", [{".run.json.partial": "{"}, {"run.json": ""}])
def test_a_run_killed_before_it_began_can_begin(tmp_path, left):
    for name, text in left.items():
        (tmp_path / name).write_text(text)
    assert settings_left(tmp_path) == {"steps": 6}


@pytest.mark.parametrize("text", ["", "{", "[]", "\0"])
def test_damaged_settings_of_a_run(tmp_path, text):
    settings_left(tmp_path)
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(ValueError, match="run.json is damaged. Run .* copy its run.js"):
        settings_left(tmp_path)


def test_a_damaged_row_of_metrics(config, finished, monkeypatch):
    shutil.copytree(finished.directory, config.output)
    path = Path(config.output) / "metrics.csv"
    shutil.rmtree(path.parent / "checkpoints")
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[:2], lines[2][:20]]) + "\n")
    error = run(monkeypatch, config)
    assert re.match(r"Error: .*metrics.csv: row 2 is damaged. Remove it", error)
    path.write_text("\n".join(lines[:2]) + "\n")
    main(config, "A recipe.")
    assert path.read_text().count("\n") == 3
