"""Scoring, preparing, training, continuing and fine-tuning in one process, on JAX.

    KERAS_BACKEND=jax python tests/integration/run_without_tensorflow.py TEXT OUTPUT

TensorFlow cannot be imported there. The last line is a digest of batches.
"""

import contextlib
import hashlib
import importlib.abc
import re
import runpy
import shlex
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PREPARE = (
    "python -m keras_corrupt.data prepare --vocabulary_size 100 --sequence_length 32 "
    "--validation_fraction 0.1"
)


class NoTensorFlow(importlib.abc.MetaPathFinder):
    """Finds no TensorFlow, as where none is installed."""

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("tensorflow", "tensorflow_text"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def run(command):
    """Runs a command line in this process."""
    _, *arguments = shlex.split(command)
    if arguments[0] == "-m":
        sys.argv = arguments[1:]
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = [str(ROOT / arguments[0]), *arguments[1:]]
        runpy.run_path(sys.argv[0], run_name="__main__")


def digest(data):
    """Returns a hash of nine batches, which the examples and their order decide."""
    from keras_corrupt.data import make_dataset

    hashed = hashlib.sha256()
    for batch in make_dataset(data, batch_size=8, seed=3, start_step=5).take(9):
        for name in sorted(batch):
            hashed.update(batch[name].tobytes())
    return hashed.hexdigest()


@contextlib.contextmanager
def stopped_after_a_checkpoint():
    """Lets a run fail after it has written its first checkpoint."""
    from keras_corrupt.training.checkpoint import Checkpoints

    save = Checkpoints.save

    def save_and_stop(self, *args):
        save(self, *args)
        raise Stopped

    Checkpoints.save = save_and_stop
    with contextlib.suppress(Stopped):
        yield
    Checkpoints.save = save


class Stopped(Exception):
    """What ends a run."""


def main(text, output):
    sys.meta_path.insert(0, NoTensorFlow())
    readme = (ROOT / "README.md").read_text()
    run(re.search(r"^python -m keras_corrupt\.scoring .*$", readme, re.MULTILINE)[0])

    run(f"{PREPARE} --corpus {text} --output {output}/data")
    command = "python recipes/electra_tiny.py --smoke --sequence_length 32"
    training = f"{command} --data {output}/data --output {output}/run"
    with stopped_after_a_checkpoint():
        run(training)
    run(training)
    command = "python recipes/finetune_text.py --smoke"
    run(f"{command} --preset {output}/run/preset --output {output}/text")
    assert not {"tensorflow", "tensorflow_text"} & {*sys.modules}
    print(digest(f"{output}/data"))


if __name__ == "__main__":
    main(*sys.argv[1:])
