"""Whether one strategy's runs are better than another's (Clark's thesis, 3.4)."""

import numpy as np

#: Fewer runs tell nothing by a bootstrap.
LEAST_RUNS = 5


def bootstrap(a, b, samples=20_000, seed=0):
    """Returns the p-value of a difference between the means of two sets of runs.

    Both are moved to a common mean, and runs drawn from each with replacement: the
    p-value, two-sided, is how often their means differ as much as the runs' means.
    Deviations count `sqrt(n / (n - 1))` times, since a few runs differ less from their
    own mean than from the true one; even so, fewer than five say nothing: 1.

    Args:
        a: Scores.
        b: Scores.
        samples: How often runs are drawn.
        seed: With which they are drawn.

    >>> bootstrap([1, 2, 3, 4, 5], [1, 2, 3, 4, 5])
    1.0
    """
    a, b = np.asarray(a, "float64"), np.asarray(b, "float64")
    if min(len(a), len(b)) < LEAST_RUNS:
        return 1.0
    difference = abs(a.mean() - b.mean())
    rng = np.random.default_rng(seed)
    means = [
        rng.choice((x - x.mean()) * (len(x) / (len(x) - 1)) ** 0.5, (samples, len(x)))
        for x in (a, b)
    ]
    means = [drawn.mean(axis=1) for drawn in means]
    as_great = np.abs(means[0] - means[1]) >= difference - 1e-12
    # The runs themselves are one of the draws, so that none is beyond all doubt.
    return float((as_great.sum() + 1) / (samples + 1))


def mann_whitney(a, b):
    """Returns the p-value of the Mann-Whitney U test, two-sided.

    >>> mann_whitney([1, 2, 3], [4, 5, 6])
    0.1
    """
    from scipy.stats import mannwhitneyu

    return float(mannwhitneyu(a, b).pvalue)


def holm(p_values):
    """Corrects p-values for their number (Holm, 1979).

    Raises:
        ImportError: statsmodels is not installed.
    """
    if not len(p_values):
        return []
    try:
        from statsmodels.stats.multitest import multipletests
    except ImportError as error:
        raise ImportError(
            "Significance needs statsmodels: pip install -e '.[multitask]'."
        ) from error
    return multipletests(p_values, method="holm")[1].tolist()
