"""BERT-Base as ELECTRA-Base's baseline: Clark's thesis, tables 5.1 and 5.3.

    python recipes/bert_base.py --corpus 'books/*.txt' --output runs/bert_base

The thesis gives it ELECTRA-Base's hyperparameters and as many FLOPs, which is a
million steps, without next-sentence prediction (5.2.3), and reports a GLUE score of
82.2. Not reproduced here yet.
"""

from keras_corrupt.training import PretrainConfig, main


def config():
    return PretrainConfig(
        model="MaskedLM",
        preset="base",
        output="runs/bert_base",
        vocabulary_size=30522,
        objective={"mask_rate": 0.15, "keep_rate": 0.1, "random_rate": 0.1},
        sequence_length=512,
        batch_size=256,
        steps=1_000_000,
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
