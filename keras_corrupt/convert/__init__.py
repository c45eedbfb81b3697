"""Other libraries' formats in and out, and exported models.

`convert` and `python -m keras_corrupt.convert` write a model in another format. Each
has a file: `hugging_face.py`, `keras_hub.py`, `model_garden.py`, `google_tf1.py`.
`from_preset` and whatever else takes a preset take those formats, too.
"""

import lazy_loader

# On first use: it needs Keras.
__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "conversion": ["convert"],
    },
)
