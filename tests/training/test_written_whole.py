"""What a run writes is there complete, or as it was, at whatever call it is killed."""

import itertools
import os

import numpy as np
import pytest

from keras_corrupt.files import whole
from keras_corrupt.training import Checkpoints, checkpoint

OPEN, FSYNC, REPLACE, UNLINK = open, os.fsync, os.replace, os.unlink


class Killed(BaseException):
    """Ends a process: whatever it calls from then on does nothing."""


class File:
    """A file that is written by half if the process is killed meanwhile."""

    def __init__(self, disk, file):
        self.disk, self.file = disk, file

    def write(self, data):
        self.disk.call(self.file.write, data[: len(data) // 2])
        return len(data) // 2 + self.file.write(data[len(data) // 2 :])

    def __getattr__(self, name):
        return getattr(self.file, name)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.file.close()


class Disk:
    """The calls that change what is on the disk, of which the last one is a kill."""

    def __init__(self, last):
        self.left, self.synced = last, {}

    def call(self, function, *args):
        if self.left < 0:
            raise Killed
        result = function(*args)
        self.left -= 1
        if self.left < 0:
            raise Killed
        return result

    def open(self, path, mode, **options):
        return File(self, self.call(lambda: OPEN(path, mode, **options)))

    def fsync(self, descriptor):
        self.call(FSYNC, descriptor)
        status = os.fstat(descriptor)
        self.synced[status.st_ino] = status.st_size

    def replace(self, source, target):
        status = os.stat(source)
        # A computer that stops may have renamed, but not written, what is not synced.
        assert self.synced.get(status.st_ino) == status.st_size > 0
        self.call(REPLACE, source, target)

    def unlink(self, path):
        self.call(UNLINK, path)


class Text:
    """A text file: its contents tell which one it is."""

    def __init__(self, folder):
        self.path = folder / "run.json"

    def write(self, number):
        whole.write_whole(self.path, f"{number}\n" * 3)

    def read(self):
        numbers = self.path.read_text().split()
        assert numbers == numbers[:1] * 3
        return int(numbers[0])


class Saved:
    """Checkpoints of which one is kept: the arrays tell which one it is."""

    def __init__(self, folder):
        self.checkpoints = Checkpoints(folder, keep=1)

    def write(self, number):
        self.checkpoints.save({"a": np.full(9, number), "b": np.eye(3)}, number)

    def read(self):
        found = []
        for step in self.checkpoints.steps():  # those that are complete
            *_, arrays = checkpoint._read(self.checkpoints.path(step), step)
            assert arrays["a"].tolist() == [step] * 9
            found.append(step)
        return found[-1]


@pytest.mark.parametrize("kind", [Text, Saved])
def test_a_kill_at_any_call_leaves_the_old_or_the_new(kind, monkeypatch, tmp_path):
    monkeypatch.setattr(checkpoint, "state", dict)
    kept = kind(tmp_path)
    kept.write(1)
    for last in itertools.count():
        disk = Disk(last)
        with monkeypatch.context() as patch:
            patch.setattr(whole, "open", disk.open, raising=False)
            for name in ("fsync", "replace", "unlink"):
                patch.setattr(os, name, getattr(disk, name))
            try:
                kept.write(last + 2)
            except Killed:
                assert kept.read() in (last + 1, last + 2)
            else:
                break
        kept.write(last + 2)
        assert kept.read() == last + 2
        assert len(list(tmp_path.iterdir())) == 1  # Nothing of the kill is left.
    assert kept.read() == last + 2
    assert last >= 4  # The calls: to open, write, sync and rename at least.
