"""ELECTRA's sizes: Clark's thesis, table 5.1 (`tiny` is ours, for CPUs and tests).

A preset is the keyword arguments of `Electra`. The generator's hidden size,
feed-forward size and number of heads are the discriminator's times 1/4 for tiny and
small, 1/3 for base and 1/4 for large; its depth is the discriminator's, and so is its
embedding size, because the two share their token and position embeddings.
"""

from keras_corrupt.models.encoder_sizes import ENCODERS

PRESETS = {
    "tiny": {
        "discriminator": ENCODERS["tiny"],
        "generator": {
            "num_layers": 2,
            "hidden_size": 32,
            "intermediate_size": 128,
            "num_heads": 1,
        },
        "mask_rate": 0.15,
    },
    "small": {
        "discriminator": ENCODERS["small"],
        "generator": {
            "num_layers": 12,
            "hidden_size": 64,
            "intermediate_size": 256,
            "num_heads": 1,
        },
        "mask_rate": 0.15,
    },
    "base": {
        "discriminator": ENCODERS["base"],
        "generator": {
            "num_layers": 12,
            "hidden_size": 256,
            "intermediate_size": 1024,
            "num_heads": 4,
        },
        "mask_rate": 0.15,
    },
    "large": {
        "discriminator": ENCODERS["large"],
        "generator": {
            "num_layers": 24,
            "hidden_size": 256,
            "intermediate_size": 1024,
            "num_heads": 4,
        },
        "mask_rate": 0.25,
    },
}
