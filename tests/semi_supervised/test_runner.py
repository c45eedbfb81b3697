import dataclasses
import json
import runpy
import sys
from pathlib import Path

import keras
import numpy as np
import pytest

from keras_corrupt.downstream import TokenTagger
from keras_corrupt.semi_supervised import CrossViewParser, CrossViewTagger, train
from keras_corrupt.semi_supervised.cross_view import CrossViewConfig, ParsingConfig
from keras_corrupt.semi_supervised.optimizer import optimizer_of
from keras_corrupt.semi_supervised.presets import PRESETS
from keras_corrupt.semi_supervised.runner import averaged, build
from keras_corrupt.semi_supervised.vocabulary import WordVocabulary
from keras_corrupt.tasks.conll import TaggingTask
from keras_corrupt.tasks.dependencies import DependencyTask, read_dependencies
from keras_corrupt.training import SGD, AdamW, WarmupLinearDecay
from keras_corrupt.training.callbacks import read_metrics
from keras_corrupt.training.checkpoint import Checkpoints
from tests.semi_supervised.conftest import (
    LABELS,
    LETTERS,
    SIZES,
    WORDS,
    make_token_tagger,
    sentences_of,
    trees_of,
)

RECIPE = Path(__file__).parents[2] / "recipes" / "cvt_tagging.py"
PARSING_RECIPE = RECIPE.with_name("cvt_parsing.py")


@pytest.fixture(autouse=True, scope="module")
def small():
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(PRESETS, "tiny", SIZES)
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
    paths["text"] = directory / "text.txt"
    sentences = [words for words in sentences_of(60, 15, 7)[0] if len(words) > 3]
    paths["text"].write_text("\n".join(map(" ".join, sentences)))
    return {name: str(path) for name, path in paths.items()}


def conllu(sentences):
    text = ""
    for words, tree in zip(sentences, trees_of(sentences), strict=True):
        for i, (word, edge) in enumerate(zip(words, tree, strict=True), 1):
            text += "\t".join(map(str, (i, word, *"____", *edge, *"__"))) + "\n"
        text += "\n"
    return text


@pytest.fixture(scope="module")
def task(files):
    return TaggingTask("pos", {k: files[k] for k in ("train", "dev")}, scheme="plain")


@pytest.fixture(scope="module")
def finished(files, task, tmp_path_factory):
    """A run that nothing disturbed: its directory and its model."""
    run = tmp_path_factory.mktemp("finished") / "run"
    return run, train(task, config_of(files, run))


@pytest.fixture(scope="module")
def pretrained(tmp_path_factory):
    """A preset to start from."""
    directory = tmp_path_factory.mktemp("pretrained") / "preset"
    make_token_tagger().save_to_preset(directory)
    return str(directory)


@pytest.fixture(scope="module")
def finished_on_encoder(files, task, pretrained, tmp_path_factory):
    """A run on that preset: its directory and its model."""
    run = tmp_path_factory.mktemp("on_encoder") / "run"
    return run, train(task, config_of(files, run, preset=pretrained))


@pytest.fixture(scope="module")
def parsing_task(files):
    pytest.importorskip("ufal.chu_liu_edmonds")
    splits = {split: files[f"{split}_trees"] for split in ("train", "dev")}
    return DependencyTask("parsing", splits)


@pytest.fixture(scope="module")
def finished_parser(files, parsing_task, tmp_path_factory):
    """A parser's run: its directory and its model."""
    run = tmp_path_factory.mktemp("parser") / "run"
    return run, train(parsing_task, config_of(files, run, ParsingConfig))


def config_of(files, output, config_class=CrossViewConfig, **changes):
    config = config_class(
        output=str(output),
        preset="tiny",
        unlabelled=(files["text"],),
        in_words=True,
        steps=6,
        batch_size=4,
        interval=2,
        ema=0.5,
    )
    return dataclasses.replace(config, **changes)


@pytest.mark.parametrize("kind", ["finished", "finished_on_encoder", "finished_parser"])
def test_a_killed_run_ends_with_the_same_weights(
    kind, files, pretrained, request, tmp_path, monkeypatch
):
    run, whole = request.getfixturevalue(kind)
    parses = kind == "finished_parser"
    task = request.getfixturevalue("parsing_task" if parses else "task")
    config = config_of(
        files,
        tmp_path / "killed",
        ParsingConfig if parses else CrossViewConfig,
        preset=pretrained if kind == "finished_on_encoder" else "tiny",
    )

    class Killed(BaseException):
        pass

    save = Checkpoints.save

    def save_and_die(self, model, step, phase):
        save(self, model, step, phase)
        if step == 4:
            raise Killed

    monkeypatch.setattr(Checkpoints, "save", save_and_die)
    with pytest.raises(Killed):
        train(task, config)
    monkeypatch.setattr(Checkpoints, "save", save)
    again = train(task, config)
    for a, b in zip(whole.get_weights(), again.get_weights(), strict=True):
        np.testing.assert_array_equal(a, b)
    found = [read_metrics(d / "metrics.csv") for d in (run, tmp_path / "killed")]
    for a, b in zip(*found, strict=True):
        assert a.pop("seconds") + b.pop("seconds") > 0 and a == b


def test_what_a_run_leaves(task, finished):
    run, model = finished
    rows = read_metrics(run / "metrics.csv")
    assert [row["step"] for row in rows] == [2, 4, 6]
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


def test_what_a_parsers_run_leaves(parsing_task, finished_parser):
    run, model = finished_parser
    rows = read_metrics(run / "metrics.csv")
    assert rows[-1]["cross_view_loss"] > 0 and rows[-1]["supervised_loss"] > 0
    results = json.loads((run / "results.json").read_text())
    assert set(results["dev"]) == {"las", "uas", "guess"}
    assert results["dev"]["las"] == pytest.approx(100 * rows[-1]["val_las"])
    loaded = CrossViewParser.from_preset(run / "preset")
    dev = parsing_task.splits["dev"].examples
    predictions = loaded.predictions(dev)
    assert predictions == model.predictions(dev)
    # Read anew, for which they must be trees.
    found = read_dependencies(run / "predictions" / "dev.conllu")
    assert found.examples == dev and found.labels == predictions


def test_what_a_run_on_an_encoder_leaves(task, pretrained, finished_on_encoder):
    run, model = finished_on_encoder
    start = TokenTagger.from_preset(pretrained)
    loaded = TokenTagger.from_preset(run / "preset")
    dev = task.splits["dev"].examples
    assert loaded.predictions(dev) == model.predictions(dev)
    assert loaded.labels == start.labels
    rows = read_metrics(run / "metrics.csv")
    assert rows[-1]["cross_view_loss"] > 0 and rows[-1]["supervised_loss"] > 0


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
    rate = optimizer._learning_rate
    for step in (0, 100, 40_000):
        expected = 0.5 / (1 + 0.005 * step**0.5)
        assert float(rate(step)) == pytest.approx(expected, rel=1e-6)


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
    with averaged(model):
        np.testing.assert_allclose(variable, average, rtol=1e-5)
    np.testing.assert_array_equal(variable, values[-1])


def test_a_word_that_occurs_twice_is_clipped_as_one_gradient():
    found = []
    for ids in ([2, 2, 2, 2], [2, 3, 4, 5]):
        layer = keras.layers.Embedding(9, 4, embeddings_initializer="zeros")
        model = keras.Sequential([keras.Input((4,), dtype="int32"), layer])
        model.compile(SGD(1.0, global_clipnorm=1.0), loss=lambda y, x: keras.ops.sum(x))
        model.fit(np.array([ids]), np.zeros((1, 4, 4)), verbose=0)
        found.append(np.linalg.norm(np.array(layer.embeddings)))
    np.testing.assert_allclose(found, 1.0, rtol=1e-5)


def test_word_vectors_are_where_words_start(tmp_path):
    path = tmp_path / "glove.txt"
    size = 3 * SIZES["encoder"]["num_filters"]
    path.write_text(f"cat {'7 ' * size}".strip() + "\n")
    table = np.array(
        compiled(word_vectors=str(path)).encoder.embeddings.word.embeddings
    )
    assert (table[WORDS.index("cat") + 2] == 7).all() and (table != 7).any(
        axis=1
    ).sum() > 9


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"preset": "huge"}, "Unknown preset 'huge'"),
        ({"momentum": 1.0}, "--momentum 1.0 must be"),
        ({"steps": 0}, "--steps 0 must be"),
        ({"views": ()}, "--views is empty"),
        ({"optimizer": "adamw"}, "--preset tiny is none"),
        ({"preset": "tiny_en", "word_vectors": "glove"}, "`word_vectors` are for"),
        ({"labelled_dropout": 1.0}, "`labelled_dropout` must be"),
        ({"unlabelled": ("nowhere.txt",)}, "nowhere.txt"),
    ],
)
def test_bad_settings_leave_nothing(files, task, tmp_path, changes, message):
    with pytest.raises(ValueError, match=message):
        train(task, config_of(files, tmp_path / "run", **changes))
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"preset": "tiny_en"}, "preset=tiny_en is none of their sizes, tiny, base"),
        ({"views": ("past",)}, "`views` must be different ones of forward_forward"),
        ({"label_smoothing": 0.1}, "`label_smoothing` must be 0"),
    ],
)
def test_bad_settings_of_a_parser(files, parsing_task, tmp_path, changes, message):
    with pytest.raises(ValueError, match=message):
        train(
            parsing_task, config_of(files, tmp_path / "run", ParsingConfig, **changes)
        )
    assert not (tmp_path / "run").exists()


def test_a_task_is_tagging_or_parsing(files, tmp_path):
    class Other:
        kind = "span_extraction"

    with pytest.raises(ValueError, match="tagging or dependency_parsing; got 'span"):
        train(Other, config_of(files, tmp_path / "run"))


def test_a_missing_library_is_missed_at_once(
    files, parsing_task, tmp_path, monkeypatch
):
    monkeypatch.setitem(sys.modules, "ufal.chu_liu_edmonds", None)
    config = config_of(files, tmp_path / "run", ParsingConfig, unlabelled=("nowhere",))
    with pytest.raises(ImportError, match=r"'.\[parsing\]'"):
        train(parsing_task, config)


def test_a_directory_is_of_one_run(files, task, finished):
    run, _ = finished
    with pytest.raises(ValueError, match="momentum: was 0.9, asked 0.8"):
        train(task, config_of(files, run, momentum=0.8))
    splits = {"train": files["train"], "dev": files["train"]}
    other = TaggingTask("pos", splits, scheme="plain")
    with pytest.raises(ValueError, match="another text"):
        train(other, config_of(files, run))


@pytest.mark.tensorflow_only
@pytest.mark.parametrize(
    "recipe, metric", [(RECIPE, "accuracy"), (PARSING_RECIPE, "las")]
)
def test_the_recipe_runs_without_files(recipe, metric, monkeypatch, tmp_path, capsys):
    flags = [
        "--smoke",
        "--unlabelled",
        "python-docs",
        "--output",
        str(tmp_path / "out"),
    ]
    if recipe == PARSING_RECIPE:
        pytest.importorskip("ufal.chu_liu_edmonds")
    monkeypatch.setattr("sys.argv", [str(recipe), *flags])
    runpy.run_path(str(recipe), run_name="__main__")
    text = capsys.readouterr().out
    assert "unlabelled: 100 sentences, 5 views" in text and f"dev: {metric}" in text
    assert (tmp_path / "out" / "preset" / "config.json").exists()


@pytest.mark.tensorflow_only
def test_the_recipe_without_text_is_the_baseline(monkeypatch, files, tmp_path, capsys):
    flags = ["--train", files["train"], "--dev", files["dev"], "--scheme", "plain"]
    flags += ["--max_train", "10", "--smoke", "--output", str(tmp_path / "out")]
    monkeypatch.setattr("sys.argv", [str(RECIPE), *flags])
    runpy.run_path(str(RECIPE), run_name="__main__")
    text = capsys.readouterr().out
    assert "labelled:   10 sentences" in text and "learns alone" in text
    assert "auxiliary 0" in text


@pytest.mark.tensorflow_only
def test_the_parsing_recipe_reads_files(monkeypatch, files, tmp_path, capsys):
    pytest.importorskip("ufal.chu_liu_edmonds")
    bare = tmp_path / "bare.conllu"
    bare.write_text("".join(f"{i}\tcat" + 8 * "\t_" + "\n" for i in (1, 2)))
    flags = ["--train", files["train_trees"], "--dev", files["dev_trees"]]
    flags += ["--test", str(bare), "--views", "vat", "--unlabelled", files["text"]]
    flags += ["--in_words", "--max_train", "10", "--smoke"]
    flags += ["--output", str(tmp_path / "out")]
    monkeypatch.setattr("sys.argv", [str(PARSING_RECIPE), *flags])
    runpy.run_path(str(PARSING_RECIPE), run_name="__main__")
    text = capsys.readouterr().out
    assert "labelled:   10 sentences" in text and "1 views" in text
    (tree,) = read_dependencies(tmp_path / "out" / "predictions" / "test.conllu").labels
    assert len(tree) == 2
