"""Electric on the built-in corpus, in minutes on a laptop: see it work.

    python recipes/electric_tiny.py

Trains a vocabulary, builds examples and pretrains a small Electric on the documentation
that comes with Python. Nothing is downloaded. The size and the schedule are ours, not
a paper's.
"""

from keras_corrupt.training import PretrainConfig, main


def config():
    return PretrainConfig(
        model="Electric",
        preset="tiny",
        output="runs/electric_tiny",
        corpus=("python-docs",),
        vocabulary_size=4096,
        validation_fraction=0.05,
        objective={"mask_rate": 0.15, "nce_weight": 50.0},
        sequence_length=64,
        batch_size=32,
        steps=4500,
        learning_rate=2e-3,  # two layers stand, and a short run needs, a high rate
        warmup_steps=450,
        beta_2=0.98,  # a short memory, because a short run changes fast
        bias_correction=True,
        interval=450,
    )


if __name__ == "__main__":
    main(config(), __doc__)
