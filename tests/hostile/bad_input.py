"""Counts the kinds of bad input and those that end in one clear line.

python tests/hostile/bad_input.py
"""

import resource
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

#: On a busy machine; most take milliseconds.
MOST_SECONDS = 20
MOST_BYTES = 2 << 30


def refusal(load, path):
    """Returns the message of the `ValueError` that `load()` raises.

    Raises:
        AssertionError: It raises none, or one of another kind, of several lines or
            without the path, or takes too much time or memory.
    """
    start, before = time.monotonic(), peak()
    try:
        load()
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
    from keras_corrupt.downstream.model import load_preset
    from keras_corrupt.models import Electra
    from keras_corrupt.tokenizers import SPECIAL_TOKENS, WordPieceTokenizer
    from tests.conftest import SIZES
    from tests.hostile.preset_cases import CASES, HDF5_CASES, VERSION_1, bad_preset

    folder = Path(tempfile.mkdtemp(prefix="bad-input-"))
    tokenizer = WordPieceTokenizer([*SPECIAL_TOKENS, "the", "cat"])
    Electra(**SIZES, tokenizer=tokenizer).save_to_preset(folder / "good")
    cases = [(folder / "good", *case) for case in CASES.items()]
    cases += [(VERSION_1, *case) for case in HDF5_CASES.items()]
    failed = 0
    for good, name, make in cases:
        with bad_preset(good, folder, make) as directory:
            try:
                result = refusal(lambda d=directory: load_preset(d), directory)
            except AssertionError as error:
                failed += 1
                result = f"WRONG: {error}"
        print(f"{name}\n    {result.replace(str(folder), '')}")
    print(f"{len(cases)} kinds of bad presets; {len(cases) - failed} end in one line.")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
