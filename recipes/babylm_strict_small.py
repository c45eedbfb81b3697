"""A text encoder for the BabyLM challenge, track strict-small: 10 million words.

    python recipes/babylm_strict_small.py --corpus train_10M
    python recipes/babylm_strict_small.py --corpus train_10M --variant masked_lm
    python -m keras_corrupt.scoring blimp blimp/ \\
        --preset runs/babylm_strict_small/preset

The challenge allows ten passes over the corpus, and asks for the model after each
million words up to ten million, and after each ten million from there on. The run keeps
them in `presets/`, and writes them for the challenge's evaluation to `hugging_face/`.
`--words` shortens the run. `--preset modern_small --discriminator.embedding_size 256`
makes the networks larger; narrower embeddings have no place in Hugging Face's
ModernBERT. For the track strict take `--corpus_words 100000000 --words 1000000000`.
`--variant` takes another system.

The sizes and the schedule are ours. A modern encoder learns sooner than BERT's:
`benchmarks/results/babylm` has the numbers, on other text.
"""

import dataclasses

from keras_corrupt.evaluation.babylm import BabyLMConfig, babylm
from keras_corrupt.training import main


def config():
    return BabyLMConfig(
        model="Electra",
        preset="modern_tiny",
        output="runs/babylm_strict_small",
        vocabulary_size=8192,
        sequence_length=64,
        batch_size=32,
        learning_rate=2e-3,
        warmup_steps=1000,
        beta_2=0.98,
        bias_correction=True,
        dtype="auto",
    )


def of_system(model):
    output = f"runs/babylm_strict_small_{model}"
    return dataclasses.replace(config(), model=model, output=output)


if __name__ == "__main__":
    main(
        config(),
        __doc__,
        babylm,
        masked_lm=of_system("MaskedLM"),
        electric=of_system("Electric"),
    )
