"""ELECTRA-Small: Clark's thesis, table 5.1, column "Small", and section 5.4.1.

    python recipes/electra_small.py --corpus 'books/*.txt' --output runs/electra_small

The thesis trained it for 4 days on one V100, on the 3.3 billion tokens of Wikipedia
and BooksCorpus, and reports a GLUE score of 79.9 (table 5.3), 74.1 after 6.25% of the
steps. Not reproduced here yet.

`--variant two_stage` is an extension that the thesis tried (5.3.3): the generator, as
wide as the discriminator, learns alone; then the discriminator starts from its weights
and learns as long, while the generator stays as it is. The others are options:

- ELECTRA 15% (5.4.3): `--rtd_positions random`, or `masked` for the masked tokens.
- Replace MLM and All-Tokens MLM (5.4.3): `--model ReplaceMLM`, `--model AllTokensMLM`.
- No weights tied, token embeddings, all weights (5.3.1): `--tied_embeddings none`,
  `token`, `everything`, the last with `--generator_width 1`. DeBERTaV3's way to share:
  `--tied_embeddings gradient_disentangled`.
- Generators of other sizes (figure 5.4): `--generator_width 0.5`.
- Unigram and uniform generators (5.3.2): `--model UnigramElectra`, with
  `--noise uniform`.
- Adversarial training (5.3.4): `--model AdversarialElectra`.
- A flatter softmax to sample from, and other tokens than the original alone (5.5):
  `--temperature 1.5`, `--exclude_original True`.
"""

import dataclasses

from keras_corrupt.training import Phase, PretrainConfig, main


def config():
    return PretrainConfig(
        model="Electra",
        preset="small",
        output="runs/electra_small",
        vocabulary_size=30522,
        objective={
            "mask_rate": 0.15,
            "keep_rate": 0.0,  # 0.15 in the released code
            "tied_embeddings": "token_and_position",  # "all" in the released code
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


def two_stage():
    base = config()
    return dataclasses.replace(
        base,
        output="runs/electra_small_two_stage",
        objective={**base.objective, "tied_embeddings": "none", "generator_width": 1},
        steps=2 * base.steps,
        phases=(
            Phase("generator", base.steps, ("generator",), {"rtd": 0.0}),
            Phase(
                "discriminator",
                base.steps,
                ("discriminator",),
                {"mlm": 0.0},
                start="start_from_generator",
            ),
        ),
    )


if __name__ == "__main__":
    main(config(), __doc__, two_stage=two_stage())
