"""A whole small journey in a process: corpus, run, preset, fine-tuning.

    python tests/hostile/journey.py

in a folder with `corpus.txt` and `train.csv`, which `write_inputs` makes; `run` and
`tuned` are what comes of it.
"""

import random
import sys
from pathlib import Path

WORDS = "the a cat dog sat ran on under mat rug quick slow red blue old young".split()
ENCODER = {
    "vocabulary_size": 120,
    "num_layers": 1,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_heads": 2,
    "max_length": 32,
    "dropout": 0.1,
    "attention_dropout": 0.1,
}


def write_inputs(folder):
    """Writes the journey's inputs, always the same."""
    draw = random.Random(0)

    def sentence():
        return " ".join(draw.choices(WORDS, k=draw.randint(4, 12)))

    documents = ["\n".join(f"{sentence()} ." for _ in range(6)) for _ in range(300)]
    (folder / "corpus.txt").write_text("\n\n".join(documents) + "\n")
    rows = [f"{sentence()} {label},{label}" for label in ("cat", "dog") * 40]
    (folder / "train.csv").write_text("\n".join(["text,label", *rows]) + "\n")


def main():
    from keras_corrupt.downstream import finetune
    from keras_corrupt.downstream.finetune import FinetuneConfig
    from keras_corrupt.models import Electra
    from keras_corrupt.tasks.tables import Columns, TableTask
    from keras_corrupt.training import PretrainConfig, pretrain

    print("Imported.", flush=True)  # From here on it works with files.
    generator = {"hidden_size": 16, "intermediate_size": 32, "num_heads": 1}
    Electra.presets["tiny"] = {"discriminator": ENCODER, "generator": generator}
    pretrain(
        PretrainConfig(
            model="Electra",
            preset="tiny",
            output="run",
            corpus=("corpus.txt",),
            vocabulary_size=120,
            validation_fraction=0.1,
            sequence_length=32,
            batch_size=8,
            accumulate=2,
            ema=0.9,
            steps=60,
            learning_rate=1e-3,
            warmup_steps=6,
            interval=2,
            validation_batches=1,
        )
    )
    columns = Columns("text", None, "label", None)
    task = TableTask("train.csv", columns, dev_fraction=0.2)
    settings = {"epochs": 1, "batch_size": 16}
    config = FinetuneConfig(
        "run/preset", "tuned", seeds=2, retries=0, settings=settings
    )
    finetune([task], config)
    print("Finished.", flush=True)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))
    main()
