"""Scores of texts in one pass, by Electric, and in a pass a token, by a masked LM.

    python -m benchmarks.scoring_speed --output RESULTS

Both have encoders of the preset `--preset` with new weights. Sentences of each length
are scored by both in turn; the ratio of the medians is to be near the number of tokens.
`python -m benchmarks.peer_speed --system scoring` compares with other libraries.
"""

import dataclasses
import statistics
import time
from pathlib import Path

import keras
import numpy as np
import tyro

from benchmarks.machine import description
from keras_corrupt.models import Electric, MaskedLM
from keras_corrupt.scoring import score_sentences
from keras_corrupt.tokenizers import SPECIAL_TOKENS, WordPieceTokenizer


@dataclasses.dataclass
class Settings:
    """What to measure."""

    output: str
    """Directory for the table and the plot."""
    preset: str = "small"
    """Size of both."""
    tokens: tuple[int, ...] = (8, 16, 32, 64)
    """Tokens of a sentence."""
    sentences: int = 32
    """Sentences of each length."""
    rounds: int = 5
    """How often each is timed."""
    vocabulary_size: int = 30522
    """Tokens of the vocabulary."""


def main(settings):
    keras.utils.set_random_seed(0)
    words = [f"w{i}" for i in range(settings.vocabulary_size - len(SPECIAL_TOKENS))]
    tokenizer = WordPieceTokenizer([*SPECIAL_TOKENS, *words])
    models = {
        cls.__name__: cls.from_preset(
            settings.preset,
            tokenizer=tokenizer,
            **{name: {"vocabulary_size": settings.vocabulary_size}},
        )
        for cls, name in ((Electric, "discriminator"), (MaskedLM, "encoder"))
    }
    rng, rows = np.random.default_rng(0), []
    for tokens in settings.tokens:
        texts = [" ".join(rng.choice(words, tokens)) for _ in range(settings.sentences)]
        seconds = {name: [] for name in models}
        for round_ in range(settings.rounds + 1):
            for name, model in models.items():
                start = time.perf_counter()
                score_sentences(model, texts)
                if round_:  # the first one compiles
                    seconds[name].append(time.perf_counter() - start)
        one, many = (statistics.median(times) for times in seconds.values())
        rows.append((tokens, one, many))
    lines = [
        f"{description()}; {settings.preset}, {settings.sentences} sentences\n",
        "| tokens n | Electric, sentences/s | masked LM, sentences/s | ratio | "
        "ratio / n |",
        "|---:|---:|---:|---:|---:|",
    ]
    for tokens, one, many in rows:
        rates = (f"{settings.sentences / seconds:,.1f}" for seconds in (one, many))
        ratio = many / one
        lines.append(
            f"| {tokens} | {' | '.join(rates)} | {ratio:.1f} | {ratio / tokens:.2f} |"
        )
    text = "\n".join(lines) + "\n"
    print(text)
    output = Path(settings.output)
    output.mkdir(parents=True, exist_ok=True)
    (output / "one_pass.md").write_text(text)
    draw(rows, output / "one_pass.png")


def draw(rows, path):
    from matplotlib.figure import Figure

    tokens = [row[0] for row in rows]
    figure = Figure(figsize=(5, 3.5), layout="constrained")
    axes = figure.subplots()
    axes.plot(tokens, [many / one for _, one, many in rows], "o-", label="measured")
    axes.plot(tokens, tokens, ":", color="gray", label="n")
    axes.set(xlabel="tokens of a sentence, n", ylabel="times faster in one pass")
    axes.grid(alpha=0.3)
    axes.legend()
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    main(tyro.cli(Settings, description=__doc__, use_underscores=True))
