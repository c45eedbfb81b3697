"""TEAMS-Large: Shen et al., 2021, table 5, column "Large".

    python recipes/teams_large.py --corpus 'books/*.txt' --output runs/teams_large

The paper trained it on the 33 billion tokens of XLNet's data, and reports a GLUE score
of 89.4 (table 1, development sets); the same settings come to 4.5e21 FLOPs here. Not
reproduced here yet.
"""

from keras_corrupt.training import PretrainConfig, main


def config():
    return PretrainConfig(
        model="Teams",
        preset="large",
        output="runs/teams_large",
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
        batch_size=2048,
        steps=1_760_000,
        learning_rate=2e-4,
        warmup_steps=10_000,
        weight_decay=0.01,
        epsilon=1e-6,
        bias_correction=True,  # as released; the paper does not say
        clip_norm=1.0,  # as released; the paper does not say
        interval=1000,
        dtype="auto",
    )


if __name__ == "__main__":
    main(config(), __doc__)
