"""The encoders' sizes: Clark's thesis, table 5.1 (`tiny` is ours, for CPUs and tests).

Those of its discriminators, which are BERT's; TEAMS has them, too. A size is the
keyword arguments of `TransformerEncoder`.
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
