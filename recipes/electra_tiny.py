"""ELECTRA on the built-in corpus, in minutes on a laptop: see it work.

    python recipes/electra_tiny.py

Trains a vocabulary, builds examples and pretrains a small ELECTRA on the documentation
that comes with Python. Nothing is downloaded. The size and the schedule are ours, not
a paper's: as much learning as some minutes on two CPU cores allow. The encoder has
ModernBERT's parts, with which so short a run learns more; `--preset tiny` has BERT's.
"""

from keras_corrupt.training import PretrainConfig, main


def config():
    return PretrainConfig(
        model="Electra",
        preset="modern_tiny",
        output="runs/electra_tiny",
        corpus=("python-docs",),
        vocabulary_size=4096,
        validation_fraction=0.05,
        objective={
            "mask_rate": 0.15,
            "keep_rate": 0.0,
            "tied_embeddings": "token_and_position",
        },
        sequence_length=64,
        batch_size=32,
        steps=2250,
        learning_rate=2e-3,  # two layers stand, and a short run needs, a high rate
        warmup_steps=225,
        beta_2=0.98,  # a short memory, because a short run changes fast
        bias_correction=True,
        interval=225,
    )


if __name__ == "__main__":
    main(config(), __doc__)
