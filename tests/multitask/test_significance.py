import itertools

import numpy as np
import pytest

from keras_corrupt.multitask import results
from keras_corrupt.multitask.significance import bootstrap, holm, mann_whitney


def test_bootstrap_is_the_share_of_all_draws():
    """Of sets this small all draws can be enumerated."""
    a, b = np.array([1.0, 2.0, 4.0, 2.5, 3.0]), np.array([5.0, 3.0, 3.5, 6.0, 2.0])

    def means(x):
        x = (x - x.mean()) * np.sqrt(5 / 4)
        return np.array([np.mean(d) for d in itertools.product(x, repeat=len(x))])

    differences = np.abs(means(a)[:, None] - means(b)[None])
    expected = (differences >= abs(a.mean() - b.mean()) - 1e-12).mean()
    assert bootstrap(a, b, samples=200_000) == pytest.approx(expected, abs=0.01)
    # Four runs are too few, however far apart.
    assert bootstrap(a[:4], b + 100) == 1.0


def test_false_alarms_are_about_as_frequent_as_they_should_be():
    rng = np.random.default_rng(0)
    pairs = rng.normal(size=(300, 2, 20))
    alarms = np.mean([bootstrap(a, b, samples=500) < 0.05 for a, b in pairs])
    assert 0.02 < alarms < 0.1


def test_mann_whitney_by_hand():
    # All of one are above all of the other: 2 of the (10 over 5) orders.
    assert mann_whitney(range(5), range(10, 15)) == pytest.approx(2 / 252)


def test_holm_by_hand():
    pytest.importorskip("statsmodels")
    # Sorted 0.01, 0.02, 0.04, times 3, 2, 1, and never falling.
    np.testing.assert_allclose(holm([0.04, 0.01, 0.02]), [0.04, 0.03, 0.04])
    assert holm([]) == []


def test_the_table_has_medians_ranges_and_stars():
    pytest.importorskip("statsmodels")
    rng = np.random.default_rng(0)
    found = {
        name: {task: list(mean + rng.normal(size=20)) for task in ("RTE", "CoLA")}
        for name, mean in (("single", 50), ("multi", 51), ("single_to_multi", 60))
    }
    found["multi_to_multi"] = {"RTE": [70.0] * 20, "CoLA": [1.0] * 20}
    whole = results.with_average(found)
    assert whole["multi_to_multi"]["average"] == [35.5] * 20
    text = results.table(whole, {"RTE": "accuracy", "CoLA": "matthews"})
    header, _, single, _, student, mixed = text.splitlines()
    assert header == (
        "| strategy | average | RTE (accuracy) | CoLA (matthews) | runs |"
    )
    rte = found["single"]["RTE"]
    cell = f"{np.median(rte):.1f} ({min(rte):.1f} to {max(rte):.1f})"
    assert single.split(" | ")[2] == cell and "*" not in single
    assert student.count("*** (") == 3
    # Better than both on one task, worse on the other and on average.
    assert "70.0*** (" in mixed and mixed.count("*") == 3
    lines = results.comparison(whole).splitlines()
    assert len(lines) == 5 and lines[2].endswith("| 0.000 |")
    assert results.comparison({"single": whole["single"]}) == ""
