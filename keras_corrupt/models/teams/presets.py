"""TEAMS's sizes: Shen et al., 2021, table 5 (`tiny` is ours, for CPUs and tests).

A preset is the keyword arguments of `Teams`. The discriminators are ELECTRA's; the
generator has half as many layers, of the same width, and 15% of the tokens are masked
in all sizes.
"""

from keras_corrupt.models.encoder_sizes import ENCODERS

PRESETS = {
    name: {
        "discriminator": encoder,
        # In `tiny` not half of two layers, but both, so that half of the generator's
        # is one of them.
        "generator_layers": 2 if name == "tiny" else encoder["num_layers"] // 2,
        "mask_rate": 0.15,
    }
    for name, encoder in ENCODERS.items()
}
