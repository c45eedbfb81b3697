import numpy as np
import pytest

from keras_corrupt.models.baselines import unigram_baseline
from keras_corrupt.objectives.replaced_tokens import random_detector


def test_unigram_loss_and_accuracy_by_hand():
    # Ids: 0 [PAD], 1 [CLS], 2 [SEP], then words seen 7, 2 and 0 times. One is added
    # to each count, so the words' probabilities are 8, 3 and 1 twelfths.
    unigrams = np.array([0, 100, 100, 7, 2, 0])
    token_ids = np.array([[1, 3, 3, 2, 0], [1, 4, 2, 5, 2]])
    padding_mask = np.array([[1, 1, 1, 1, 0], [1, 1, 1, 1, 1]])
    loss, accuracy = unigram_baseline(unigrams, token_ids, padding_mask, (0, 1, 2))
    assert loss == pytest.approx(-np.mean(np.log(np.array([8, 8, 3, 1]) / 12)))
    assert accuracy == 2 / 4


def test_special_tokens_that_are_masked_are_as_frequent_as_in_the_examples():
    unigrams = np.array([0, 0, 0, 7, 2, 0])
    token_ids = np.array([[1, 3, 3, 2, 0], [1, 4, 2, 5, 2]])
    padding_mask = np.array([[1, 1, 1, 1, 0], [1, 1, 1, 1, 1]])
    # Of four tokens of text 12 are counted: three for each, so 6 [CLS] and 9 [SEP].
    loss, accuracy = unigram_baseline(unigrams, token_ids, padding_mask, (0,), (1, 2))
    counts = np.array([6, 8, 8, 9, 6, 3, 9, 1, 9])
    assert loss == pytest.approx(-np.mean(np.log(counts / 27)))
    assert accuracy == 3 / 9


def test_unigram_loss_on_the_training_text_is_its_entropy():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(20))
    token_ids = rng.choice(20, (400, 50), p=p)
    counts = np.bincount(token_ids.ravel(), minlength=20)
    loss, accuracy = unigram_baseline(counts, token_ids, np.ones_like(token_ids), ())
    q = counts / counts.sum()
    q = q[q > 0]
    assert loss == pytest.approx(-(q * np.log(q)).sum(), abs=1e-3)
    assert accuracy == pytest.approx(q.max())


def test_unigram_baseline_ignores_what_padding_holds():
    unigrams = np.array([0, 4, 4, 4])
    token_ids = np.array([[1, 2, 3]])
    first = unigram_baseline(unigrams, token_ids, np.array([[1, 1, 0]]), (0,))
    token_ids[0, 2] = 1
    assert unigram_baseline(unigrams, token_ids, np.array([[1, 1, 0]]), (0,)) == first


def test_random_detector_is_what_random_flags_reach():
    rng = np.random.default_rng(0)
    replaced = rng.random(200_000) < 0.1
    # A model that flags 30% of the replaced tokens and 2% of the others.
    flagged = rng.random(replaced.size) < np.where(replaced, 0.3, 0.02)
    baseline = random_detector(
        {
            "replaced_fraction": replaced.mean(),
            "rtd_precision": (replaced & flagged).sum() / flagged.sum(),
            "rtd_recall": (replaced & flagged).sum() / replaced.sum(),
        }
    )
    assert baseline["rtd_recall"][0] == pytest.approx(flagged.mean())
    at_random = rng.permutation(flagged)
    hits = (replaced & at_random).sum()
    assert baseline["rtd_precision"][0] == pytest.approx(
        hits / at_random.sum(), abs=0.01
    )
    assert baseline["rtd_recall"][0] == pytest.approx(hits / replaced.sum(), abs=0.01)
    assert baseline["rtd_auc"][0] == 0.5


def test_random_detector_of_a_model_that_flags_nothing():
    metrics = {
        "replaced_fraction": 0.1,
        "rtd_precision": 0.0,
        "rtd_recall": 0.0,
    }
    assert random_detector(metrics)["rtd_recall"][0] == 0.0
