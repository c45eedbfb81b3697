"""A text encoder for the BabyLM challenge, track strict-small: 10 million words.

    python recipes/babylm_strict_small.py --corpus train_10M
    python recipes/babylm_strict_small.py --corpus train_10M --variant masked_lm
    python -m keras_corrupt.scoring blimp blimp/ \\
        --preset runs/babylm_strict_small/preset

The challenge allows ten passes over the corpus, and asks for the model after each
million words up to ten million, and after each ten million from there on. The run keeps
them in `presets/`, and writes them for the challenge's evaluation to `hugging_face/`.
`--words` shortens the run, `--preset small` makes the networks larger, and
`--corpus_words 100000000` is for the track strict. `--variant` takes another system.

The sizes and the schedule are ours. With rotary positions and norms before the
sub-layers the small networks learn soon: `benchmarks/results/babylm` has the numbers,
on other text.
"""

import dataclasses

from keras_corrupt.evaluation.babylm import BabyLMConfig, babylm
from keras_corrupt.training import main

ENCODER = {"positions": "rotary", "norm": "pre"}


def config():
    return BabyLMConfig(
        model="Electra",
        preset="tiny",
        output="runs/babylm_strict_small",
        vocabulary_size=8192,
        objective={"discriminator": ENCODER, "generator": ENCODER},
        sequence_length=64,
        batch_size=32,
        learning_rate=2e-3,
        warmup_steps=1000,
        beta_2=0.98,
        bias_correction=True,
        dtype="auto",
    )


def variant(model, **objective):
    base = config()
    output = f"{base.output}_{model}"
    return dataclasses.replace(base, model=model, output=output, objective=objective)


if __name__ == "__main__":
    main(
        config(),
        __doc__,
        babylm,
        masked_lm=variant("MaskedLM", encoder=ENCODER),
        electric=variant("Electric", discriminator=ENCODER, generator=ENCODER),
        # COCO-LM's positions are relative.
        coco_lm=variant("CocoLM", discriminator={"norm": "pre"}),
    )
