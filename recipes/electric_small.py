"""Electric-Small: Clark's thesis, table 5.1, column "Small", and section 5.1.

    python recipes/electric_small.py --corpus 'books/*.txt' --output runs/electric_small

The thesis trains Electric with ELECTRA's settings and has no score of this size; two
towers in place of one network make it somewhat dearer than ELECTRA-Small, which took 4
days on one V100. Not reproduced here yet.
"""

from keras_corrupt.training import PretrainConfig, main


def config():
    return PretrainConfig(
        model="Electric",
        preset="small",
        output="runs/electric_small",
        vocabulary_size=30522,
        objective={
            "mask_rate": 0.15,  # of the tokens have samples in their places
            "nce_weight": 50.0,  # as released; the thesis does not say
        },
        sequence_length=128,
        batch_size=128,
        steps=1_000_000,
        learning_rate=5e-4,
        warmup_steps=10_000,
        weight_decay=0.01,
        epsilon=1e-6,
        bias_correction=False,  # as released; the thesis does not say
        clip_norm=1.0,  # as released; the thesis does not say
        interval=1000,
    )


if __name__ == "__main__":
    main(config(), __doc__)
