"""The preset `tiny_en`: ELECTRA on English Wikipedia and novels, in an hour or so.

    python recipes/electra_tiny_en.py --corpus wiki.txt.xz books.txt.xz

What two CPU cores make of 120 million tokens. The card of the result stands beside its
weights, in `keras_corrupt/models/electra/tiny_en/README.md`.
"""

from keras_corrupt.training import PretrainConfig, main


def config():
    return PretrainConfig(
        model="Electra",
        preset="tiny",
        output="runs/electra_tiny_en",
        vocabulary_size=8192,
        validation_fraction=0.003,
        objective={
            "mask_rate": 0.15,
            "keep_rate": 0.0,
            "tied_embeddings": "token_and_position",
        },
        sequence_length=128,
        batch_size=32,
        steps=30_000,
        learning_rate=2e-3,
        warmup_steps=1000,
        beta_2=0.98,
        bias_correction=True,
        dtype="mixed_bfloat16",
        interval=1000,
    )


if __name__ == "__main__":
    main(config(), __doc__)
