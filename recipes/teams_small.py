"""TEAMS-Small: Shen et al., 2021, table 5, column "Small/Small++".

    python recipes/teams_small.py --corpus 'books/*.txt' --output runs/teams_small

The paper trained it on the 3.3 billion tokens of Wikipedia and BooksCorpus, and
reports a GLUE score of 80.7 (table 1, development sets); the same settings come to
8.5e18 FLOPs here. Not reproduced here yet.

`--variant plus_plus` gives the settings of TEAMS-Small++: 2M steps, on the 33 billion
tokens of XLNet's data, for a GLUE score of 82.0.
"""

import dataclasses

from keras_corrupt.training import PretrainConfig, main


def config():
    return PretrainConfig(
        model="Teams",
        preset="small",
        output="runs/teams_small",
        vocabulary_size=30522,
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
        sequence_length=512,
        batch_size=256,
        steps=500_000,
        learning_rate=5e-4,
        warmup_steps=10_000,
        weight_decay=0.01,
        epsilon=1e-6,
        bias_correction=True,  # as released; the paper does not say
        clip_norm=1.0,  # as released; the paper does not say
        interval=1000,
        dtype="auto",
    )


def plus_plus():
    return dataclasses.replace(
        config(),
        output="runs/teams_small_plus_plus",
        steps=2_000_000,
    )


if __name__ == "__main__":
    main(config(), __doc__, plus_plus=plus_plus())
