"""ELECTRA-TT, small: Clark's thesis, sections 5.4.4 and 5.4.5, table 5.1's "Small".

    python recipes/electra_tt_small.py --corpus 'books/*.txt' \\
        --output runs/electra_tt_small

ELECTRA with Electric's two-tower generator. The thesis has scores of the base size
alone: word error rates of 5.22 and 17.01 on LibriSpeech's clean and other test sets,
Electric's 5.18 and 16.93 (table 5.9). Not reproduced here yet.
"""

from keras_corrupt.training import PretrainConfig, main


def config():
    return PretrainConfig(
        model="ElectraTT",
        preset="small",
        output="runs/electra_tt_small",
        vocabulary_size=30522,
        objective={
            "mask_rate": 0.15,  # of the tokens have samples in their places
            "rtd_weight": 50.0,  # as released; the thesis does not say
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
