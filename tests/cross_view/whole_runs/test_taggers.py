"""Runs of taggers, and what all runs have in common."""

import dataclasses
import json
import runpy
import shutil
from pathlib import Path

import keras
import numpy as np
import pytest

from keras_corrupt.cross_view import (
    CrossViewConfig,
    CrossViewTagger,
    ImageConfig,
    ParsingConfig,
    TranslationConfig,
    train,
)
from keras_corrupt.cross_view.run.cross_view_run import averaged, extent
from keras_corrupt.cross_view.run.optimizer import optimizer_of, use_average
from keras_corrupt.cross_view.run.sentences import build
from keras_corrupt.cross_view.text.vocabulary import WordVocabulary
from keras_corrupt.devices import precision
from keras_corrupt.downstream import TokenTagger
from keras_corrupt.tasks.conll import TaggingTask
from keras_corrupt.training import SGD, AdamW, WarmupLinearDecay
from keras_corrupt.training.callbacks import read_metrics
from keras_corrupt.training.out_of_memory import OutOfMemoryError
from tests.cross_view.conftest import (
    LABELS,
    LETTERS,
    SIZES,
    WORDS,
    make_token_tagger,
)
from tests.cross_view.whole_runs.conftest import (
    config_of,
    continued_from_its_middle,
    run_without_files,
)

RECIPE = Path(__file__).parents[3] / "recipes" / "cvt_tagging.py"


def tagger_config(files, run):
    return config_of(
        files,
        run,
        labelled_first=3,
        mean_teacher=0.9,
        word_vectors=files["vectors"],
    )


@pytest.fixture(scope="module")
def finished(files, task, tmp_path_factory):
    """A run that nothing disturbed: its directory and its model."""
    run = tmp_path_factory.mktemp("finished") / "run"
    return run, train(task, tagger_config(files, run))


@pytest.fixture(scope="module")
def pretrained(tmp_path_factory):
    """A preset to start from."""
    keras.utils.set_random_seed(0)
    directory = tmp_path_factory.mktemp("pretrained") / "preset"
    make_token_tagger().save_to_preset(directory)
    return str(directory)


@pytest.fixture(scope="module")
def finished_on_encoder(files, task, pretrained, tmp_path_factory):
    """A run on that preset: its directory and its model."""
    run = tmp_path_factory.mktemp("on_encoder") / "run"
    return run, train(task, config_of(files, run, preset=pretrained))


def test_what_a_run_leaves(task, finished):
    run, model = finished
    rows = read_metrics(run / "metrics.csv")
    assert [row["step"] for row in rows] == [2, 4, 6]
    assert rows[0]["cross_view_loss"] == 0  # labels have the first three updates
    assert rows[0]["loss"] > 2 * rows[0]["supervised_loss"]  # of auxiliary modules, too
    assert rows[-1]["cross_view_loss"] > 0 and rows[-1]["supervised_loss"] > 0
    # The last validation is of the average, which the run ends with.
    results = json.loads((run / "results.json").read_text())
    assert results["dev"]["accuracy"] == pytest.approx(100 * rows[-1]["val_accuracy"])
    assert (run / "curves.png").stat().st_size > 1000
    loaded = CrossViewTagger.from_preset(run / "preset")
    dev = task.splits["dev"].examples
    assert loaded.predictions(dev) == model.predictions(dev)
    lines = (run / "predictions" / "dev.conll").read_text().splitlines()
    assert len(lines) == sum(len(words) + 1 for words in dev)


def test_what_a_run_on_an_encoder_leaves(task, pretrained, finished_on_encoder):
    run, model = finished_on_encoder
    assert not model.modules_learn_labels
    start = TokenTagger.from_preset(pretrained)
    loaded = TokenTagger.from_preset(run / "preset")
    dev = task.splits["dev"].examples
    assert loaded.predictions(dev) == model.predictions(dev)
    assert loaded.labels == start.labels
    rows = read_metrics(run / "metrics.csv")
    assert rows[-1]["cross_view_loss"] > 0 and rows[-1]["supervised_loss"] > 0


@pytest.mark.parametrize("kind", ["tagging", "dependency_parsing"])
def test_a_new_task_learns_on_the_encoder_of_another(
    files, task, request, finished, tmp_path, kind
):
    of_parsing = kind == "dependency_parsing"
    config_class = ParsingConfig if of_parsing else CrossViewConfig
    if of_parsing:
        task = request.getfixturevalue("parsing_task")
    directory, other = finished
    config = config_of(
        files,
        tmp_path / "run",
        config_class,
        preset=str(directory / "preset"),
        freeze_encoder=True,
        unlabelled=(),
        steps=2,
    )
    model = train(task, config)
    assert model.vocabulary.words == other.vocabulary.words
    weights = (m.encoder.get_weights() for m in (other, model))
    for a, b in zip(*weights, strict=True):
        np.testing.assert_array_equal(a, b)
    loaded = type(model).from_preset(tmp_path / "run" / "preset")
    dev = task.splits["dev"].examples
    assert loaded.predictions(dev) == model.predictions(dev)


def test_a_run_in_bfloat16(files, task, tmp_path, monkeypatch):
    monkeypatch.setattr(precision, "fastest", lambda: "mixed_bfloat16")
    run = tmp_path / "run"
    model = train(task, config_of(files, run, dtype="auto", steps=2))
    assert model.encoder.lstms[0].compute_dtype == "bfloat16"
    assert {v.dtype for v in model.trainable_variables} == {"float32"}
    loaded = CrossViewTagger.from_preset(run / "preset")
    dev = task.splits["dev"].examples
    assert loaded.predictions(dev) == model.predictions(dev)


def test_an_encoder_learns_as_its_paper_fine_tunes_it(finished_on_encoder):
    _, model = finished_on_encoder
    optimizer = model.optimizer
    assert isinstance(optimizer, AdamW) and optimizer.ema_momentum == 0.5
    rate = WarmupLinearDecay(1e-3, total_steps=6, warmup_steps=0)
    assert optimizer._learning_rate.get_config() == rate.get_config()


def test_lower_layers_learn_at_lower_rates():
    config = CrossViewConfig("", preset="small", steps=100).completed(True)
    model = make_token_tagger()
    model.tagger.encoder.hidden_size = 256  # the thesis's small one
    optimizer = optimizer_of(config, model, "pos")
    optimizer.build(model.trainable_variables)
    rates = {v.path: optimizer.multiplier_of(v) for v in model.trainable_variables}
    assert {r for p, r in rates.items() if "/layer_0/" in p} == {0.8**2}
    assert {r for p, r in rates.items() if "encoder/" not in p} == {1.0}


def test_a_pretrained_encoder_can_learn_by_sgd(pretrained, task):
    config = CrossViewConfig("", preset=pretrained, optimizer="sgd").completed(True)
    optimizer = optimizer_of(config, make_token_tagger(), "pos")
    assert isinstance(optimizer, SGD) and float(optimizer._learning_rate(0)) == 0.5


def compiled(**changes):
    config = CrossViewConfig(output="", preset="tiny", **changes).completed(False)

    class Labels:
        name, kind = "tags", "tagging"
        model_arguments = {"labels": LABELS}

    return build(Labels, WordVocabulary(WORDS, LETTERS), config)


def test_rate_momentum_and_average_are_table_4_1():
    optimizer = compiled().optimizer
    assert optimizer.momentum == 0.9 and optimizer.ema_momentum == 0.998
    assert optimizer.global_clipnorm == 1.0  # the thesis's code
    rate = optimizer._learning_rate
    for step in (0, 100, 40_000):
        expected = 0.5 / (1 + 0.005 * step**0.5)
        assert float(rate(step)) == pytest.approx(expected, rel=1e-6)


def test_other_layers_have_half_of_the_lstms_size():
    model = compiled(lstm_size=8)
    config = model.encoder.get_config()
    assert config["hidden_sizes"] == [8, 4] and config["projection_size"] == 4
    assert model.hidden_size == 4
    assert config["num_filters"] == SIZES["encoder"]["num_filters"]  # the preset's


def test_the_average_of_the_weights_is_what_is_evaluated():
    model = compiled(ema=0.75, clip_norm=0.0, rate_decay=0.0)
    (variable, *_) = model.primary.trainable_variables
    zeros = [keras.ops.zeros(v.shape) for v in model.trainable_variables]
    values, average = [], None
    for step in range(4):
        grads = [
            z + (v is variable) * 1.0
            for z, v in zip(zeros, model.trainable_variables, strict=True)
        ]
        model.optimizer.apply(grads, model.trainable_variables)
        values.append(np.array(variable))
        average = values[0] if step == 0 else 0.75 * average + 0.25 * values[-1]
    # Momentum: each update is 0.9 of the last one, less the rate.
    updates = np.diff(values, axis=0)
    np.testing.assert_allclose(updates[1], 0.9 * updates[0] - 0.5, rtol=1e-4)
    with averaged(model, use_average):
        np.testing.assert_allclose(variable, average, rtol=1e-5)
    np.testing.assert_array_equal(variable, values[-1])


def test_the_banner_tells_which_updates_have_text():
    config = CrossViewConfig("", steps=9, batch_size=4, labelled_first=3)
    alone = "9 updates of 4 sentences, 1.00e+06 FLOPs each, 9.00e+06 in all"
    assert extent(config, 1e6) == alone
    assert extent(dataclasses.replace(config, unlabelled=("text",)), 1e6) == (
        "9 updates of 4 sentences, the first 3 on labelled ones; "
        "1.00e+06 FLOPs each from then on"
    )


def test_labels_have_the_first_updates_of_new_networks():
    shares = {CrossViewConfig: 20, TranslationConfig: 50, ImageConfig: 20}
    for config_class, share in shares.items():
        config = config_class("", steps=100)
        assert config.completed(False).labelled_first == share
    trained = CrossViewConfig("", "tiny_en", steps=100)
    assert trained.completed(True).labelled_first == 0
    config = CrossViewConfig("", steps=100, labelled_first=0)
    assert config.completed(False).labelled_first == 0


def test_a_word_that_occurs_twice_is_clipped_as_one_gradient():
    found = []
    for ids in ([2, 2, 2, 2], [2, 3, 4, 5]):
        layer = keras.layers.Embedding(9, 4, embeddings_initializer="zeros")
        model = keras.Sequential([keras.Input((4,), dtype="int32"), layer])
        model.compile(SGD(1.0, global_clipnorm=1.0), loss=lambda y, x: keras.ops.sum(x))
        model.fit(np.array([ids]), np.zeros((1, 4, 4)), verbose=0)
        found.append(np.linalg.norm(np.array(layer.embeddings)))
    np.testing.assert_allclose(found, 1.0, rtol=1e-5)


def test_word_vectors_are_where_words_start(files, finished):
    _, trained = finished
    assert trained.vocabulary.words[-1] == "zebra"  # that text does not have
    model = compiled(word_vectors=files["vectors"])
    table = np.array(model.encoder.embeddings.word.embeddings)
    assert (table[WORDS.index("cat") + 2] == 7).all()
    assert (table != 7).any(axis=1).sum() > 9


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"preset": "huge"}, "Unknown preset 'huge'"),
        ({"momentum": 1.0}, "--momentum 1.0 must be"),
        ({"steps": 0}, "--steps 0 must be"),
        ({"views": ()}, "--views is empty"),
        ({"labelled_first": 6}, "--labelled_first 6 leaves none of --steps 6"),
        ({"optimizer": "adamw"}, "--preset tiny is none"),
        ({"preset": "tiny_en", "word_vectors": "glove"}, "`word_vectors` are for"),
        ({"lstm_size": 1}, "--lstm_size 1 must be"),
        ({"lstm_size": 8, "preset": "tiny_en"}, "--lstm_size is of new LSTMs"),
        ({"freeze_encoder": True}, "--preset tiny is a size"),
        ({"freeze_encoder": True, "preset": "tiny_en"}, "Leave one of the two out"),
        ({"labelled_dropout": 1.0}, "`labelled_dropout` must be"),
        ({"unlabelled": ("nowhere.txt",)}, "nowhere.txt"),
    ],
)
def test_bad_settings_leave_nothing(files, task, tmp_path, changes, message):
    with pytest.raises(ValueError, match=message):
        train(task, config_of(files, tmp_path / "run", **changes))
    assert not (tmp_path / "run").exists()


def test_a_task_is_tagging_or_parsing(files, tmp_path):
    class Other:
        kind = "span_extraction"

    with pytest.raises(ValueError, match="tagging or .*; got 'span_ex"):
        train(Other, config_of(files, tmp_path / "run"))


def test_a_directory_is_of_one_run(files, task, finished, tmp_path):
    run, _ = finished
    with pytest.raises(ValueError, match="mean_teacher: was 0.9, asked 0.8"):
        train(task, dataclasses.replace(tagger_config(files, run), mean_teacher=0.8))
    splits = {"train": files["train"], "dev": files["train"]}
    other = TaggingTask("pos", splits, scheme="plain")
    with pytest.raises(ValueError, match="another text"):
        train(other, tagger_config(files, run))
    moved = shutil.copy(tagger_config(files, run).unlabelled[0], tmp_path / "moved.txt")
    train(task, dataclasses.replace(tagger_config(files, run), unlabelled=(moved,)))


def test_too_little_memory_names_remedies(files, task, tmp_path, monkeypatch):
    import tensorflow as tf

    def exhausted(*args, **kwargs):
        raise tf.errors.ResourceExhaustedError(None, None, "OOM when allocating")

    monkeypatch.setattr(CrossViewTagger, "fit", exhausted)
    with pytest.raises(OutOfMemoryError, match="4 sentences.*--batch_size 2, few"):
        train(task, config_of(files, tmp_path / "run"))


def test_the_recipe_without_text_is_the_baseline(monkeypatch, files, tmp_path, capsys):
    flags = ["--train", files["train"], "--dev", files["dev"], "--scheme", "plain"]
    flags += ["--max_train", "10", "--smoke", "--output", str(tmp_path / "out")]
    monkeypatch.setattr("sys.argv", [str(RECIPE), *flags])
    runpy.run_path(str(RECIPE), run_name="__main__")
    text = capsys.readouterr().out
    assert "labelled:   10 sentences" in text and "learns alone" in text
    assert "auxiliary 0" in text


def test_the_recipe_with_a_part_of_the_files(monkeypatch, files, tmp_path):
    for given, other in [("dev", "train"), ("train", "dev")]:
        flags = [f"--{given}", files[given], "--output", str(tmp_path / "out")]
        monkeypatch.setattr("sys.argv", [str(RECIPE), *flags])
        with pytest.raises(SystemExit, match=f"--{given} without --{other}"):
            runpy.run_path(str(RECIPE), run_name="__main__")
    assert not (tmp_path / "out").exists()


def test_a_killed_run_ends_with_the_same_weights(
    files, task, finished, tmp_path, capsys
):
    config = tagger_config(files, tmp_path / "killed")
    continued_from_its_middle(finished, train, task, config, capsys)


def test_the_recipe_runs_without_files(monkeypatch, tmp_path, capsys):
    text = run_without_files(RECIPE, monkeypatch, tmp_path / "out", capsys)
    assert "unlabelled: 100 sentences, 5 views" in text and "dev: accuracy" in text
