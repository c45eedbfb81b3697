"""Loads `.keras` files as a user does, and keeps what the models in them compute.

    python load_keras_files.py DIRECTORY

Of each `NAME.keras` with its `NAME.npz` of inputs it writes `NAME.out.npz`.
"""

import sys
from pathlib import Path

import keras
import numpy as np

from keras_corrupt import (
    cross_view,
    downstream,
    encoders,
    models,
    training,
)

for room in (cross_view, downstream, encoders, models, training):
    for name in room.__all__:
        getattr(room, name)  # Rooms import their classes on first use.


def deterministic_part(model):
    """Returns an encoder: a model's, or the first of the towers that it has instead.

    Of a `WordModel`, whose encoder returns many arrays, its logits.
    """
    if "primary" in getattr(model, "networks", ()):
        return lambda inputs: model(inputs)["logits"]
    if "two_tower" in getattr(model, "networks", ()):
        return model.network.left_to_right
    return getattr(model, "encoder", model)


def main(directory):
    for path in sorted(Path(directory).glob("*.keras")):
        model = keras.models.load_model(path)
        inputs = dict(np.load(path.with_suffix(".npz")))
        outputs = deterministic_part(model)(inputs)
        tokenizer = getattr(model, "tokenizer", None)
        np.savez(
            path.with_suffix(".out.npz"),
            outputs=np.array(outputs),
            fingerprint=tokenizer.fingerprint if tokenizer else "",
            optimizer=type(getattr(model, "optimizer", None)).__name__,
        )


if __name__ == "__main__":
    main(sys.argv[1])
