"""Drawn images, for runs without files."""

import numpy as np

#: The shapes that are drawn; a shape's label is its place.
SHAPES = ("disc", "square", "cross", "ring")


def draw_shapes(count, size=20, seed=0):
    """Draws shapes of any place, size and colour on noise.

    Args:
        count: Number of images.
        size: Their height and width.
        seed: Seed of the drawings.

    Returns:
        `(images, labels)`, uint8 `[count, size, size, 3]` and int64 `[count]`.

    >>> images, labels = draw_shapes(6)
    >>> images.shape, labels.tolist()
    ((6, 20, 20, 3), [0, 1, 2, 3, 0, 1])
    """
    rng = np.random.default_rng(seed)
    labels = np.arange(count) % len(SHAPES)
    radius = rng.uniform(0.2, 0.35, (count, 1, 1)) * size
    centre = rng.uniform(0.35, 0.65, (2, count, 1, 1)) * size
    rows, columns = np.mgrid[:size, :size]
    down, right = np.abs(rows - centre[0]), np.abs(columns - centre[1])
    distance, furthest = np.hypot(down, right), np.maximum(down, right)
    arm = np.minimum(down, right) < radius / 3
    drawn = [
        distance < radius,
        furthest < radius,
        (furthest < radius) & arm,
        (distance < radius) & (distance > radius / 2),
    ]
    mask = np.choose(labels[:, None, None], drawn)[..., None]
    colours = rng.uniform(0, 255, (2, count, 1, 1, 3))
    images = np.where(mask, *colours) + rng.normal(0, 20, (count, size, size, 3))
    return np.clip(images, 0, 255).astype("uint8"), labels
