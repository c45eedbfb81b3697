"""TEAMS's sizes: Shen et al., 2021, table 5 (`tiny` is ours, for CPUs and tests).

A preset is the keyword arguments of `Teams`. The discriminators are ELECTRA's; the
generator has half as many layers, of the same width, and 15% of the tokens are masked
in all sizes.
"""

from keras_corrupt.models.electra.presets import PRESETS as _ELECTRA

PRESETS = {
    name: {
        "discriminator": preset["discriminator"],
        "generator_layers": preset["discriminator"]["num_layers"] // 2,
        "mask_rate": 0.15,
    }
    for name, preset in _ELECTRA.items()
    if name != "tiny"
}
# Not half of two layers, but both, so that half of the generator's is one of them.
PRESETS["tiny"] = {
    "discriminator": _ELECTRA["tiny"]["discriminator"],
    "generator_layers": 2,
    "mask_rate": 0.15,
}
