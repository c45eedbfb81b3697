"""Counts the kinds of bad input and those that end as they must.

python tests/hostile/bad_input.py
"""

import resource
import shutil
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

#: On a busy machine; most take milliseconds.
MOST_SECONDS = 20
MOST_BYTES = 2 << 30


def refusal(load, path):
    """Returns the message of the `ValueError` that `load(path)` raises.

    Raises:
        AssertionError: It raises none, or one of another kind, of several lines or
            without the path, or takes too much time or memory.
    """
    start, before = time.monotonic(), peak()
    try:
        load(path)
    except Exception as error:
        assert isinstance(error, ValueError), repr(error)
        message = str(error)
    else:
        raise AssertionError("it was loaded")
    assert str(path) in message and "\n" not in message and len(message) < 1200, message
    assert time.monotonic() - start < MOST_SECONDS, message
    assert peak() - before < MOST_BYTES, message
    return message


def peak():
    """Returns the most memory that the process has had, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main():
    folder = Path(tempfile.mkdtemp(prefix="bad-input-"))
    failed = [name for name, wrong in (*presets(folder), *checkpoints(folder)) if wrong]
    sys.exit("Wrong: " + "; ".join(failed) if failed else 0)


def presets(folder):
    """Yields the name of each bad preset and whether it ended wrongly."""
    from keras_corrupt.models import Electra
    from keras_corrupt.presets import load_preset
    from keras_corrupt.tokenizers import SPECIAL_TOKENS, WordPieceTokenizer
    from tests.conftest import SIZES
    from tests.hostile.preset_cases import CASES, bad_preset

    tokenizer = WordPieceTokenizer([*SPECIAL_TOKENS, "the", "cat"])
    Electra(**SIZES, tokenizer=tokenizer).save_to_preset(folder / "good")
    results = []
    for name, make in CASES.items():
        with bad_preset(folder / "good", folder, make) as directory:
            results.append(outcome(name, lambda d=directory: refusal(load_preset, d)))
    print(f"Bad presets: {count(results)} end in one line.")
    return results


def checkpoints(folder):
    """Yields the name of each damaged checkpoint and whether it ended wrongly."""
    from keras_corrupt.models import Electra
    from keras_corrupt.training import AdamW, Checkpoints
    from tests.conftest import SIZES
    from tests.hostile.checkpoint_cases import CASES

    model = Electra(**SIZES)
    model.compile(AdamW(1e-3), jit_compile=False)
    model.optimizer.build(model.trainable_variables)
    saved = Checkpoints(folder / "checkpoints")
    results = []
    for name, make in CASES.items():
        saved.save(model, 1)
        saved.save(model, 2)
        make(saved.path(2))
        results.append(outcome(name, lambda: restored(saved, model)))
        shutil.rmtree(saved.directory)
    print(f"Damaged checkpoints: {count(results)} end in the one before.")
    return results


def restored(saved, model):
    step = saved.restore(model)
    assert step == 1, f"restored step {step}"
    return "the one before"


def outcome(name, check):
    """Prints a case and what came of it; returns it and whether that is wrong."""
    try:
        text, wrong = check(), False
    except Exception as error:
        text, wrong = f"WRONG: {error!r}", True
    print(f"{name}\n    {text}")
    return name, wrong


def count(results):
    return f"{sum(not wrong for _, wrong in results)} of {len(results)}"


if __name__ == "__main__":
    main()
