"""Other libraries' formats in and out, and exported models.

`convert` and `python -m keras_corrupt.convert` write a model in another format. Each
has a file: `hugging_face.py`, `keras_hub.py`, `model_garden.py`, `google_tf1.py`.
`from_preset` and whatever else takes a preset take those formats, too.
"""

import importlib


def __getattr__(name):
    # On first use: it needs Keras.
    if name == "convert":
        return importlib.import_module(f"{__name__}.conversion").convert
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
