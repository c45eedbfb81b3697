"""Networks that have died: all tokens have one state."""

import warnings

import numpy as np
from keras import ops

from keras_corrupt.encoders.token_spread import token_spread

#: A spread below this means that all tokens have one state.
ONE_STATE = 0.001
#: A detector has died with a spread and an AUC below one of these pairs: see
#: benchmarks/results/collapse. In the first steps of a run that lives its spread can be
#: as small, but its AUC is higher.
DEAD_DETECTORS = (ONE_STATE, 0.55), (0.01, 0.52)
#: Random tokens by which a loaded model is judged: texts and their length.
TRIAL = 2, 8


def why_dead(spread, rtd_auc=None):
    """Says by what one sees that a model has died.

    Args:
        spread: Mean `token_spread` of validation texts.
        rtd_auc: A detector's AUC; None for other models.

    Returns:
        A clause; an empty text while the model lives.

    >>> why_dead(0.0004)
    'all tokens have one state (spread 0.0004)'
    >>> why_dead(0.0004, rtd_auc=0.7), why_dead(0.05, rtd_auc=0.5)
    ('', '')
    """
    if rtd_auc is None:
        dead = spread < ONE_STATE
        return f"all tokens have one state (spread {spread:.4f})" if dead else ""
    if any(spread < s and rtd_auc < a for s, a in DEAD_DETECTORS):
        return (
            f"its tokens have nearly one state (spread {spread:.4f}), and replaced "
            f"ones are hardly told from original ones (AUC {rtd_auc:.3f})"
        )
    return ""


def spread_of_random_tokens(model):
    """Returns the spread that a model's states of random tokens have, a float.

    Args:
        model: A `Pretrainer`.
    """
    texts, length = TRIAL
    ids = np.setdiff1d(np.arange(model.vocabulary_size), model.unmaskable_ids)
    shape = texts, min(length, model.max_length)
    inputs = {"token_ids": np.random.default_rng(0).choice(ids, shape).astype("int32")}
    inputs = model.text_inputs(inputs)
    spread = token_spread(model.token_states(inputs), inputs["padding_mask"])
    return float(ops.mean(spread))


def warn_of_one_state(model, source):
    """Warns if a model that was loaded from `source` has died."""
    spread = spread_of_random_tokens(model)
    if spread < ONE_STATE:
        warnings.warn(
            f"{source}: all tokens have one state (spread {spread:.4f}), so that what "
            "reads it tells no token from another. Its pretraining went wrong: take "
            "a model from before that (--keep_presets), or pretrain again with "
            "--beta_2 0.98, a lower --learning_rate or a longer --warmup_steps.",
            stacklevel=3,
        )
