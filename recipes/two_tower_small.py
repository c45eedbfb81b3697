"""TwoTower, small: Clark's thesis, section 5.4.5, table 5.1's "Small".

    python recipes/two_tower_small.py --corpus 'books/*.txt' \\
        --output runs/two_tower_small

The two-tower cloze model as a model of its own, of the size of Electric-Small. The
thesis has scores of the base size alone: word error rates of 5.32 and 17.25 on
LibriSpeech's clean and other test sets, Electric's 5.18 and 16.93 (table 5.9). Not
reproduced here yet.
"""

from keras_corrupt.training import PretrainConfig, main


def config():
    return PretrainConfig(
        model="TwoTower",
        preset="small",
        output="runs/two_tower_small",
        vocabulary_size=30522,
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
