"""Kills a journey with SIGKILL, again and again, and compares what comes of it.

    python tests/hostile/kills.py 200

A process prepares a corpus, pretrains with a checkpoint every two steps, saves a preset
and fine-tunes it (`journey.py`). It is killed at a random moment and started again,
until it ends by itself; then every array, table and result must be, bit for bit, that
of a journey that was left alone, and nothing else may lie there. KERAS_BACKEND chooses
the backend. The first line that is wrong ends the program with the code 1.
"""

import argparse
import contextlib
import csv
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.hostile.journey import write_inputs

JOURNEY = Path(__file__).with_name("journey.py")
#: Written for people, or with the time in it.
NOT_COMPARED = {".png", ".md"}


class Journey:
    """A journey in a process of its own, which goes on with what is in `folder`."""

    def __init__(self, folder):
        self.log = open(folder.with_suffix(".log"), "w+")
        cache = str(folder.parent / "compiled")
        self.started = time.monotonic()
        self.process = subprocess.Popen(
            [sys.executable, str(JOURNEY)],
            cwd=folder,
            env=os.environ | {"JAX_COMPILATION_CACHE_DIR": cache},
            stdout=self.log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def text(self):
        self.log.seek(0)
        return self.log.read()

    def imported(self):
        """Waits until the process works with files; returns the seconds it took."""
        while "Imported." not in self.text() and self.process.poll() is None:
            time.sleep(0.05)
        return time.monotonic() - self.started

    def trains(self, checkpoints):
        """Waits for the next checkpoint, if there is one."""
        known = set(checkpoints.glob("*.npz"))
        while self.process.poll() is None and "Curves:" not in self.text():
            if set(checkpoints.glob("*.npz")) - known:
                break
            time.sleep(0.01)

    def end(self, seconds=None):
        """Waits so long, then kills; returns the code and the last line printed."""
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        with contextlib.suppress(ProcessLookupError):  # workers that it left
            os.killpg(self.process.pid, signal.SIGKILL)
        lines = self.text().splitlines()
        self.log.close()
        return self.process.returncode, lines[-1] if lines else ""


def contents(folder):
    """Returns all that a journey left, file by file, without times."""
    found = {}
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        name = str(path.relative_to(folder))
        if path.suffix in NOT_COMPARED or "/tensorboard/" in name:
            continue
        if path.suffix == ".safetensors":
            content = load_file(path)
        elif path.suffix == ".npz":
            with np.load(path) as archive:
                content = dict(archive)
        elif path.suffix == ".json":
            content = without_times(json.loads(path.read_text()))
        elif path.suffix == ".csv":
            with open(path, newline="") as file:
                content = [numbers(without_times(row)) for row in csv.DictReader(file)]
        else:
            content = path.read_bytes()
        found[name] = content
    return found


def numbers(row):
    """Returns a row of a table, in which 512 and 512.0 are the same."""
    found = {}
    for name, text in row.items():
        with contextlib.suppress(ValueError):
            text = float(text)
        found[name] = text
    return found


def without_times(value):
    if isinstance(value, list):
        return [without_times(part) for part in value]
    if isinstance(value, dict):
        return {k: without_times(v) for k, v in value.items() if "second" not in k}
    return value


def differences(ours, expected):
    """Yields the names of what is not as expected."""
    for name in sorted(ours.keys() | expected.keys()):
        a, b = ours.get(name), expected.get(name)
        if isinstance(a, list) and isinstance(b, list):
            a, b = dict(enumerate(a)), dict(enumerate(b))
        if type(a) is not type(b):
            yield name
        elif isinstance(a, dict):
            yield from (f"{name}: {part}" for part in differences(a, b))
        elif not (np.array_equal(a, b) if isinstance(a, np.ndarray) else a == b):
            yield name


def clear(folder):
    """Removes what a journey left, so that the next one begins anew."""
    for name in ("run", "tuned"):
        shutil.rmtree(folder / name)


def main(kills, seed):
    draw = random.Random(seed)
    parent = Path(tempfile.mkdtemp(prefix="kills-"))
    print(f"In {parent}, seed {seed}.", flush=True)
    folder = parent / "journey"
    folder.mkdir()
    write_inputs(folder)
    alone = Journey(folder)
    start_up = alone.imported()
    code, line = alone.end()
    if code:
        sys.exit(f"The journey that was left alone ended with {code}: {line}")
    work = time.monotonic() - alone.started - start_up
    expected = contents(folder)
    print(f"Left alone: {start_up:.0f} s to import, {work:.0f} s of work.", flush=True)

    killed = rounds = 0
    clear(folder)
    while killed < kills or any(folder.glob("run")):
        journey = Journey(folder)
        moment = draw.random()
        if killed == kills:
            seconds = None
        elif moment < 0.1:
            seconds = draw.random() * start_up
        elif moment < 0.5:
            journey.imported()
            seconds = draw.random() * work * draw.choice((0.02, 0.1, 0.4))
        else:  # training, which is short
            journey.trains(folder / "run" / "checkpoints")
            seconds = draw.random() * draw.choice((0.1, 1.0))
        code, line = journey.end(seconds)
        if code == -signal.SIGKILL:
            killed += 1
            print(f"Kill {killed}, after: {line[:100]}", flush=True)
            continue
        wrong = [f"code {code}: {line}"] if code else []
        wrong = wrong or list(differences(contents(folder), expected))
        if wrong:
            sys.exit(f"{folder} after {killed} kills: {'; '.join(wrong[:5])}")
        rounds += 1
        print(f"Round {rounds} ended as if left alone.", flush=True)
        clear(folder)
    print(f"{killed} kills in {rounds} rounds lost and changed nothing.")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("kills", type=int)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    main(arguments.kills, arguments.seed)
