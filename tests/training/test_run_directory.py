"""A directory of a run has one writer, where its system has locks."""

import errno
import os

import pytest

from keras_corrupt.files import lock
from keras_corrupt.training.run_directory import locked


@pytest.mark.parametrize("of", ["system", "file system"])
def test_without_file_locks_it_says_so(of, tmp_path, monkeypatch, capsys):
    def refuse(*_):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    if of == "system":
        monkeypatch.setattr(lock, "fcntl", None)
    else:
        monkeypatch.setattr(lock.fcntl, "flock", refuse)
    with locked(tmp_path), locked(tmp_path):
        pass
    assert "nothing keeps a second run out of" in capsys.readouterr().err
