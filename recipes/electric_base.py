"""Electric-Base: Clark's thesis, table 5.1, column "Base", and section 5.1.

    python recipes/electric_base.py --corpus 'books/*.txt' --output runs/electric_base

The thesis trained it on Wikipedia and BooksCorpus: MNLI 85.7, CoLA 61.8, SQuAD 2.0 EM
80.1 on the dev sets (table 5.8), and, as re-ranker, word error rates of 5.65 and 17.42
on LibriSpeech's clean and other test sets (table 5.9; 7.26 and 20.37 without it). Not
reproduced here yet.
"""

from keras_corrupt.training import PretrainConfig, main


def config():
    return PretrainConfig(
        model="Electric",
        preset="base",
        output="runs/electric_base",
        vocabulary_size=30522,
        objective={
            "mask_rate": 0.15,  # of the tokens have samples in their places
            "nce_weight": 50.0,  # as released; the thesis does not say
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
