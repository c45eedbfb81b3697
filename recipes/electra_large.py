"""ELECTRA-Large (400K steps): Clark's thesis, table 5.1, column "Large".

    python recipes/electra_large.py --corpus 'books/*.txt' --output runs/electra_large

The thesis trained it on the 33 billion tokens of XLNet's data; `--steps 1750000` is its
longer run. Table 5.4 has its scores. Not reproduced here yet.
"""

from keras_corrupt.training import PretrainConfig, main


def config():
    return PretrainConfig(
        model="Electra",
        preset="large",
        output="runs/electra_large",
        vocabulary_size=30522,
        objective={
            "mask_rate": 0.25,
            "keep_rate": 0.0,  # 0.15 in the released code
            "tied_embeddings": "token_and_position",  # "all" in the released code
        },
        sequence_length=512,
        batch_size=2048,
        steps=400_000,
        learning_rate=2e-4,
        warmup_steps=10_000,
        weight_decay=0.01,
        epsilon=1e-6,
        bias_correction=False,  # as released; the thesis does not say
        clip_norm=1.0,  # as released; the thesis does not say
        interval=1000,
        dtype="auto",
    )


if __name__ == "__main__":
    main(config(), __doc__)
