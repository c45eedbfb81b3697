"""Checkpoints that are damaged, each in its own way: name -> what makes it so."""

import io
import json
import shutil
import zipfile

import numpy as np

from tests.hostile.preset_cases import KINDS, replace

#: Case -> function of the checkpoint's path.
CASES = {f"it is {kind}": lambda p, k=kind: replace(p, k) for kind in KINDS}
del CASES["it is missing"]


def _bytes(change):
    return lambda path: path.write_bytes(change(path.read_bytes()))


def flipped(place):
    """Turns a byte round, counted as a fraction of the file."""

    def change(content):
        content = bytearray(content)
        content[int(place * (len(content) - 1))] ^= 0xFF
        return bytes(content)

    return _bytes(change)


# Bytes that are read: nothing reads the sizes in front of an array.
for _place in (0, 0.001, 0.15, 0.3, 0.5, 0.7, 0.9, 0.99):
    CASES[f"a byte is flipped at {_place}"] = flipped(_place)
for _size in (0.001, 0.5, 0.95, 0.9999):
    CASES[f"it ends at {_size}"] = _bytes(lambda c, s=_size: c[: int(s * len(c))])


def _members(change):
    """Changes the dict of what is in the archive: name -> bytes."""

    def make(path):
        with zipfile.ZipFile(path) as archive:
            members = {name: archive.read(name) for name in archive.namelist()}
        change(members)
        with zipfile.ZipFile(path, "w") as archive:
            for name, content in members.items():
                archive.writestr(name, content)

    return make


def _array(array):
    file = io.BytesIO()
    np.save(file, array, allow_pickle=True)
    return file.getvalue()


def _description(change):
    def change_members(members):
        text = bytes(np.load(io.BytesIO(members["description.npy"])))
        text = json.dumps(change(json.loads(text))).encode()
        members["description.npy"] = _array(np.frombuffer(text, np.uint8))

    return _members(change_members)


_NAME = "model/discriminator/head/classifier/kernel.npy"


def _header(shape, dtype="<f4"):
    file = io.BytesIO()
    header = {"descr": dtype, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, header)
    return file.getvalue()


for _name, _change in {
    "lacks an array": lambda m: m.pop(_NAME),
    "has an array more": lambda m: m.update({"more.npy": _array(np.ones(3))}),
    "has an array of another shape": lambda m: m.update({_NAME: _array(np.ones(3))}),
    "has an array of another type": lambda m: m.update(
        {_NAME: _array(np.load(io.BytesIO(m[_NAME])).astype("float64"))}
    ),
    "has a list for an array": lambda m: m.update(
        {_NAME: _array(np.array([[1], [2, 3]], object))}
    ),
    "has text for an array": lambda m: m.update({_NAME: b"text"}),
    "has nothing for an array": lambda m: m.update({_NAME: b""}),
    "promises 4 TiB": lambda m: m.update({_NAME: _header((1 << 40,))}),
    "promises a negative shape": lambda m: m.update({_NAME: _header((-1,))}),
    "lacks its description": lambda m: m.pop("description.npy"),
    "is empty": lambda m: m.clear(),
}.items():
    CASES[f"it {_name}"] = _members(_change)
for _name, _change in {
    "a list": lambda d: list(d),
    "a number": lambda d: 3,
    "empty": lambda d: {},
    "of another step": lambda d: {**d, "step": 7},
    "of no step": lambda d: {**d, "step": None},
}.items():
    CASES[f"its description is {_name}"] = _description(_change)


def _bare_array(path):
    with open(path, "wb") as file:
        np.save(file, np.ones(3))


def _compressed(path):
    other = path.with_suffix(".other")
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(other, "w") as archive:
        for name in old.namelist():
            archive.writestr(name, old.read(name)[:10], zipfile.ZIP_DEFLATED)
    shutil.move(other, path)


CASES["it is a bare array"] = _bare_array
CASES["its arrays end too early"] = _compressed
