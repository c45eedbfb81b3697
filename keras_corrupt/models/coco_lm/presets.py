"""COCO-LM's sizes: Meng et al., 2021, section 4 and table 6 (`tiny` is ours).

A preset is the keyword arguments of `CocoLM`. The main networks, `discriminator`, are
BERT's; the auxiliary ones, `generator`, are as wide, and have 1/3 or 1/4 of the layers.
"""

from keras_corrupt.models.encoder_sizes import ENCODERS


def _preset(size, vocabulary_size, num_buckets, max_distance, generator_layers):
    relative = {"num_buckets": num_buckets, "max_distance": max_distance}
    return {
        "discriminator": {
            **ENCODERS[size],
            "vocabulary_size": vocabulary_size,
            "relative_positions": relative,
        },
        "generator": {"num_layers": generator_layers},
        "mask_rate": 0.15,
    }


PRESETS = {
    "tiny": _preset("tiny", 8192, 32, 128, generator_layers=1),
    "base": _preset("base", 32_768, 32, 128, generator_layers=4),
    "base_plus_plus": _preset("base", 64_000, 64, 128, generator_layers=4),
    "large_plus_plus": _preset("large", 64_000, 128, 256, generator_layers=6),
}

#: `tied_embeddings` -> the embeddings that are the same variables in both networks.
TIED_PARTS = {
    "token": ("token",),
    "all": ("token", "position", "segment", "norm"),
    "none": (),
}
