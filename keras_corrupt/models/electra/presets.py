"""ELECTRA's sizes: Clark's thesis, table 5.1 (`tiny` is ours, for CPUs and tests).

A preset is the keyword arguments of `Electra`. The generator's hidden size,
feed-forward size and number of heads are the discriminator's times 1/4 for tiny and
small, 1/3 for base and 1/4 for large; its depth is the discriminator's, and so is its
embedding size, because the two share their token and position embeddings.
"""

PRESETS = {
    "tiny": {
        "discriminator": {
            "vocabulary_size": 8192,
            "num_layers": 2,
            "hidden_size": 128,
            "intermediate_size": 512,
            "num_heads": 4,
            "embedding_size": 128,
            "max_length": 128,
            # A run of minutes cannot overfit; what it needs is a fast start.
            "dropout": 0.0,
            "attention_dropout": 0.0,
            "initializer_range": 0.1,
        },
        "generator": {
            "num_layers": 2,
            "hidden_size": 32,
            "intermediate_size": 128,
            "num_heads": 1,
        },
        "mask_rate": 0.15,
    },
    "small": {
        "discriminator": {
            "vocabulary_size": 30522,
            "num_layers": 12,
            "hidden_size": 256,
            "intermediate_size": 1024,
            "num_heads": 4,
            "embedding_size": 128,
            "max_length": 512,
        },
        "generator": {
            "num_layers": 12,
            "hidden_size": 64,
            "intermediate_size": 256,
            "num_heads": 1,
        },
        "mask_rate": 0.15,
    },
    "base": {
        "discriminator": {
            "vocabulary_size": 30522,
            "num_layers": 12,
            "hidden_size": 768,
            "intermediate_size": 3072,
            "num_heads": 12,
            "embedding_size": 768,
            "max_length": 512,
        },
        "generator": {
            "num_layers": 12,
            "hidden_size": 256,
            "intermediate_size": 1024,
            "num_heads": 4,
        },
        "mask_rate": 0.15,
    },
    "large": {
        "discriminator": {
            "vocabulary_size": 30522,
            "num_layers": 24,
            "hidden_size": 1024,
            "intermediate_size": 4096,
            "num_heads": 16,
            "embedding_size": 1024,
            "max_length": 512,
        },
        "generator": {
            "num_layers": 24,
            "hidden_size": 256,
            "intermediate_size": 1024,
            "num_heads": 4,
        },
        "mask_rate": 0.25,
    },
}
