"""Other libraries' formats in and out, and exported models.

`convert` and `python -m keras_corrupt.convert` write a model in another format. Each
has a file: `hugging_face.py`, `keras_hub.py`, `model_garden.py`, `onnx.py`,
`litert.py`. `from_preset` and all that takes a preset read the first three, too, and
Google's checkpoints by `google_tf1.py`.
"""

import lazy_loader

# On first use: it needs Keras.
__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "conversion": ["convert"],
    },
)
