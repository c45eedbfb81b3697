"""COCO-LM-Large++: Meng et al., 2021, section 4 and table 6, column "large++".

    python recipes/coco_lm_large.py --corpus 'books/*.txt' --output runs/coco_lm_large

The paper trained it on 160 GB of text (Wikipedia, BooksCorpus, OpenWebText, CC-News,
STORIES), and reports a GLUE score of 90.8 (table 1, development sets); the same
settings come to 8.2e21 FLOPs here. Not reproduced here yet.
"""

from keras_corrupt.training import PretrainConfig, main


def config():
    return PretrainConfig(
        model="CocoLM",
        preset="large_plus_plus",
        output="runs/coco_lm_large",
        tokenizer="byte_bpe",
        vocabulary_size=64_000,
        lowercase=False,
        strip_accents=False,
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
        sequence_length=512,
        batch_size=2048,
        steps=1_950_000,
        learning_rate=1e-4,
        warmup_steps=10_000,
        weight_decay=0.01,
        beta_2=0.98,
        epsilon=1e-6,
        bias_correction=True,  # fairseq's; the paper does not say
        clip_norm=2.0,
        interval=1000,
        dtype="auto",
    )


if __name__ == "__main__":
    main(config(), __doc__)
