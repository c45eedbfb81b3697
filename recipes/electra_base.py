"""ELECTRA-Base: Clark's thesis, table 5.1, column "Base".

    python recipes/electra_base.py --corpus 'books/*.txt' --output runs/electra_base

The thesis trained it for 4 days on 16 TPUv3s, on the 3.3 billion tokens of Wikipedia
and BooksCorpus, and reports a GLUE score of 85.1 (table 5.3). Not reproduced here yet.
"""

from keras_corrupt.training import PretrainConfig, main


def config():
    return PretrainConfig(
        model="Electra",
        preset="base",
        output="runs/electra_base",
        vocabulary_size=30522,
        objective={
            "mask_rate": 0.15,
            "keep_rate": 0.0,  # 0.15 in the released code
            "tied_embeddings": "token_and_position",  # "all" in the released code
        },
        sequence_length=512,
        batch_size=256,
        steps=766_000,
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
