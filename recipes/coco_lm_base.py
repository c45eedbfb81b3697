"""COCO-LM-Base: Meng et al., 2021, section 4 and table 6, columns "base" and "base++".

    python recipes/coco_lm_base.py --corpus 'books/*.txt' --output runs/coco_lm_base

The paper trained it on the 16 GB of Wikipedia and BooksCorpus, and reports a GLUE score
of 87.2 (table 1, development sets); the same settings come to 1.7e20 FLOPs here. Not
reproduced here yet. Its negatives are all other texts of a batch: if memory is short,
more --devices keep them, --accumulate does not.

`--variant plus_plus` gives the settings of COCO-LM-Base++: a cased vocabulary of
64,000, 64 buckets of relative positions, a rate of 2e-4 and 1.95M steps, on 160 GB of
text.

`--variant converged_auxiliary` is an ablation of table 3: the auxiliary network learns
alone, as long as the main one does afterwards, and then stays as it is. It has its own
embeddings, which the main network would otherwise change. Table 3's other ablations are
options:

- RTD only: `--token_task rtd --sequence_task none`.
- CLM only: `--sequence_task none`.
- SCL + RTD: `--token_task rtd`.
- Without relative positions: `--discriminator.relative_positions null`.
- ELECTRA's auxiliary network: `--generator.num_layers 12 --generator.hidden_size 256
  --generator.intermediate_size 1024 --generator.num_heads 4`.
- Random replacements: `--replacements random`.
- CLM's parts: `--token_task all_token_lm`, `clm_without_copy` or
  `clm_without_stop_gradient`.
"""

import dataclasses

from keras_corrupt.training import Phase, PretrainConfig, main


def config():
    return PretrainConfig(
        model="CocoLM",
        preset="base",
        output="runs/coco_lm_base",
        tokenizer="byte_bpe",
        vocabulary_size=32_768,
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
        steps=125_000,
        learning_rate=5e-4,
        warmup_steps=10_000,
        weight_decay=0.01,
        beta_2=0.98,
        epsilon=1e-6,
        bias_correction=True,  # fairseq's; the paper does not say
        clip_norm=2.0,
        interval=1000,
        dtype="auto",
    )


def plus_plus():
    return dataclasses.replace(
        config(),
        preset="base_plus_plus",
        output="runs/coco_lm_base_plus_plus",
        vocabulary_size=64_000,
        lowercase=False,
        strip_accents=False,
        steps=1_950_000,
        learning_rate=2e-4,
    )


def converged_auxiliary():
    base = config()
    alone = {"rtd": 0.0, "lm": 0.0, "scl": 0.0}
    return dataclasses.replace(
        base,
        output="runs/coco_lm_base_converged_auxiliary",
        objective={**base.objective, "tied_embeddings": "none"},
        steps=2 * base.steps,
        phases=(
            Phase("auxiliary", base.steps, ("generator",), alone),
            Phase("main", base.steps, ("discriminator",), {"mlm": 0.0}),
        ),
    )


if __name__ == "__main__":
    main(
        config(),
        __doc__,
        plus_plus=plus_plus(),
        converged_auxiliary=converged_auxiliary(),
    )
