"""The notebooks in colab/, executed in miniature."""

import ast
import json
import os
import random
import re
import sys
from pathlib import Path

import keras
import nbformat
import pytest
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

from keras_corrupt.models import Electra
from keras_corrupt.tokenizers import SPECIAL_TOKENS, WordPieceTokenizer, load
from keras_corrupt.training.callbacks import read_metrics
from tests.conftest import SIZES

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "colab").glob("*.ipynb"))
every_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)

#: What makes a run small.
SMALL = {
    "PRESET": "tiny",
    "SEQUENCE_LENGTH": 16,
    "BATCH_SIZE": 16,
    "STEPS": 120,
    "WARMUP_STEPS": 5,
    "INTERVAL": 40,
    "LEARNING_RATE": 1e-3,
    "VALIDATION_FRACTION": 0.1,
}
#: Likewise, of fine-tuning.
SETTINGS = {"learning_rate": 5e-4, "epochs": 5, "batch_size": 8, "dropout": 0.0}


def read(path):
    return nbformat.read(path, as_version=4)


def parameters_of(notebook):
    """Returns the index of the parameters' cell, and the names that it sets."""
    (index,) = (
        i
        for i, cell in enumerate(notebook.cells)
        if "parameters" in cell.metadata.get("tags", [])
    )
    body = ast.parse(notebook.cells[index].source).body
    return index, {target.id for node in body for target in node.targets}


@pytest.fixture
def execute(tmp_path, monkeypatch):
    """Returns a function that executes a notebook in this process, in `tmp_path`.

    It takes the notebook's name and other parameters, and returns what each cell
    prints. The package is importable, so that the notebook does not install it.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(ROOT), *sys.path])
    monkeypatch.setenv("KERAS_BACKEND", keras.backend.backend())
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), *sys.path]))
    monkeypatch.delenv("COLAB_RELEASE_TAG", raising=False)

    def run(name, **parameters):
        notebook = read(ROOT / "colab" / f"{name}.ipynb")
        index, names = parameters_of(notebook)
        assert parameters.keys() <= names
        shell, printed = InteractiveShell.instance(), {}
        for i, cell in enumerate(notebook.cells):
            if cell.cell_type == "code":
                with capture_output() as captured:  # apart from what is displayed
                    ran = shell.run_cell(cell.source)
                ran.raise_error()
                printed[cell.id] = captured.stdout
            if i == index:
                shell.user_ns.update(parameters)
        return printed

    yield run
    InteractiveShell.clear_instance()


def assert_loss_fell(run):
    rows = read_metrics(run / "metrics.csv")
    assert [row["step"] for row in rows] == [40, 80, 120]
    # Means over an interval's steps. The words that may follow a word are few, which
    # saves a masked LM more than a nat; a fifth of that is far from any rounding.
    assert rows[-1]["mlm_loss"] < rows[0]["mlm_loss"] - 0.2
    assert (run / "curves.png").stat().st_size > 1000


def test_quickstart(execute, tmp_path):
    rng = random.Random(0)
    words = {"1": ["delight", "joy", "gem"], "0": ["bore", "mess", "failure"]}

    def review():
        label = rng.choice(["0", "1"])
        film = rng.choice(["film", "story", "cast"])
        return f"the {film} a {' a '.join(rng.choices(words[label], k=3))}", label

    documents = ["\n".join(review()[0] for _ in range(5)) for _ in range(60)]
    (tmp_path / "reviews.txt").write_text("\n\n".join(documents))
    folder = tmp_path / "glue" / "SST-2"
    folder.mkdir(parents=True)
    for split, count in (("train", 160), ("dev", 40)):
        rows = ["sentence\tlabel", *("\t".join(review()) for _ in range(count))]
        (folder / f"{split}.tsv").write_text("\n".join(rows) + "\n")
    reviews = ["the cast a joy a gem a joy", "the film a mess a bore a mess"]

    printed = execute(
        "quickstart_tpu",
        **SMALL,
        CORPUS=("reviews.txt",),
        VOCABULARY_SIZE=200,
        GLUE="glue",
        SETTINGS=SETTINGS,
        SENTENCE=reviews[0],
        REVIEWS=reviews,
    )
    run = tmp_path / "runs" / "electra_tiny"
    assert_loss_fell(run)
    assert "<because " in printed["suspect"]
    assert re.match(r"5\d documents, ", printed["examples"])  # of 60, some held out
    assert printed["masked"].count("[MASK]") >= 3
    assert printed["look"].count(" > ") >= 3  # replaced tokens
    tokens = [line.split()[1] for line in printed["score"].splitlines()]
    assert tokens == ["[CLS]", *reviews[0].split(), "[SEP]"]
    assert "| SST-2 | accuracy | " in printed["finetune"]
    assert (run / "glue" / "SST-2" / "published" / "preset").is_dir()
    assert printed["predict"].splitlines() == [f"1 {reviews[0]}", f"0 {reviews[1]}"]
    for folder in map(Path, printed["elsewhere"].split()):
        assert (tmp_path / folder / "model.safetensors").is_file()


def test_pretrain_your_language(execute, tmp_path):
    rng = random.Random(0)
    words = {
        "NOUN": ["Äpfel", "Straßen", "Vögel"],
        "ADJ": ["schön", "süß", "müde"],
        "VERB": ["blühen", "dürfen", "schonen"],
    }

    def sentence():
        tags = rng.choice([("NOUN", "VERB", "ADJ"), ("ADJ", "NOUN", "VERB")])
        return [(rng.choice(words[tag]), tag) for tag in tags]

    def text():
        return " ".join(word for word, _ in sentence())

    documents = ["\n".join(text() for _ in range(6)) for _ in range(60)]
    (tmp_path / "text.txt").write_text("\n\n".join(documents), encoding="utf-8")
    for split, count in (("train", 240), ("dev", 40)):
        rows = ["\n".join(f"{w} {t}" for w, t in sentence()) for _ in range(count)]
        (tmp_path / split).write_text("\n\n".join(rows) + "\n", encoding="utf-8")

    printed = execute(
        "pretrain_your_language",
        **SMALL,
        CORPUS=("text.txt",),
        VOCABULARY_SIZE=150,
        SENTENCE="Vögel dürfen schön",
        TRAIN="train",
        DEV="dev",
        SETTINGS=SETTINGS,
    )
    run = tmp_path / "runs" / "my_language_tiny"
    assert_loss_fell(run)
    # The notebook's own settings keep accents and case.
    tokenizer = load(tmp_path / "examples")
    tokens = tokenizer.tokens(tokenizer.encode("Vögel dürfen schön schonen"))
    assert tokens == ["Vögel", "dürfen", "schön", "schonen"]
    assert str(tokens[:3]) in printed["tokens"]
    assert "unknown: 0.0000%" in printed["tokens"]
    assert printed["look"].count(" > ") >= 3
    assert (run / "tagging" / "tagging" / "published" / "preset").is_dir()
    assert printed["predict"].split() == [
        *("NOUN", "Vögel", "VERB", "dürfen", "ADJ", "schön")
    ]
    assert printed["serve"].split() == ["NOUN", "VERB", "ADJ"]


def test_adapt_to_your_domain(execute, tmp_path):
    rng = random.Random(0)
    animals, words = ["cat", "dog"], ["the", "sat", "ran", "on", "under", "mat"]

    def text(animal):
        return f"the {animal} {' '.join(rng.choices(words, k=5))}"

    tokenizer = WordPieceTokenizer([*SPECIAL_TOKENS, *words, *animals, "##s"])
    sizes = {"vocabulary_size": tokenizer.vocabulary_size, "initializer_range": 0.2}
    start = Electra(
        {**SIZES["discriminator"], **sizes}, SIZES["generator"], tokenizer=tokenizer
    )
    start.save_to_preset(tmp_path / "start")
    for name, ending in (("domain", "s"), ("old", "")):
        documents = ["\n".join(text(f"{a}{ending}") for a in animals)] * 60
        (tmp_path / f"{name}.txt").write_text("\n\n".join(documents))
    for split, count in (("train", 80), ("dev", 20)):
        rows = [f"{text(a)},{a}" for a in rng.choices(animals, k=count)]
        (tmp_path / f"{split}.csv").write_text("\n".join(["note,kind", *rows]) + "\n")

    small = {name: value for name, value in SMALL.items() if name != "PRESET"}
    printed = execute(
        "adapt_to_your_domain",
        **small | {"STEPS": 60, "LEARNING_RATE": 1e-2, "INTERVAL": 30},
        START="start",
        CORPUS=("domain.txt",),
        OLD="old.txt",
        NEW_PIECES=2,
        TRAIN="train.csv",
        DEV="dev.csv",
        TEXT="note",
        LABEL="kind",
        SEEDS=1,
        SETTINGS=SETTINGS,
        SENTENCE="the cats sat",
    )
    assert "['the', 'cat', '##s', 'sat']" in printed["tokens"]
    assert "['the', 'cats', 'sat']" in printed["tokens-now"]
    assert printed["tokens-now"].count("[CLS]") == 3
    before, after = (
        json.loads((tmp_path / "runs" / "my_domain" / f"{name}.json").read_text())
        for name in ("before", "after")
    )
    assert after["mlm_loss"] < before["mlm_loss"] - 0.2
    assert "validation on old.txt" in printed["adapt"]
    scores = printed["adapt"].split("accuracy, the median of 1:\n")[1].splitlines()
    assert [line.split()[0] for line in scores] == ["before", "after", "guess"]


def test_semi_supervised_tagging(execute, tmp_path):
    rng = random.Random(0)
    names, verbs = ["Ada Ortiz", "Bo", "Cy Dunn"], ["saw", "met", "heard"]

    def sentence():
        return [*rng.choice(names).split(), rng.choice(verbs), "the", "sea", "."]

    for split, count in (("train", 40), ("dev", 20)):
        tagged = ""
        for words in (sentence() for _ in range(count)):
            for i, word in enumerate(words):
                kind = "BI"[i] + "-PER" if word[0].isupper() else "O"
                tagged += f"{word} {kind}\n"
            tagged += "\n"
        (tmp_path / split).write_text(tagged)
    text = "\n".join(" ".join(sentence()) for _ in range(60))
    (tmp_path / "text.txt").write_text(text)

    printed = execute(
        "semi_supervised_tagging",
        TRAIN="train",
        DEV="dev",
        UNLABELLED=("text.txt",),
        PRESET="tiny",
        BATCH_SIZE=8,
        STEPS=120,
        INTERVAL=60,
        SETTINGS={"ema": 0.9},
        SENTENCE="Cy Dunn met Bo .",
    )
    assert "60 sentences, 5 views" in printed["train"]
    scores = [line.split() for line in printed["scores"].splitlines()]
    assert [line[0] for line in scores] == ["tagger_alone", "tagger_cross_view"]
    # Guessing finds no name.
    assert all(float(line[line.index("f1") + 1]) > 50 for line in scores)
    # TensorFlow may have warned before of new lengths.
    tags = [line.split() for line in printed["predict"].splitlines()[-5:]]
    assert [word for _, word in tags] == ["Cy", "Dunn", "met", "Bo", "."]
    assert {tag for tag, _ in tags} <= {"B-PER", "I-PER", "E-PER", "S-PER", "O"}
    for run in ("tagger_alone", "tagger_cross_view"):
        rows = read_metrics(tmp_path / "runs" / run / "metrics.csv")
        assert [row["step"] for row in rows] == [60, 120]


def test_use_your_encoder(execute):
    printed = execute("use_your_encoder")
    assert printed["vectors"].splitlines()[0].endswith("~ A boat went out to sea.")
    assert "'generator', 'model.safetensors'" in printed["hugging-face"]
    assert printed["back"].startswith("Electra ['the', 'ship', 'left', ")
    assert printed["keras-hub"].split() == ["[0", "0", "1", "1]"]


def test_there_are_five_notebooks():
    assert [path.stem for path in NOTEBOOKS] == [
        "adapt_to_your_domain",
        "pretrain_your_language",
        "quickstart_tpu",
        "semi_supervised_tagging",
        "use_your_encoder",
    ]


@every_notebook
def test_a_notebook_is_clean(path):
    notebook = read(path)
    nbformat.validate(notebook)
    assert (notebook.nbformat, notebook.nbformat_minor) == (4, 5)
    ids = [cell.id for cell in notebook.cells]
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch("[a-z][a-z-]*", name) for name in ids)  # by hand: stable
    for cell in notebook.cells:
        assert set(cell.metadata) <= {"tags"}
        if cell.cell_type == "code":
            assert cell.outputs == [] and cell.execution_count is None
    assert set(notebook.metadata) == {"kernelspec", "language_info"}


@every_notebook
def test_a_notebook_only_calls(path):
    """What is worth a function or a class belongs in the package."""
    definitions = re.compile(r"^\s*(def|class|async|lambda)\b", re.MULTILINE)
    for cell in read(path).cells:
        if cell.cell_type == "code":
            assert not definitions.search(cell.source), cell.id


@every_notebook
def test_the_backend_is_chosen_before_keras_is_imported(path):
    sources = [c.source for c in read(path).cells if c.cell_type == "code"]
    imports = re.compile(r"^(from|import) (keras|tensorflow|jax)", re.MULTILINE)
    first = next(i for i, source in enumerate(sources) if imports.search(source))
    chosen = next(i for i, source in enumerate(sources) if "KERAS_BACKEND" in source)
    installed = next(i for i, source in enumerate(sources) if "%pip" in source)
    assert chosen < installed < first


@every_notebook
def test_what_is_installed_exists(path):
    """The tests do not install, so the line is compared with setup.py."""
    (install,) = (c.source for c in read(path).cells if c.id == "install")
    extras = re.findall(r"{SOURCE}\[(\w+)\]", install)
    assert extras == ["tfds"]
    setup = (ROOT / "setup.py").read_text()
    assert all(f'"{extra}": ' in setup for extra in extras)
