"""The encoders' sizes: Clark's thesis, table 5.1, and modern ones.

The thesis's discriminators have BERT's sizes; so have TEAMS's.
`tiny` is ours, for CPUs and tests. A size is the keyword arguments of
`TransformerEncoder`.

The generators are what the thesis gives ELECTRA and Electric: their hidden size,
feed-forward size and number of heads are the discriminator's times 1/4 for tiny and
small, 1/3 for base and 1/4 for large; their depth is the discriminator's, and so is
their embedding size, because the two share their token and position embeddings.

`modern_base` is ModernBERT-base (Warner et al., 2024, table 4 and its released
configuration). `modern_small` is ours: ELECTRA-Small's embeddings and width, in twice
as many layers with half of its feed-forward size, 19.7 million parameters. So is
`modern_tiny`, with the width, the depth and about the parameters of `tiny`. Their
generators are ours, too: the discriminator's width times 1/3 and 1/4, as the thesis
has it for its base and small.
"""

#: ModernBERT's parts in place of BERT's.
_MODERN = {
    "num_segments": 0,
    "dropout": 0.0,
    "attention_dropout": 0.0,
    "layer_norm_epsilon": 1e-5,
    "positions": "rotary",
    "rotary_theta": 160_000.0,
    "local_rotary_theta": 10_000.0,
    "norm": "pre",
    "feed_forward": "geglu",
    "use_bias": False,
    "local_window": 128,
    "global_every": 3,
}

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
    "modern_tiny": {
        **_MODERN,
        "vocabulary_size": 8192,
        "num_layers": 2,
        "hidden_size": 128,
        "intermediate_size": 320,
        "num_heads": 4,
        "embedding_size": 128,
        "max_length": 128,
        "initializer_range": 0.1,
    },
    "modern_small": {
        **_MODERN,
        "vocabulary_size": 30522,
        "num_layers": 24,
        "hidden_size": 256,
        "intermediate_size": 512,
        "num_heads": 4,
        "embedding_size": 128,
        "max_length": 1024,
    },
    "modern_base": {
        **_MODERN,
        "vocabulary_size": 50368,
        "num_layers": 22,
        "hidden_size": 768,
        "intermediate_size": 1152,
        "num_heads": 12,
        "embedding_size": 768,
        "max_length": 8192,
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
    "modern_tiny": {
        "num_layers": 2,
        "hidden_size": 32,
        "intermediate_size": 80,
        "num_heads": 1,
    },
    "modern_small": {
        "num_layers": 24,
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_heads": 1,
    },
    "modern_base": {
        "num_layers": 22,
        "hidden_size": 256,
        "intermediate_size": 384,
        "num_heads": 4,
    },
}

#: Fraction of the tokens that a generator replaces.
MASK_RATES = {size: 0.25 if size == "large" else 0.15 for size in ENCODERS}

#: Size -> what a system of a discriminator and a generator is made of.
DETECTORS = {
    size: {
        "discriminator": ENCODERS[size],
        "generator": GENERATORS[size],
        "mask_rate": MASK_RATES[size],
    }
    for size in ENCODERS
}
