"""ELECTRA's sizes: Clark's thesis, table 5.1 (`tiny` is ours, for CPUs and tests).

A preset is the keyword arguments of `Electra`.
"""

from pathlib import Path

from keras_corrupt.models.encoder_sizes import DETECTORS

#: Presets with weights, made by the recipes of their names: name -> directory.
TRAINED_PRESETS = {
    name: Path(__file__).parent / name for name in ("tiny_en", "small_en")
}

PRESETS = DETECTORS

#: `tied_embeddings` -> the embeddings that are the same variables in both
#: networks. `"everything"` ties the layers, too.
TIED_PARTS = {
    "none": (),
    "token": ("token",),
    "token_and_position": ("token", "position"),
    "all": ("token", "position", "segment", "norm"),
    "everything": ("token", "position", "segment", "norm", "projection"),
    "gradient_disentangled": (),
}
