r"""Whether texts that mean the same have vectors alike, without fine-tuning.

    python -m keras_corrupt.evaluation.similarity PRESET ... --data GLUE_DIR \
        --output RESULTS

Meng et al., "COCO-LM", 2021, figures 1 and 5: cosines of the vectors of [CLS], of those
pairs of STS-B's development set that people found equal in meaning, and of random pairs
of its sentences. Spearman's correlation compares all its pairs' cosines with their
scores.
"""

import dataclasses
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import tyro

from keras_corrupt.commands.frame import command

#: STS-B's score of pairs that are equal in meaning.
EQUAL = 5.0


@dataclasses.dataclass(frozen=True)
class Settings:
    """What to measure."""

    presets: tyro.conf.Positional[tuple[str, ...]]
    """Presets' directories or names; a run's is known by the run."""
    output: str
    """Directory of the table and the plot."""
    data: str = "tfds:glue"
    """A directory in GLUE's layout (`STS-B/dev.tsv`), or `tfds:glue`."""
    pooling: Literal["cls", "mean"] = "cls"
    """A text's vector: the last vector of [CLS], or the mean over all tokens."""


class Similarity(NamedTuple):
    """What cosines tell of an encoder.

    Attributes:
        spearman: Correlation with people's scores, in percent.
        similar: Cosines of pairs that are equal in meaning, NumPy `[pairs]`.
        random: Cosines of random pairs.
    """

    spearman: float
    similar: np.ndarray
    random: np.ndarray


def similarity(first, second, scores):
    """Compares cosines of pairs with people's scores.

    A random pair is a first text with the second one of another pair.

    Args:
        first: Vectors of the pairs' first texts, `[pairs, hidden]`.
        second: Vectors of their second texts.
        scores: People's, a list of floats from 0 to `EQUAL`.

    Returns:
        A `Similarity`.

    Raises:
        ValueError: No pair is equal in meaning.

    >>> vectors = np.eye(3)
    >>> pairs = similarity(vectors, vectors[[0, 2, 1]], [5.0, 0.0, 1.0])
    >>> pairs.similar.tolist(), pairs.random.tolist()
    ([1.0], [0.0, 0.0, 1.0])
    """
    from keras_corrupt.tasks.metrics import spearman

    equal = np.array(scores) == EQUAL
    if not equal.any():
        raise ValueError(f"no pair has the score {EQUAL}: these are not STS-B's.")
    first, second = (
        vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        for vectors in (first, second)
    )
    cosines = (first * second).sum(axis=1)
    return Similarity(
        spearman(cosines.tolist(), list(scores)),
        cosines[equal],
        (first * np.roll(second, 1, axis=0)).sum(axis=1),
    )


def table(results):
    """Returns a Markdown table of name -> `Similarity`."""
    lines = [
        "| | Spearman, % | cosine of similar pairs | of random pairs |",
        "|---|---:|---:|---:|",
    ]
    for name, (spearman, *both) in results.items():
        cells = [f"{x.mean():.3f} (deviation {x.std():.3f})" for x in both]
        lines.append(f"| {name} | {spearman:.1f} | {' | '.join(cells)} |")
    return "\n".join(lines)


def plot(results, path):
    """Draws the distributions of cosines, preset by preset.

    Args:
        results: Name -> `Similarity`.
        path: File to write.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4 * len(results), 3), layout="constrained")
    axes = figure.subplots(1, len(results), squeeze=False)[0]
    for axis, (name, (_, similar, random)) in zip(axes, results.items(), strict=True):
        bins = np.linspace(min(similar.min(), random.min()), 1, 40)
        for cosines, label in ((random, "random"), (similar, "similar")):
            axis.hist(cosines, bins, density=True, alpha=0.6, label=label)
        axis.set(title=name, xlabel="cosine")
        axis.legend()
    axes[0].set_ylabel("density of pairs")
    figure.savefig(path, dpi=120)


def measure(preset, split, pooling):
    """Returns the `Similarity` of a preset, on pairs and scores of a `Split`."""
    from keras_corrupt.models import load_preset
    from keras_corrupt.scoring import embed_texts

    model = load_preset(preset)
    sides = zip(*split.examples, strict=True)
    vectors = [embed_texts(model, list(texts), pooling) for texts in sides]
    return similarity(*vectors, split.labels)


@command("Run the same command again: it begins anew.")
def main():
    """Runs the command line."""
    settings = tyro.cli(Settings, description=__doc__, use_underscores=True)
    from keras_corrupt.downstream.finetune import made_directory
    from keras_corrupt.tasks.glue import GlueTask

    names = [name_of(preset) for preset in settings.presets]
    if twice := [name for name in names if names.count(name) > 1]:
        raise ValueError(f"two presets are called {twice[0]}: rename one's folder.")
    split = GlueTask("STS-B", settings.data).splits["dev"]
    output = made_directory(settings.output)
    results = {
        name: measure(preset, split, settings.pooling)
        for name, preset in zip(names, settings.presets, strict=True)
    }
    (output / "similarity.md").write_text(table(results) + "\n")
    plot(results, output / "similarity.png")
    print(table(results))


def name_of(preset):
    """Returns how a preset is known: by its name, or by its run's name.

    >>> name_of("tiny_en"), name_of("runs/Teams/preset/")
    ('tiny_en', 'Teams')
    >>> name_of("runs/Teams/presets/step-000000500")  # kept on the way
    'Teams_500'
    """
    path = Path(preset)
    if path.parent.name == "presets" and path.name.startswith("step-"):
        return f"{path.parents[1].name}_{int(path.name.removeprefix('step-'))}"
    return path.parent.name if path.name == "preset" else path.name


if __name__ == "__main__":
    main()
