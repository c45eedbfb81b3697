"""What several masks of a text do to the variance of the gradient.

    python -m keras_corrupt.evaluation.gradient_variance PRESET DATA --output RESULTS

Zheng et al., 2020, section 3.2. For one text, g(m) is the gradient under the mask m,
and g(m_1, ..., m_K) the mean of K:

    Var(g(m_1, ..., m_K)) = Var(g(m_1)) / K + (1 - 1/K) Cov(g(m_1), g(m_2))    (7)

Var(g) = E |g - E g|^2 and Cov(g, h) = E (g - E g)^T (h - E h), over masks of one size.
Masks drawn by themselves have no covariance; the covariance of disjoint ones, which are
the farthest apart, should be negative, and fall with the Hamming distance (assumption
1).
"""

import dataclasses
from typing import NamedTuple

import numpy as np
import tyro
from tqdm import tqdm

from keras_corrupt.commands.bounds import Bounds, check_bounds
from keras_corrupt.commands.frame import command


class Estimate(NamedTuple):
    """A mean over texts, and the range in which 95% of its resamples lie.

    Attributes:
        value: The mean.
        low: The lower bound.
        high: The upper bound.
    """

    value: float
    low: float
    high: float

    def __str__(self):
        return f"{self.value:.4f} ({self.low:.4f} to {self.high:.4f})"


@dataclasses.dataclass(frozen=True)
class Settings:
    """What to measure."""

    preset: tyro.conf.Positional[str]
    """A masked language model: a preset's directory or name."""
    data: tyro.conf.Positional[str]
    """A directory of examples; its validation split is read."""
    output: str
    """Directory of the table and the plot."""
    load_weights: bool = True
    """Whether to measure the trained model, or the same with new weights."""
    num_masks: int = 4
    """Masks of a text in a step, K."""
    mask_rate: float = 0.125
    """Fraction of a text's tokens in each mask."""
    texts: int = 16
    """Texts, over which results are averaged."""
    draws: int = 24
    """Draws of K masks of each text, and pairs of masks for each distance."""
    seed: int = 0
    """Seed of texts and masks."""


def variances(gradients):
    """Estimates the parts of equation (7) from draws of K disjoint masks of a text.

    The squared length of the mean gradient is taken from pairs of different draws,
    which are independent, so that no estimate is biased.

    Args:
        gradients: float `[draws, masks, weights]`.

    Returns:
        Three numbers: the variance of one mask's gradient; the covariance of two of a
        draw; and the variance of the mean over a draw's masks.

    Raises:
        ValueError: There are fewer than two draws.

    Example: two weights, each in a mask of its own, so that the mean never varies.

    >>> draws = np.array([[[2.0, 0.0], [0.0, 2.0]], [[0.0, 2.0], [2.0, 0.0]]] * 500)
    >>> [round(float(x), 2) for x in variances(draws)]
    [2.0, -2.0, 0.0]
    """
    draws, masks, _ = gradients.shape
    if draws < 2:
        raise ValueError(f"`gradients` must have 2 draws or more; got {draws}.")
    flat = gradients.reshape(draws * masks, -1)
    products = np.matmul(flat, flat.T).astype("float64")
    products = products.reshape(draws, masks, draws, masks).transpose(0, 2, 1, 3)
    own = products[np.arange(draws), np.arange(draws)]  # [draws, masks, masks]
    others = products.sum(axis=(0, 1)) - own.sum(axis=0)
    squared_mean = others.mean() / (draws * (draws - 1))
    variance = np.trace(own.mean(axis=0)) / masks - squared_mean
    within = own.sum(axis=(1, 2)).mean() - np.trace(own.mean(axis=0))
    covariance = within / max(1, masks * (masks - 1)) - squared_mean
    mean = own.mean() - squared_mean
    return variance, covariance, mean


def masks_at_distance(rng, maskable, size, shared):
    """Draws two masks of a size that have some positions in common.

    Args:
        rng: A NumPy generator.
        maskable: The positions to choose from.
        size: Positions of each.
        shared: How many are in both: their Hamming distance is `2 (size - shared)`.

    Returns:
        int `[2, size]`.
    """
    positions = rng.permutation(maskable)[: 2 * size - shared]
    return np.stack([positions[:size], positions[size - shared :]])


def resampled(values, rng, rounds=1000):
    """Returns the `Estimate` of a mean over texts, by bootstrap."""
    values = np.asarray(values)
    chosen = rng.integers(0, len(values), (rounds, len(values)))
    low, high = np.percentile(values[chosen].mean(axis=1), [2.5, 97.5])
    return Estimate(float(values.mean()), float(low), float(high))


def measure(gradient_of, batch, unmaskable_ids, settings):
    """Measures a model on texts.

    Args:
        gradient_of: A `GradientOf` of a masked language model without dropout.
        batch: Its inputs, NumPy arrays `[texts, length]`.
        unmaskable_ids: Token ids that are never masked.
        settings: `Settings`.

    Returns:
        Two dicts of lists with a number for each text, in units of the variance of its
        one-mask gradient: by name, and by Hamming distance over the largest. Texts with
        fewer tokens to mask than masks are left out.

    Raises:
        ValueError: All texts are that short.
    """
    # Not above: help needs no Keras.
    from keras_corrupt.corruption import num_masked

    rng = np.random.default_rng(settings.seed)
    parts, distances = {}, {}
    slots = num_masked(settings.mask_rate, batch["token_ids"].shape[1])
    for row in tqdm(range(len(batch["token_ids"])), unit="text"):
        text = {name: array[row : row + 1] for name, array in batch.items()}
        real = text["padding_mask"][0] > 0
        allowed = real & ~np.isin(text["token_ids"][0], unmaskable_ids)
        maskable = np.flatnonzero(allowed)
        size = min(
            num_masked(settings.mask_rate, int(real.sum())),
            len(maskable) // settings.num_masks,
        )
        if not size:
            continue

        def gradient(positions, text=text, spare=slots - size):
            # All texts have one shape, so that the step is compiled once.
            weights = np.ones((1, len(positions)), "float32")
            masks = {
                "masked_positions": np.pad(positions, (0, spare)).astype("int32")[None],
                "masked_weights": np.pad(weights, ((0, 0), (0, spare))),
            }
            return gradient_of({**text, **masks})

        sums = measure_text(gradient, maskable, size, settings, rng)
        for whole, of_text in zip((parts, distances), sums, strict=True):
            for name, value in of_text.items():
                whole.setdefault(name, []).append(value)
    if not parts:
        raise ValueError(
            f"No text has {settings.num_masks} tokens to mask in separate masks: take "
            "longer ones, or fewer masks (--num_masks)."
        )
    if short := row + 1 - len(parts["covariance"]):
        print(f"{short} of {row + 1} texts are too short for the masks, and left out.")
    return parts, distances


def measure_text(gradient, maskable, size, settings, rng):
    """Measures a model on one text.

    Args:
        gradient: Function of masked positions, int `[size]`, to float `[weights]`.
        maskable: The positions to choose from.
        size: Positions of a mask.
        settings: `Settings`.
        rng: A NumPy generator.

    Returns:
        Two dicts to numbers, as of `measure`.
    """
    k, draws = settings.num_masks, settings.draws

    def chosen(count):
        return rng.permutation(maskable)[:count]

    def gradients(masks_of_draws):
        return np.array(
            [[gradient(mask) for mask in masks] for masks in masks_of_draws]
        )

    sets = gradients(chosen(k * size).reshape(k, size) for _ in range(draws))
    one, covariance, disjoint = variances(sets)
    alone = gradients([chosen(size) for _ in range(k)] for _ in range(draws))
    parts = {
        "covariance": covariance / one,
        "disjoint": disjoint / one,
        "independent": variances(alone)[2] / one,
    }
    distances, mean = {}, sets.mean(axis=(0, 1))
    for shared in np.unique(np.linspace(0, size, 5).astype(int)):
        pairs = gradients(
            masks_at_distance(rng, maskable, size, shared) for _ in range(draws)
        )
        product = ((pairs[:, 0] - mean) * (pairs[:, 1] - mean)).sum(axis=1).mean()
        # The mean is itself an estimate, which varies by that much.
        product -= disjoint / draws
        distances[round(1 - shared / size, 2)] = product / one
    return parts, distances


def plot(parts, distances, path):
    """Draws covariance over distance, and the variance of both kinds of masks.

    Args:
        parts: Name -> `Estimate`, as of `measure`.
        distances: Hamming distance over the largest -> `Estimate`.
        path: File to write.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    places = sorted(distances)
    _draw(left, places, [distances[place] for place in places], "o-")
    left.axhline(0, color="gray", linestyle=":")
    left.set(xlabel="Hamming distance / largest", ylabel="covariance / variance")
    kinds = ("independent", "disjoint")
    _draw(right, [0, 1], [parts[kind] for kind in kinds], "s")
    right.set_xticks([0, 1], [f"{kind} masks" for kind in kinds])
    right.set(xlim=(-0.5, 1.5), ylim=0, ylabel="variance of K / variance of one")
    figure.savefig(path, dpi=120)


def _draw(axes, places, estimates, style):
    bounds = [(e.value - e.low, e.high - e.value) for e in estimates]
    values = [e.value for e in estimates]
    axes.errorbar(places, values, np.transpose(bounds), fmt=style, capsize=3)


def load(preset, load_weights):
    """Loads a masked language model in which the masks alone are drawn by chance.

    Args:
        preset: Its directory or name.
        load_weights: Whether to load its weights, too.

    Returns:
        The model: without dropout, and `[MASK]` at every chosen position.

    Raises:
        ValueError: It learns from more than masked tokens.
    """
    from keras_corrupt.models import MaskedLM, Pretrainer
    from keras_corrupt.presets import Preset
    from keras_corrupt.presets.overrides import merge

    saved = Preset.open(preset, Pretrainer)
    cls = saved.model_class
    if not issubclass(cls, MaskedLM):
        raise ValueError(
            f"{preset}: a {cls.__name__} learns from more than masked tokens. Give a "
            "masked language model."
        )
    quiet = {"dropout": 0.0, "attention_dropout": 0.0}
    changes = {saved.main: quiet, "keep_rate": 0.0, "random_rate": 0.0}
    if load_weights:
        return saved.load(**changes)
    return cls(**merge(saved.config, changes), tokenizer=saved.tokenizer)


@command("Run the same command again: it begins anew.")
def main():
    """Runs the command line."""
    settings = tyro.cli(Settings, description=__doc__, use_underscores=True)
    if settings.num_masks < 2 or settings.num_masks * settings.mask_rate > 1:
        raise ValueError(
            f"--num_masks {settings.num_masks} of --mask_rate {settings.mask_rate}: "
            "take 2 masks or more, which fit into a text."
        )
    check_bounds(vars(settings), {"texts": Bounds(1), "draws": Bounds(2)})
    from keras_corrupt.data import make_dataset
    from keras_corrupt.downstream.finetune import made_directory
    from keras_corrupt.evaluation.gradients import GradientOf

    model = load(settings.preset, settings.load_weights)
    dataset = make_dataset(
        settings.data, "validation", batch_size=settings.texts, seed=settings.seed
    )
    batch = dataset[0]
    output = made_directory(settings.output)
    parts, distances = measure(GradientOf(model), batch, model.unmaskable_ids, settings)
    rng = np.random.default_rng(settings.seed)
    parts = {name: resampled(values, rng) for name, values in parts.items()}
    distances = {place: resampled(v, rng) for place, v in sorted(distances.items())}
    k = settings.num_masks
    expected = 1 / k + (1 - 1 / k) * parts["covariance"].value
    lines = [
        "In units of the variance of one mask's gradient, mean over texts (95%):",
        "",
        "| | |",
        "|---|---|",
        f"| variance of {k} independent masks | {parts['independent']} |",
        f"| equation (7) without covariance | {1 / k:.4f} |",
        f"| variance of {k} disjoint masks | {parts['disjoint']} |",
        f"| equation (7) with their covariance | {expected:.4f} |",
        f"| covariance of disjoint masks | {parts['covariance']} |",
        *(
            f"| covariance at {place:.0%} of the largest distance | {value} |"
            for place, value in distances.items()
        ),
    ]
    text = "\n".join(lines)
    (output / "gradient_variance.md").write_text(text + "\n")
    plot(parts, distances, output / "gradient_variance.png")
    print(text)


if __name__ == "__main__":
    main()
