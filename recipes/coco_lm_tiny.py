"""COCO-LM on the built-in corpus, in minutes on a laptop: see it work.

    python recipes/coco_lm_tiny.py

Trains a vocabulary, builds examples and pretrains a small COCO-LM on the documentation
that comes with Python. Nothing is downloaded. The size and the schedule are ours, not
a paper's: 6.1e13 FLOPs. A second view of each text and a second softmax make a step
dearer than ELECTRA's, so by then correcting has only begun to be learned.
"""

from keras_corrupt.training import PretrainConfig, main


def config():
    return PretrainConfig(
        model="CocoLM",
        preset="tiny",
        output="runs/coco_lm_tiny",
        corpus=("python-docs",),
        vocabulary_size=4096,
        validation_fraction=0.05,
        objective={
            "mask_rate": 0.15,
            "token_task": "clm",  # or "rtd", "all_token_lm", "clm_without_copy", ...
            "sequence_task": "scl",  # or "none"
            "crop_fraction": 0.9,
            "replacements": "sampled",  # or "random"
            "tied_embeddings": "token",  # or "none"
            "rtd_weight": 50.0,  # lambda_copy
            "scl_weight": 1.0,
        },
        sequence_length=64,
        batch_size=32,
        steps=2700,
        learning_rate=2e-3,  # few layers stand, and a short run needs, a high rate
        warmup_steps=270,
        beta_2=0.98,  # a short memory, because a short run changes fast
        bias_correction=True,
        interval=270,
    )


if __name__ == "__main__":
    main(config(), __doc__)
