"""Installs each extra of setup.py by itself and uses its feature once.

    python -m benchmarks.extras --output benchmarks/results/extras
    python -m benchmarks.extras squad tfds --python python3.12 --output /tmp/extras

Each extra gets a new virtual environment, which is removed afterwards. The table has
the versions of the extra's packages, the size of the environment and the times.
"""

import dataclasses
import json
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Annotated

import tyro

ROOT = Path(__file__).parents[1]
TEXT = "A cat sat on the mat.\n\nA dog ran to the ship.\n\n" * 50
TFDS_DATA = """
import tensorflow as tf, tensorflow_datasets as tfds
texts = open("text.txt").read().split("\\n\\n")
tfds.dataset_builders.store_as_tfds_dataset(
    "texts", version="1.0.0", data_dir="tfds",
    features=tfds.features.FeaturesDict({"text": tfds.features.Text()}),
    split_datasets={"train": tf.data.Dataset.from_tensor_slices({"text": texts})},
)
"""
PREPARE = (
    "python -m keras_corrupt.data prepare --vocabulary_size 60 "
    "--validation_fraction 0.1 --corpus"
)
TO_CSV = "mkdir folder && (echo text; grep . text.txt) > folder/train.csv"


@dataclasses.dataclass(frozen=True)
class Feature:
    """A shell command that uses what an extra brings.

    Attributes:
        command: `RECIPES` is the folder of recipes, `text.txt` a small corpus.
        printed: Pattern that the command's output must match.
        network: Whether the feature reads from a hub: without a network the command
            fails, and `printed` shows how far it gets.
    """

    command: str
    printed: str
    network: bool = False


#: Extra -> its feature.
FEATURES = {
    "beam": Feature(
        "python -m keras_corrupt.data.beam --corpus text.txt --output data "
        "--vocabulary_size 60 && python -m keras_corrupt.data show data",
        r"\[CLS\]",
    ),
    "benchmark": Feature(
        "python -c 'import gensim, keras_hub, psutil, transformers, official.nlp' && "
        f"cd {ROOT} && python -m benchmarks.finetune_speed --help",
        "usage",
    ),
    "demo": Feature(
        "keras-corrupt demo --port 7871 & curl -sf --retry 300 --retry-connrefused "
        "--retry-delay 1 --retry-max-time 300 http://127.0.0.1:7871/config; kill $!",
        "Replaced words",
    ),
    "gs": Feature(
        f"{PREPARE} 'gs://no-such-bucket/*.txt' --output data",
        "cannot be read|no such file",
        network=True,
    ),
    "hf-datasets": Feature(
        f"{TO_CSV} && {PREPARE} hf-datasets:folder --output data",
        "1 file",
    ),
    "hubs": Feature(
        "python -m keras_corrupt.convert hf://google/electra-small-discriminator out",
        r"as keras_corrupt|cannot be fetched",
        network=True,
    ),
    "jax": Feature(
        "KERAS_BACKEND=jax python RECIPES/electra_tiny.py --smoke",
        r"backend: +jax[\s\S]*detection AUC",
    ),
    "mlflow": Feature(
        "python RECIPES/electra_tiny.py --smoke --output run "
        "--mlflow sqlite:///m.db && "
        'python -c \'import mlflow; mlflow.set_tracking_uri("sqlite:///m.db"); '
        "print(sorted(mlflow.search_runs()))'",
        r"metrics\.val_loss",
    ),
    "multitask": Feature(
        "python RECIPES/finetune_multitask.py --smoke --distill --tasks CoLA RTE",
        r"\| single_to_multi \|",
    ),
    "parquet": Feature(
        f"{TO_CSV} && python -c 'from pyarrow import csv, parquet; "
        'table = csv.read_csv("folder/train.csv"); '
        'parquet.write_table(table, "text.parquet")\' && '
        f"{PREPARE} text.parquet --output data",
        "1 file",
    ),
    "parsing": Feature("python RECIPES/cvt_parsing.py --smoke", "las"),
    "runtimes": Feature(
        "python -m keras_corrupt.convert tiny_en onnx --to onnx && "
        "python -m keras_corrupt.convert tiny_en litert --to litert",
        r"as onnx\s+checked[\s\S]*as litert\s+checked",
    ),
    "s3": Feature(
        f"{PREPARE} 's3://no-such-bucket/*.txt' --output data",
        "cannot be read|no such file",
        network=True,
    ),
    "squad": Feature(
        "python RECIPES/finetune_squad.py --smoke && "
        "python -m keras_corrupt.convert tiny_en garden --to model_garden "
        "--approximate_gelu True",
        r"\| squad11 \|[\s\S]*as model_garden\s+checked",
    ),
    "test": Feature(f"cd {ROOT} && pytest -q tests/corruption", r"\d+ passed"),
    "tfds": Feature(
        f"python -c '{TFDS_DATA}' && TFDS_DATA_DIR=tfds python "
        "RECIPES/electra_tiny.py --smoke --corpus tfds:texts",
        "detection AUC",
    ),
    "translation": Feature("python RECIPES/cvt_translation.py --smoke", "bleu"),
    "wandb": Feature(
        "WANDB_MODE=offline python RECIPES/electra_tiny.py --smoke --output run "
        "--wandb tiny && ls run/wandb",
        "offline-run",
    ),
}


def try_extra(name, python):
    """Installs an extra, uses it, and returns a row of the table."""
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        (folder / "text.txt").write_text(TEXT)

        def shell(command):
            start = time.perf_counter()
            ran = subprocess.run(
                f'export PATH="{folder}/environment/bin:$PATH"\n{command}',
                shell=True,
                cwd=folder,
                executable="/bin/bash",
                capture_output=True,
                text=True,
            )
            return ran, time.perf_counter() - start

        shell(f"{python} -m venv environment")
        installed, install_s = shell(f"pip install -q -e '{ROOT}[{name}]'")
        feature = FEATURES[name]
        ran, use_s = shell(feature.command.replace("RECIPES", f"{ROOT}/recipes"))
        works = re.search(feature.printed, ran.stdout + ran.stderr, re.IGNORECASE)
        if not works or (ran.returncode and not feature.network):
            print(installed.stderr, ran.stdout, ran.stderr, sep="\n", file=sys.stderr)
            works = False
        seen = "fails"
        if works:
            seen = "as far as the network" if ran.returncode else "works"
        listed, _ = shell("pip list --format json && python --version >&2")
        return {
            "extra": name,
            "python": listed.stderr.split()[-1],
            "seen": seen,
            "versions": versions(name, json.loads(listed.stdout)),
            "size_gb": round(size(folder / "environment") / 1e9, 2),
            "install_s": round(install_s),
            "use_s": round(use_s),
        }


def versions(extra, installed):
    """Returns the extra's own packages with their versions, one string."""
    from importlib.metadata import requires

    def plain(name):
        return re.sub(r"[-_.]+", "-", name).lower()

    names = {
        plain(re.match(r"[\w.-]+", requirement)[0])
        for requirement in requires("keras-corrupt")
        if f'extra == "{extra}"' in requirement
    }
    packages = [p for p in installed if plain(p["name"]) in names]
    return ", ".join(f"{p['name']} {p['version']}" for p in packages)


def size(folder):
    """Returns the bytes of a folder's files."""
    return sum(path.lstat().st_size for path in folder.rglob("*"))


def write(rows, output):
    """Writes `extras.md` and `extras.json`."""
    output.mkdir(parents=True, exist_ok=True)
    (output / "extras.json").write_text(json.dumps(rows, indent=1) + "\n")
    lines = [
        "| " + " | ".join(map(str, line)) + " |"
        for line in [[*rows[0]], ["---"] * len(rows[0]), *map(dict.values, rows)]
    ]
    (output / "extras.md").write_text("\n".join(lines) + "\n")


def main(
    extras: Annotated[tuple[str, ...], tyro.conf.Positional] = tuple(FEATURES),
    python: str = sys.executable,
    output: Path = Path("extras"),
) -> None:
    """Tries extras and writes the table.

    Args:
        extras: Which; all if not given.
        python: Interpreter of the environments.
        output: Directory of the table.
    """
    rows = []
    for name in extras:
        rows.append(try_extra(name, shutil.which(python) or python))
        print(json.dumps(rows[-1]), flush=True)
        write(rows, output)
    if any(row["seen"] == "fails" for row in rows):
        sys.exit(1)


if __name__ == "__main__":
    tyro.cli(main, description=__doc__)
