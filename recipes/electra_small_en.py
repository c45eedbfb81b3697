"""The preset `small_en`: ELECTRA-Small on English Wikipedia and novels.

    python recipes/electra_small_en.py --corpus wiki.txt.xz books.txt.xz \\
        --vocabulary bert_uncased.txt

Sizes, batch and rate are those of `recipes/electra_small.py`, with a 27th of the steps:
7.2e16 FLOPs, eight minutes of an H200. Beta_2, the warm-up and the lack of dropout are
those of a short run: ten passes over the text do not overfit. The recipes fine-tune a
model without dropout, too, if it was pretrained so.

`benchmarks/on_device` trained the preset that comes with the package, with these
settings and the same model, loss and optimizer. The preset's card stands beside its
weights, in `keras_corrupt/models/electra/small_en/README.md`.
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
