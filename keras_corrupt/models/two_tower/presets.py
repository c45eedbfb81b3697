"""Sizes of the two-tower models that Electric is compared with.

Clark's thesis, 5.4.5: "of the same size as Electric", and one Transformer pass in table
5.9. So the towers have the width of Electric's discriminator and half of its layers
each; together they cost what it costs. A preset is the keyword arguments of `TwoTower`.
"""

from keras_corrupt.models.encoder_sizes import ENCODERS

PRESETS = {
    name: {
        "encoder": {**ENCODERS[name], "num_layers": ENCODERS[name]["num_layers"] // 2}
    }
    for name in ("tiny", "small", "base")
}
