"""TEAMS-Base: Shen et al., 2021, table 5, column "Base/Base++".

    python recipes/teams_base.py --corpus 'books/*.txt' --output runs/teams_base

The paper trained it on the 3.3 billion tokens of Wikipedia and BooksCorpus, and
reports a GLUE score of 85.6 (table 1, development sets); the same settings come to
1.2e20 FLOPs here. Not reproduced here yet.

`--variant plus_plus` gives the settings of TEAMS-Base++: batches of 1024 and a rate of
3e-4, on the 33 billion tokens of XLNet's data, for a GLUE score of 87.2.
"""

import dataclasses

from keras_corrupt.training import PretrainConfig, main


def config():
    return PretrainConfig(
        model="Teams",
        preset="base",
        output="runs/teams_base",
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
        steps=1_000_000,
        learning_rate=2e-4,
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
        output="runs/teams_base_plus_plus",
        batch_size=1024,
        learning_rate=3e-4,
    )


if __name__ == "__main__":
    main(config(), __doc__, plus_plus=plus_plus())
