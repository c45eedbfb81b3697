"""JAX alone: no TensorFlow in the environment."""

import json
import os
import subprocess
import sys
from pathlib import Path

from keras_corrupt.downstream import TextClassifier
from keras_corrupt.tasks import miniature
from keras_corrupt.tokenizers import wordpiece
from tests.integration import run_without_tensorflow
from tests.integration.run_without_tensorflow import PREPARE, ROOT, digest, run


def test_everything_works_on_jax_alone(tmp_path, monkeypatch):
    text = tmp_path / "text.txt"
    lines = [miniature.sentence(7 * n % 31) for n in range(600)]
    text.write_text("\n\n".join("\n".join(lines[n : n + 6]) for n in range(594)))
    ran = subprocess.run(
        [sys.executable, run_without_tensorflow.__file__, text, tmp_path],
        env=os.environ | {"KERAS_BACKEND": "jax", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert ran.returncode == 0, ran.stderr
    assert "<because 0." in ran.stdout
    assert ran.stdout.count("Continuing at step 3") == 1
    (row,) = json.loads((tmp_path / "text" / "results.json").read_text())
    (result,) = row["results"]
    assert 0 <= result["score"] <= 100
    # The fine-tuned model predicts here, by TensorFlow, as it did there.
    (table,) = Path(result["folder"], "predictions").iterdir()
    _, *lines = (line.split("\t") for line in table.read_text().splitlines())
    model = TextClassifier.from_preset(f"{result['folder']}/preset")
    sentences = [miniature.sentence(int(number)) for number, _ in lines]
    assert model.predictions(sentences) == [label for _, label in lines]
    stopped, continued = (tmp_path / "run" / "tensorboard").glob("*tfevents*")
    assert b"val_mlm_loss" in stopped.read_bytes() + continued.read_bytes()

    # Here TensorFlow is: the same examples in the same order, bit for bit.
    for name in ("_START", "_CALL"):  # by TensorFlow Text at once
        monkeypatch.setattr(wordpiece, name, 0)
    run(f"{PREPARE} --corpus {text} --output {tmp_path}/here")
    for name in ("train-00000.tfrecord", "validation.tfrecord", "vocab.txt"):
        written = [(tmp_path / p / name).read_bytes() for p in ("data", "here")]
        assert written[0] == written[1]
    assert digest(tmp_path / "here") == ran.stdout.split()[-1]
