"""Fully-explored masked LM on the built-in corpus, in minutes on a laptop.

    python recipes/fe_mlm_tiny.py
    python recipes/fe_mlm_tiny.py --disjoint_masks False --output runs/k_masks_tiny

Each text has four masks that have no token in common, all in one update (Zheng et al.,
2020, algorithm 1); the second command draws them independently, at the same cost. The
size and the schedule are ours, not the paper's.
"""

from keras_corrupt.training import PretrainConfig, main


def config():
    return PretrainConfig(
        model="MaskedLM",
        preset="modern_tiny",
        output="runs/fe_mlm_tiny",
        corpus=("python-docs",),
        vocabulary_size=4096,
        validation_fraction=0.05,
        objective={
            "num_masks": 4,
            "disjoint_masks": True,
            "mask_rate": 0.125,
            "keep_rate": 0.1,
            "random_rate": 0.1,
        },
        sequence_length=64,
        batch_size=8,
        steps=2250,
        learning_rate=2e-3,
        warmup_steps=225,
        beta_2=0.98,
        bias_correction=True,
        interval=225,
    )


if __name__ == "__main__":
    main(config(), __doc__)
