"""The preset `tiny_en`: ELECTRA on English Wikipedia and novels, in an hour or so.

    python recipes/electra_tiny_en.py --corpus wiki.txt.xz books.txt.xz
    python recipes/electra_tiny_en.py --corpus wiki.txt.xz books.txt.xz \\
        --init_from runs/electra_tiny_en/preset --discriminator.max_length 128 \\
        --sequence_length 128 --batch_size 32 --steps 4000 --warmup_steps 200 \\
        --learning_rate 1e-3 --interval 500 --output runs/electra_tiny_en_128

So small a model learns to detect replaced tokens in texts of 64 tokens, and hardly in
longer ones: begun with those, it stayed at an AUC of 0.55. So the second command comes
after the first: the positions from the 65th on start as copies of the others. The card
of the result stands beside its weights, in
`keras_corrupt/presets/electra/tiny_en/README.md`.
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
            "discriminator": {"max_length": 64},
        },
        sequence_length=64,
        batch_size=64,
        steps=20_000,
        learning_rate=2e-3,
        warmup_steps=1000,
        beta_2=0.98,
        bias_correction=True,
        dtype="mixed_bfloat16",
        interval=1000,
    )


if __name__ == "__main__":
    main(config(), __doc__)
