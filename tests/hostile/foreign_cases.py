"""Other libraries' directories that are wrong: name -> what makes them so."""

import os
import pickle
import shutil
from pathlib import Path

import h5py
import numpy as np
import tensorflow as tf
from safetensors.numpy import load_file, save_file

from keras_corrupt.convert.conversion import convert
from keras_corrupt.models import MaskedLM
from tests.conftest import SIZES
from tests.hostile.preset_cases import config_text, config_with, replace

HUGGING_FACE = Path(__file__).parents[1] / "fixtures" / "hugging_face" / "electra"
#: Format -> name of a case -> function of a directory of that format.
CASES = {"hugging_face": {}, "keras_hub": {}, "model_garden": {}, "google_tf1": {}}


class Bomb:
    def __reduce__(self):
        return os.mkdir, ("bombed",)


def good_ones(folder):
    """Makes a good directory of each format; returns format -> directory."""
    found = {"hugging_face": folder / "hugging_face", "google_tf1": folder / "tf1"}
    shutil.copytree(HUGGING_FACE, found["hugging_face"])
    model = MaskedLM(SIZES["discriminator"] | {"vocabulary_size": 120})
    model.save_to_preset(folder / "preset")
    for to in ("keras_hub", "model_garden"):
        found[to] = folder / to
        convert(folder / "preset", found[to], to, approximate_gelu=True)
    found["google_tf1"].mkdir()
    write_tf1(found["google_tf1"], {"bert/embeddings/word_embeddings": (120, 12)})
    return found


def write_tf1(folder, shapes):
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        for name, shape in shapes.items():
            tf.compat.v1.get_variable(name, shape)
        session.run(tf.compat.v1.global_variables_initializer())
        tf.compat.v1.train.Saver().save(session, str(folder / "model.ckpt"))


def remade(**shapes):
    """Writes a checkpoint of TensorFlow 1 anew; `__` stands for a slash."""

    def make(folder):
        shutil.rmtree(folder)
        folder.mkdir()
        write_tf1(folder, {n.replace("__", "/"): s for n, s in shapes.items()})

    return make


def arrays_with(change):
    def make(folder):
        arrays = load_file(folder / "model.safetensors")
        save_file(change(arrays), folder / "model.safetensors")

    return make


def pickled(folder):
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps({"a": Bomb()}))


def header(size, text=b""):
    def make(folder):
        content = size.to_bytes(8, "little") + text
        (folder / "model.safetensors").write_bytes(content)

    return make


def h5_with(change):
    def make(folder):
        with h5py.File(folder / "model.weights.h5", "a") as file:
            change(file)

    return make


def h5_array(change):
    """Puts something else in the place of one array: `change(file, name, array)`."""

    def change_file(file):
        # `visititems` ends at the first that is not `None`.
        name = file.visititems(lambda n, x: n if hasattr(x, "shape") else None)
        array = file[name][()]
        del file[name]
        change(file, name, array)

    return h5_with(change_file)


def h5_nested(file):
    for _ in range(2000):
        file = file.create_group("g")


def h5_virtual(file, name, array):
    layout = h5py.VirtualLayout(array.shape, array.dtype)
    layout[:] = h5py.VirtualSource("other.h5", "x", array.shape)
    file.create_virtual_dataset(name, layout)


def cut(name, size):
    return lambda folder: os.truncate(folder / name, size)


KINDS = ("missing", "noise", "a pipe", "an endless device")
_FILES = {
    "hugging_face": ("model.safetensors", "tokenizer.json"),
    "keras_hub": ("model.weights.h5",),
    "model_garden": ("encoder.index", "encoder.data-00000-of-00001"),
    "google_tf1": ("model.ckpt.index",),
}
for _format, _files in _FILES.items():
    for _file in _files:
        for _kind in KINDS:
            # Without its tokenizer, or a part, a directory is another good one.
            if (_file, _kind) != ("tokenizer.json", "missing"):
                CASES[_format][f"{_file} is {_kind}"] = lambda d, f=_file, k=_kind: (
                    replace(d / f, k)
                )

_HUGE = b'{"a":{"dtype":"F32","shape":[99999999999],"data_offsets":[0,399999999996]}}'
CASES["hugging_face"] |= {
    "a pickle": pickled,
    "a header of 10 GB": header(10 << 30),
    "more than the file holds": header(len(_HUGE), _HUGE),
    "config.json is half of one": config_text('{"model_type": "electra"'),
    "vocabulary of 10 billion": config_with(vocab_size=10**10),
    "10 million layers": config_with(num_hidden_layers=10**7),
    "sizes that are none": config_with(hidden_size=-1, num_attention_heads=0),
    "heads that do not divide": config_with(num_attention_heads=5),
    "a rate of text": config_with(hidden_dropout_prob="x"),
    "an activation of code": config_with(hidden_act="__import__('os')"),
    "an unknown model": config_with(model_type="x", auto_map={"AutoModel": "evil.M"}),
    "numbers that are whole": arrays_with(
        lambda a: {n: x.astype("int64") for n, x in a.items()}
    ),
    "another shape": arrays_with(lambda a: {n: x[:-1] for n, x in a.items()}),
    "no array": arrays_with(lambda a: {}),
    "infinity": arrays_with(lambda a: {n: x * np.inf for n, x in a.items()}),
}
CASES["keras_hub"] |= {
    "another class": config_with(registered_name="os>system"),
    "a config of code": config_with(config={"class_name": "Lambda"}),
    "a vocabulary of 10 billion": config_with(config__vocab_size=10**10),
    "10 million layers": config_with(config__num_layers=10**7),
    "more layers than arrays": config_with(config__num_layers=2),
    "another file's numbers": h5_with(
        lambda f: f.__setitem__("more", h5py.ExternalLink("/etc/x.h5", "x"))
    ),
    "a link": h5_with(lambda f: f.__setitem__("more", h5py.SoftLink("/layers"))),
    "a group in itself": h5_with(lambda f: f["layers"].__setitem__("more", f["/"])),
    "groups in a circle": h5_with(lambda f: f.__setitem__("more", f["layers"])),
    "groups nested deeply": h5_with(h5_nested),
    "a terabyte of nothing": h5_with(lambda f: f.create_dataset("x", (1 << 38,), "f4")),
    "NaN": h5_array(lambda f, n, a: f.create_dataset(n, data=a * np.float32("nan"))),
    "whole numbers": h5_array(lambda f, n, a: f.create_dataset(n, data=a.astype(int))),
    "text": h5_array(lambda f, n, a: f.create_dataset(n, data=["x"] * len(a))),
    "another shape": h5_array(lambda f, n, a: f.create_dataset(n, data=a[:-1])),
    "no array": h5_array(lambda f, n, a: None),
    "compressed numbers": h5_array(
        lambda f, n, a: f.create_dataset(
            n, (len(a) * 1000,), "f4", chunks=True, compression="gzip"
        )
    ),
    "numbers of another file": h5_array(
        lambda f, n, a: f.create_dataset(
            n, a.shape, "f4", external=[("other.bin", 0, a.nbytes)]
        )
    ),
    "numbers of other files": h5_array(h5_virtual),
    "a group for an array": h5_array(lambda f, n, a: f.create_group(n)),
    "a type for an array": h5_array(lambda f, n, a: f.__setitem__(n, np.dtype("f4"))),
    "weights cut off": cut("model.weights.h5", 9000),
}
CASES["model_garden"] |= {
    "weights cut off": cut("encoder.data-00000-of-00001", 900),
    "an index cut off": cut("encoder.index", 500),
}
CASES["google_tf1"] |= {
    "nothing but a table": lambda folder: None,
    "other names": remade(albert__embeddings__word_embeddings=(8, 4)),
    "a table of three axes": remade(bert__embeddings__word_embeddings=(8, 4, 2)),
    "several checkpoints": lambda d: shutil.copy(
        d / "model.ckpt.index", d / "b.ckpt.index"
    ),
}
