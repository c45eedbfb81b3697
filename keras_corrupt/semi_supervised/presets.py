"""Sizes of Cross-View Training's models (Clark's thesis, table 4.1)."""

#: "base" and "large" are the thesis's; "tiny" is ours, for CPUs.
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
    "base": {"encoder": {}, "hidden_size": 512},
    # The projections and hidden layers of the large one are not in the table.
    "large": {"encoder": {"hidden_sizes": [4096, 2048]}, "hidden_size": 512},
}
