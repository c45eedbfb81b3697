"""TEAMS on the built-in corpus, in minutes on a laptop: see it work.

    python recipes/teams_tiny.py

Trains a vocabulary, builds examples and pretrains a small TEAMS on the documentation
that comes with Python. Nothing is downloaded. The size, ModernBERT's parts and the
schedule are ours, not a paper's, but `electra_tiny.py`'s, with as many steps as cost
what its run costs, 3.0e13 FLOPs. The generator is as wide as the discriminator, as in
the paper.
"""

from keras_corrupt.training import PretrainConfig, main


def config():
    return PretrainConfig(
        model="Teams",
        preset="modern_tiny",
        output="runs/teams_tiny",
        corpus=("python-docs",),
        vocabulary_size=4096,
        validation_fraction=0.05,
        objective={
            "mask_rate": 0.15,
            "num_negatives": 5,
            "candidates": "sampled",  # or "hardest"
            "tied_layers": "half",  # or "none", "all"
            "task_layers": 1,  # 0: feed-forward heads only
            "exported": "mws",  # or "rtd"
            "rtd_weight": 5.0,
            "mws_weight": 2.0,
        },
        sequence_length=64,
        batch_size=32,
        steps=1450,
        learning_rate=2e-3,  # few layers stand, and a short run needs, a high rate
        warmup_steps=145,
        beta_2=0.98,  # a short memory, because a short run changes fast
        bias_correction=True,
        interval=145,
    )


if __name__ == "__main__":
    main(config(), __doc__)
