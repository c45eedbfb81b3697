"""A text encoder for the BabyLM challenge, track strict-small: 10 million words.

    python recipes/babylm_strict_small.py --corpus train_10M
    python recipes/babylm_strict_small.py --corpus train_10M --model MaskedLM \\
        --output runs/babylm_masked_lm
    python -m keras_corrupt.scoring blimp blimp/ --preset runs/babylm/preset

The challenge allows ten passes over the corpus, and asks for the model after each
million words up to ten million, and after each ten million from there on. The run keeps
them in `presets/`, and writes them for the challenge's evaluation to `hugging_face/`.
`--words` shortens the run, `--preset small` makes the networks larger, and
`--corpus_words 100_000_000` is for the track strict. The sizes and the schedule are
ours. `benchmarks/results/babylm` has what came of them on other text.
"""

from keras_corrupt.evaluation.babylm import BabyLMConfig, babylm
from keras_corrupt.training import main


def config():
    return BabyLMConfig(
        model="Electra",
        preset="tiny",
        output="runs/babylm",
        vocabulary_size=8192,
        objective={
            "mask_rate": 0.15,
            "keep_rate": 0.0,
            "tied_embeddings": "token_and_position",
        },
        sequence_length=64,
        batch_size=32,
        learning_rate=2e-3,
        warmup_steps=1000,
        beta_2=0.98,
        bias_correction=True,
        dtype="auto",
    )


if __name__ == "__main__":
    main(config(), __doc__, babylm)
