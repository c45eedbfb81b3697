"""Sizes of Cross-View Training's models (Clark's thesis, table 4.1)."""

#: "base" and "large" are the thesis's; "small" has a quarter of the LSTMs, as in its
#: figure 4.4; "tiny" is ours, for CPUs.
PRESETS = {
    "tiny": {
        "encoder": {
            "character_size": 16,
            "num_filters": 32,
            "hidden_sizes": [128, 64],
            "projection_size": 64,
        },
        "hidden_size": 64,
    },
    "small": {
        "encoder": {
            "num_filters": 100,
            "hidden_sizes": [256, 128],
            "projection_size": 128,
        },
        "hidden_size": 128,
    },
    "base": {"encoder": {"num_filters": 100}, "hidden_size": 512},
    # The projections and hidden layers of the large one are not in the table.
    "large": {
        "encoder": {"num_filters": 100, "hidden_sizes": [4096, 2048]},
        "hidden_size": 512,
    },
}

#: Presets of translators, with their decoders. Where the thesis names no other sizes,
#: LSTMs have 1024 and projections 512 (4.3.1); embeddings are as wide as the encoder's.
TRANSLATION_PRESETS = {
    "tiny": {
        **PRESETS["tiny"],
        "decoder": {
            "embedding_size": 96,
            "hidden_sizes": [128, 128],
            "projection_size": 64,
        },
    },
    "small": {
        **PRESETS["small"],
        "decoder": {"hidden_sizes": [256, 256], "projection_size": 128},
    },
    "base": {**PRESETS["base"], "decoder": {}},
    "large": {**PRESETS["large"], "decoder": {}},
}

#: Sizes of an image classifier's network (4.4; Miyato et al., 2018, appendix D); "tiny"
#: has an eighth of the filters.
IMAGE_PRESETS = {
    "tiny": {"channels": [16, 16, 16, 32, 32, 32, 64, 32, 16]},
    "base": {"channels": [128, 128, 128, 256, 256, 256, 512, 256, 128]},
}


def lstm_sizes(size):
    """Returns sizes in a preset's place, by the LSTMs' (Clark's thesis, figure 4.5).

    Args:
        size: Hidden units of the first LSTM; the second, the projections and the
            modules' hidden layers have half as many. `None` for the preset's.

    >>> lstm_sizes(1024)["encoder"]
    {'hidden_sizes': [1024, 512], 'projection_size': 512}
    """
    if size is None:
        return {}
    half = size // 2
    encoder = {"hidden_sizes": [size, half], "projection_size": half}
    return {"encoder": encoder, "hidden_size": half}


def word_size(preset):
    """Returns the width of a size's word vectors, which its kinds of filters share.

    >>> word_size("base")
    300
    """
    return 3 * PRESETS[preset]["encoder"]["num_filters"]
