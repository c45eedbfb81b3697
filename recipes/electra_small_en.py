"""The preset `small_en`: ELECTRA-Small on English Wikipedia and novels.

    python recipes/electra_small_en.py --corpus wiki.txt.xz books.txt.xz \\
        --vocabulary bert_uncased.txt

`recipes/electra_small.py` has the same sizes, batch and rate, and 27 times the steps.
This run takes 7.2e16 FLOPs, eight minutes of an H200. A short run wants a lower beta_2,
a shorter warm-up and no dropout. Recipes then fine-tune the model without dropout, too.

`benchmarks/on_device` trained the preset that comes with the package, with these
settings and the same model, loss and optimizer. The preset's card stands beside its
weights, in `keras_corrupt/presets/electra/small_en/README.md`.
"""

from keras_corrupt.training import PretrainConfig, main


def config():
    return PretrainConfig(
        model="Electra",
        preset="small",
        output="runs/electra_small_en",
        vocabulary_size=30522,
        objective={
            "mask_rate": 0.15,
            "keep_rate": 0.0,
            "tied_embeddings": "token_and_position",
            "discriminator": {
                "max_length": 128,
                "dropout": 0.0,
                "attention_dropout": 0.0,
            },
            "generator": {"dropout": 0.0, "attention_dropout": 0.0},
        },
        sequence_length=128,
        batch_size=128,
        steps=37_000,
        learning_rate=5e-4,
        warmup_steps=2500,
        beta_2=0.98,
        bias_correction=False,
        dtype="mixed_bfloat16",
        interval=500,
    )


if __name__ == "__main__":
    main(config(), __doc__)
