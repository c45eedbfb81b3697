"""Presets that are wrong, each in its own way: name -> what makes it so."""

import contextlib
import json
import os
import shutil

import numpy as np
from safetensors.numpy import load_file, save_file

#: Case -> function of the preset's directory.
CASES = {}


def _case(name, make):
    assert name not in CASES
    CASES[name] = make


# === Any file in place of another ===


def replace(path, kind):
    """Puts something in a file's place that is not that file."""
    path.unlink()
    if kind == "a pipe":
        os.mkfifo(path)
    elif kind == "a directory":
        path.mkdir()
    elif kind == "an endless device":
        path.symlink_to("/dev/zero")
    elif kind == "a dangling link":
        path.symlink_to("nowhere")
    elif kind == "a link to itself":
        path.symlink_to(path.name)
    elif kind == "empty":
        path.touch()
    elif kind == "a terabyte of holes":
        path.touch()
        os.truncate(path, 1 << 40)
    elif kind == "noise":
        path.write_bytes(np.random.default_rng(0).bytes(5000))
    else:
        assert kind == "missing"


KINDS = (
    *("missing", "a pipe", "a directory", "an endless device", "a dangling link"),
    *("a link to itself", "empty", "a terabyte of holes", "noise"),
)
FILES = (
    *("config.json", "discriminator/model.safetensors"),
    *("tokenizer.json", "tokenizer_settings.json", "vocab.txt"),
)
#: What loading does not read, so that it may be anything that is there.
UNREAD = {
    ("tokenizer.json", kind)
    for kind in ("a pipe", "a directory", "an endless device", "empty", "noise")
} | {("tokenizer.json", "a terabyte of holes")}
for _file in FILES:
    for _kind in KINDS:
        if (_file, _kind) not in UNREAD:
            _case(f"{_file} is {_kind}", lambda d, f=_file, k=_kind: replace(d / f, k))


# === config.json ===


def config_text(text):
    return lambda directory: (directory / "config.json").write_text(text)


def config_with(**changes):
    """Changes entries of the file, or by `a__b` those of an entry's dict."""

    def make(directory):
        path = directory / "config.json"
        content = json.loads(path.read_text())
        for name, value in changes.items():
            *parents, last = name.split("__")
            place = content
            for parent in parents:
                place = place[parent]
            place[last] = value
        path.write_text(json.dumps(content))

    return make


for _name, _text in {
    "half of an object": '{"format": ',
    "a list": "[]",
    "a number": "3",
    "null": "null",
    "nested too deeply": "[" * 100_000,
    "an object without entries": "{}",
    "a number of many digits": "9" * 10_000,
}.items():
    _case(f"config.json is {_name}", config_text(_text))
for _name, _values in {
    "format": ("keras_corrupt/1", "keras_corrupt/99", None, [], 2),
    "class": ("Nothing", "MaskedLM", "os>system", None, [], 3, ""),
    "tokenizer": ("0" * 64, 3, None),
    "config": (None, [], "text", {}),
    "config__dtype": ("float3", {"module": "os", "class_name": "system"}, [], 7),
    "config__name": ("a/b", 3, []),
    "config__seed": ("x", 10**30, [1]),
    "config__mask_rate": (float("nan"), float("inf"), 0, 1, -1, "0.1", [], None),
    "config__masking": ("none", 3),
    "config__rtd_weight": (float("nan"), -1, "x", []),
    "config__tied_embeddings": ("nothing", []),
    "config__unknown_argument": (1,),
    "config__tokenizer": ({},),
    "config__some_layers": (10**6, 2.5),
    "config__discriminator": (None, [], "text", 3, {}),
    "config__generator": (None, [], "text", 3),
    "config__discriminator__tied_to": ("os", {}),
    "config__discriminator__attention": ("sideways", [], 3),
    "config__discriminator__dropout": ("x", [], 2, -1),
    "config__discriminator__initializer_range": ("x", []),
    "config__discriminator__relative_positions": (
        *({}, [], 3, {"num_buckets": 3, "max_distance": 9}),
        {"num_buckets": 10**12, "max_distance": 10**13},
        {"num_buckets": "xxxx" * 1000, "max_distance": 9},
    ),
}.items():
    for _value in _values:
        _case(f"{_name} is {str(_value)[:60]!r}", config_with(**{_name: _value}))
for _network in ("discriminator", "generator"):
    for _size in (
        *("vocabulary_size", "num_layers", "hidden_size", "intermediate_size"),
        *("num_heads", "embedding_size", "max_length", "num_segments"),
    ):
        # The generator's embeddings are the discriminator's.
        if _network == "generator" and _size not in (
            *("num_layers", "hidden_size", "intermediate_size"),
        ):
            continue
        for _value in (1, -1, 10**6, 10**12, 10**4000, 2.5, True, "2", [2]):
            if (_size, _value) in (("num_heads", 1), ("num_heads", True)):
                continue
            _case(
                f"{_network}'s {_size} is {str(_value)[:20]!r}",
                config_with(**{f"config__{_network}__{_size}": _value}),
            )


# === Weights ===


def weights_with(change, network="discriminator"):
    def make(directory):
        path = directory / network / "model.safetensors"
        arrays = load_file(path)
        change(arrays)
        save_file(arrays, path)

    return make


def array_with(change):
    """Changes the bias of one matrix."""

    def change_arrays(arrays):
        name = "encoder/layers_0/intermediate/bias"
        arrays[name] = change(arrays[name])

    return weights_with(change_arrays)


for _name, _change in {
    "NaN": lambda a: a * np.float32("nan"),
    "infinity": lambda a: a + np.float32("inf"),
    "too large numbers": lambda a: np.full_like(a, 1e300, np.float64),
    "whole numbers": lambda a: a.astype(np.int32),
    "bytes": lambda a: a.astype(np.uint8),
    "truth values": lambda a: a.astype(bool),
    "complex numbers": lambda a: a.astype(np.complex64),
    "another shape": lambda a: a[:-1],
    "one more axis": lambda a: a[None],
    "nothing": lambda a: a[:0],
}.items():
    _case(f"weights hold {_name}", array_with(_change))
_case("weights lack an array", weights_with(lambda a: a.pop(sorted(a)[0])))
_case("weights have an array more", weights_with(lambda a: a.update(x=np.ones(3))))
_case("weights have no array", weights_with(lambda a: a.clear()))


@lambda make: _case("weights of the other network", make)
def _(directory):
    source = directory / "generator" / "model.safetensors"
    shutil.copy(source, directory / "discriminator" / "model.safetensors")


def weights_bytes(change):
    def make(directory):
        path = directory / "discriminator" / "model.safetensors"
        path.write_bytes(change(path.read_bytes()))

    return make


def safetensors(header, content=b""):
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + content


TERA = 1 << 42
for _name, _change in {
    "end too early": lambda b: b[:-100],
    "end too late": lambda b: b + bytes(100),
    "end in the header": lambda b: b[:200],
    "promise a large header": lambda b: (1 << 40).to_bytes(8, "little") + b[8:],
    "promise 4 TiB": lambda b: safetensors(
        {"x": {"dtype": "F32", "shape": [TERA], "data_offsets": [0, 4 * TERA]}}
    ),
    "have a negative shape": lambda b: safetensors(
        {"x": {"dtype": "F32", "shape": [-1], "data_offsets": [0, 4]}}, bytes(4)
    ),
    "have a type that is none": lambda b: safetensors(
        {"x": {"dtype": "O8", "shape": [1], "data_offsets": [0, 8]}}, bytes(8)
    ),
    "have a header that is a list": lambda b: safetensors([]),
}.items():
    _case(f"weights {_name}", weights_bytes(_change))


# === Tokenizer ===


def file_text(name, change):
    def make(directory):
        path = directory / name
        path.write_text(change(path.read_text()))

    return make


for _name, _change in {
    "has a token more": lambda t: t + "more\n",
    "has a token less": lambda t: t.rsplit("\n", 2)[0] + "\n",
    "repeats a token": lambda t: t + "the\n",
    "has ten million lines": lambda t: t + "x\n" * 10_000_000,
    "lacks the special tokens": lambda t: t.replace("[MASK]", "mask"),
    "has its lines turned round": lambda t: "\n".join(reversed(t.split("\n"))),
    "has an empty line": lambda t: t.replace("the\n", "\n"),
}.items():
    _case(f"vocab.txt {_name}", file_text("vocab.txt", _change))
for _name, _change in {
    "a list": lambda t: "[]",
    "nested too deeply": lambda t: "[" * 50_000,
    "of an unknown kind": lambda t: t.replace("wordpiece", "os"),
    "of another kind": lambda t: t.replace("wordpiece", "unigram"),
    "with other flags": lambda t: t.replace("true", "false"),
    "with other roles": lambda t: t.replace("[MASK]", "[PAD]"),
    "without roles": lambda t: t.replace("roles", "rolls"),
}.items():
    _case(
        f"tokenizer_settings.json is {_name}",
        file_text("tokenizer_settings.json", _change),
    )


# === The directory ===


@lambda make: _case("the preset is empty", make)
def _(directory):
    shutil.rmtree(directory)
    directory.mkdir()


@lambda make: _case("the preset is missing", make)
def _(directory):
    shutil.rmtree(directory)


for _kind in ("a pipe", "an endless device", "a dangling link", "a link to itself"):

    def _make(directory, kind=_kind):
        shutil.rmtree(directory)
        directory.touch()
        replace(directory, kind)

    _case(f"the preset is {_kind}", _make)


@contextlib.contextmanager
def bad_preset(good, folder, make):
    """Makes a bad preset of a good one, and removes it again."""
    directory = folder / "preset"
    shutil.copytree(good, directory)
    make(directory)
    try:
        yield directory
    finally:
        if directory.is_symlink() or not directory.is_dir():
            directory.unlink(missing_ok=True)
        else:
            shutil.rmtree(directory)
