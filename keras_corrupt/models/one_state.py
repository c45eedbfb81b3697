"""Networks that have died: all tokens have one state."""

import warnings

import numpy as np
from keras import ops

from keras_corrupt.encoders.token_spread import token_spread

#: A spread below this means that all tokens have one state.
ONE_STATE = 0.001
#: Random tokens by which a loaded model is judged: texts and their length.
TRIAL = 2, 8


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
