"""Examples as small files that need nothing but NumPy to read.

    python -m benchmarks.on_device.packed DATA --output PACKED

`DATA` is what `python -m keras_corrupt.data prepare` made. `PACKED` gets:

- `train_0.xz`, `train_1.xz`, ...: the examples' ids without padding, each replaced by
  its rank among all ids by frequency, as 16-bit numbers, compressed: about a byte a
  token;
- `packed.npz`: the ids by rank, the held-out examples, the length of a row;
- `tokenizer/`: the tokenizer's files.
"""

import dataclasses
import lzma
import shutil
from pathlib import Path

import numpy as np
import tyro

FILE = "packed.npz"
_FILTERS = [{"id": lzma.FILTER_LZMA2, "dict_size": 1 << 26, "lc": 3, "lp": 1, "pb": 1}]


@dataclasses.dataclass
class Packing:
    """What to pack."""

    data: tyro.conf.Positional[str]
    """A prepared data set."""
    output: str
    """The directory to make."""
    files: int = 2
    """Number of files of training examples."""
    held_out: int = 2048
    """Number of held-out examples."""


def pack(packing):
    """Writes what the module's text says."""
    from keras_corrupt.data import load_dataset_info

    info = load_dataset_info(packing.data)
    if info.vocabulary_size > 1 << 16:
        raise ValueError("Ids of 16 bits need a vocabulary_size of 65,536 at most.")
    train = rows_of(packing.data, "train", info.train.examples)
    held_out = rows_of(packing.data, "validation", packing.held_out)
    write(packing.output, train, held_out, packing.files)
    ignored = shutil.ignore_patterns("*.tfrecord*")
    shutil.copytree(packing.data, Path(packing.output, "tokenizer"), ignore=ignored)


def write(directory, train, held_out, files):
    """Packs examples, uint16 `[rows, length]`, into a new directory."""
    directory = Path(directory)
    directory.mkdir(parents=True)
    ids_by_rank, rank_of_id = ranks(train)
    for number, part in enumerate(np.array_split(train, files)):
        packed = lzma.compress(
            rank_of_id[part[part != 0]].tobytes(), lzma.FORMAT_RAW, filters=_FILTERS
        )
        (directory / f"train_{number}.xz").write_bytes(packed)
    np.savez_compressed(
        directory / FILE,
        ids_by_rank=ids_by_rank,
        held_out=held_out,
        length=train.shape[1],
    )


def rows_of(data, split, number):
    """Returns the first examples of a split, uint16 `[rows, length]`."""
    from keras_corrupt.data import make_dataset

    rows, count = [], 0
    for batch in make_dataset(data, split, batch_size=64):
        rows.append(np.array(batch["token_ids"]).astype("uint16"))
        count += len(rows[-1])
        if count >= number:
            break
    return np.concatenate(rows)[:number]


def ranks(rows):
    """Returns the ids in the order of their frequency, and the rank of each id."""
    ids = np.argsort(-np.bincount(rows[rows != 0], minlength=1 << 16), kind="stable")
    rank = np.empty(len(ids), "uint16")
    rank[ids] = np.arange(len(ids))
    return ids.astype("uint16"), rank


def unpack(directory):
    """Returns the examples of a directory, uint16 `[rows, length]`: training, held-out.

    A row ends where the next one's first token, [CLS], is.
    """
    directory = Path(directory)
    with np.load(directory / FILE) as packed:
        ids, held_out, length = (
            packed[name] for name in ("ids_by_rank", "held_out", "length")
        )
    parts = [
        unpacked(path, ids, length) for path in sorted(directory.glob("train_*.xz"))
    ]
    return np.concatenate(parts), held_out


def unpacked(path, ids_by_rank, length):
    ranks = lzma.decompress(path.read_bytes(), lzma.FORMAT_RAW, filters=_FILTERS)
    tokens = ids_by_rank[np.frombuffer(ranks, "uint16")]
    starts = np.flatnonzero(tokens == tokens[0])
    lengths = np.diff(np.append(starts, len(tokens)))
    rows = np.zeros((len(starts), length), "uint16")
    rows[np.arange(length) < lengths[:, None]] = tokens
    return rows


def inputs_of(rows, separate_id):
    """Returns a model's inputs of examples, `[..., length]`, on JAX.

    The second segment follows the first token of `separate_id`.
    """
    mask = (rows != 0).astype("int32")
    ends = (rows == separate_id).astype("int32")
    second = ends.cumsum(axis=-1) - ends > 0
    return {
        "token_ids": rows.astype("int32"),
        "segment_ids": second.astype("int32") * mask,
        "padding_mask": mask,
    }


if __name__ == "__main__":
    pack(tyro.cli(Packing, description=__doc__))
