"""Saved models: one door through which every part of the package opens and saves them.

`Preset.open` takes a directory, the name of a trained preset, an address on a hub, or
another library's files, and gives the model's class, arguments, tokenizer and weights.
"""

import lazy_loader

# On first use: it needs Keras.
__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__, submod_attrs={"preset": ["Preset", "load_preset"]}
)
