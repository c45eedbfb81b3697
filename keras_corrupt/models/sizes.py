"""The encoders' sizes: Clark's thesis, table 5.1 (`tiny` is ours, for CPUs and tests).

Those of its discriminators, which are BERT's; TEAMS has them, too. A size is the
keyword arguments of `TransformerEncoder`.

The generators are what the thesis gives ELECTRA and Electric: their hidden size,
feed-forward size and number of heads are the discriminator's times 1/4 for tiny and
small, 1/3 for base and 1/4 for large; their depth is the discriminator's, and so is
their embedding size, because the two share their token and position embeddings.
"""

ENCODERS = {
    "tiny": {
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
    "small": {
        "vocabulary_size": 30522,
        "num_layers": 12,
        "hidden_size": 256,
        "intermediate_size": 1024,
        "num_heads": 4,
        "embedding_size": 128,
        "max_length": 512,
    },
    "base": {
        "vocabulary_size": 30522,
        "num_layers": 12,
        "hidden_size": 768,
        "intermediate_size": 3072,
        "num_heads": 12,
        "embedding_size": 768,
        "max_length": 512,
    },
    "large": {
        "vocabulary_size": 30522,
        "num_layers": 24,
        "hidden_size": 1024,
        "intermediate_size": 4096,
        "num_heads": 16,
        "embedding_size": 1024,
        "max_length": 512,
    },
}

GENERATORS = {
    "tiny": {
        "num_layers": 2,
        "hidden_size": 32,
        "intermediate_size": 128,
        "num_heads": 1,
    },
    "small": {
        "num_layers": 12,
        "hidden_size": 64,
        "intermediate_size": 256,
        "num_heads": 1,
    },
    "base": {
        "num_layers": 12,
        "hidden_size": 256,
        "intermediate_size": 1024,
        "num_heads": 4,
    },
    "large": {
        "num_layers": 24,
        "hidden_size": 256,
        "intermediate_size": 1024,
        "num_heads": 4,
    },
}

#: Fraction of the tokens that a generator replaces.
MASK_RATES = {"tiny": 0.15, "small": 0.15, "base": 0.15, "large": 0.25}

#: Size -> what a system of a discriminator and a generator is made of.
DETECTORS = {
    size: {
        "discriminator": ENCODERS[size],
        "generator": GENERATORS[size],
        "mask_rate": MASK_RATES[size],
    }
    for size in ENCODERS
}
