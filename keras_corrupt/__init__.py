"""Pretraining of text encoders by corrupting text, in Keras 3.

>>> import keras_corrupt
>>> model = keras_corrupt.models.Electra.from_preset("tiny")
"""

import lazy_loader

from keras_corrupt import cpu_kernels, gpu_kernels
from keras_corrupt.convert import foreign
from keras_corrupt.devices.guests import register_guest
from keras_corrupt.presets.locations import register_source
from keras_corrupt.version import __version__

# The parts load on first use: data preparation runs in many small processes, none of
# which needs Keras.
__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submodules=[
        "convert",
        "corruption",
        "cross_view",
        "data",
        "devices",
        "downstream",
        "encoders",
        "evaluation",
        "models",
        "multitask",
        "presets",
        "scoring",
        "tasks",
        "tokenizers",
        "training",
    ],
)
__all__ += ["__version__"]

register_guest(cpu_kernels.replacements)
register_guest(gpu_kernels.replacements)
register_source(foreign)
