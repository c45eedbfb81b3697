import collections

import numpy as np
from scipy.stats import chisquare

from keras_corrupt.multitask.sampling import rows_of_pass, shares


def counted(rows, sizes):
    starts = np.cumsum(sizes) - np.array(sizes)
    return np.bincount(np.searchsorted(starts, rows, "right") - 1, minlength=len(sizes))


def test_tasks_are_drawn_by_their_sizes_to_the_power():
    sizes = [4000, 500, 60]
    for exponent in (0.75, 1.0, 0.0):
        counts = sum(
            counted(rows_of_pass(sizes, exponent, 3, number), sizes)
            for number in range(4)
        )
        powers = np.array([n**exponent for n in sizes])
        expected = counts.sum() * powers / powers.sum()
        assert chisquare(counts, expected).pvalue > 0.001
        # A test that cannot tell exponents apart would say nothing.
        other = shares(sizes, 0.5) * counts.sum()
        assert chisquare(counts, other).pvalue < 1e-6


def test_all_sequences_of_a_task_come_before_one_comes_again():
    sizes = [40, 7, 15]
    seen = np.concatenate([rows_of_pass(sizes, 0.75, 0, k) for k in range(9)])
    read = np.bincount(seen, minlength=sum(sizes))
    for start, size in zip((0, 40, 47), sizes, strict=True):
        own = read[start : start + size]
        assert own.max() - own.min() <= 1


def test_one_task_is_read_whole_and_any_pass_can_be_made_alone():
    for number in (0, 1, 5):
        assert rows_of_pass([13], 0.75, 2, number).tolist() == list(range(13))
    first = rows_of_pass([13, 5], 0.75, 2, 3).tolist()
    np.random.seed(1)
    assert first == rows_of_pass([13, 5], 0.75, 2, 3).tolist()


def test_each_seed_and_each_time_through_a_task_has_an_order_of_its_own():
    size = 6
    of_seeds, of_times = collections.defaultdict(set), collections.defaultdict(set)
    for seed in range(200):
        rows = rows_of_pass([size, size], 0.75, seed, 0)
        own = rows[rows < size]
        of_seeds[len(own)].add(tuple(own))
    assert len(of_seeds[4]) > 8  # of the 15 ways to choose four rows
    # One order would give the same rows wherever a pass begins at the same place.
    done = 0
    for number in range(100):
        rows = rows_of_pass([size, size], 0.75, 0, number)
        own = rows[rows < size]
        of_times[done % size, len(own)].add(tuple(own))
        done += len(own)
    assert max(map(len, of_times.values())) > 3
