"""ELECTRA-Small: Clark's thesis, table 5.1, column "Small", and section 5.4.1.

    python recipes/electra_small.py --corpus 'books/*.txt' --output runs/electra_small

The thesis trained it for 4 days on one V100, on the 3.3 billion tokens of Wikipedia
and BooksCorpus, and reports a GLUE score of 79.9 (table 5.3), 74.1 after 6.25% of the
steps. Not reproduced here yet.
"""

from keras_corrupt.training import PretrainConfig, main


def config():
    return PretrainConfig(
        model="Electra",
        preset="small",
        output="runs/electra_small",
        vocabulary_size=30522,
        objective={
            "mask_rate": 0.15,
            "keep_rate": 0.0,  # 0.15 in the released code
            "tied_embeddings": "token_and_position",  # "all" in the released code
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
