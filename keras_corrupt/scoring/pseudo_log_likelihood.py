r"""Pseudo-log-likelihoods (Wang and Cho, 2019; Clark's thesis, 5.4.5).

    PLL(x) = sum over tokens t of log p(x_t | x_\t)

x_\t is the text without its token t. The sum leaves out special tokens and padding.
"""

import keras
import numpy as np
from keras import ops

from keras_corrupt.corruption import maskable_tokens
from keras_corrupt.kernels import FusedSteps
from keras_corrupt.models import Pretrainer
from keras_corrupt.models.registry import known_classes, registered_name

#: Lengths are rounded up to a multiple of this: a program is compiled for each.
LENGTH_STEP = 8


def pseudo_log_likelihoods(model, texts, batch_size=32):
    """Adds up what a model says of each token of a text, given all the others.

    Of one pass are those of `Electric` (minus its energies, normalised as far as it has
    learned to be), of `TwoTower` (exact probabilities of the model) and of `ElectraTT`
    (an estimate from generator and discriminator, not normalised). `MaskedLM` takes a
    pass for each token, masked in turn; its probabilities are exact.

    Texts of like length share a batch.

    Args:
        model: A model that gives tokens probabilities, with a tokenizer.
        texts: A list of strings, or of pairs of strings.
        batch_size: Texts in a batch.

    Returns:
        float32 `[texts]`, NumPy, in nats.

    Raises:
        ValueError: The model cannot do it, or lacks its tokenizer; a text is too long
            for it; `texts` is empty or no list; `batch_size` is less than 1.

    Example:

    >>> from keras_corrupt.models import Electric
    >>> from keras_corrupt.tokenizers import SPECIAL_TOKENS, WordPieceTokenizer
    >>> tokenizer = WordPieceTokenizer([*SPECIAL_TOKENS, "a", "cat", "sleeps"])
    >>> model = Electric.from_preset("tiny", tokenizer=tokenizer)
    >>> pseudo_log_likelihoods(model, ["a cat sleeps", "sleeps a cat"]).shape
    (2,)
    """
    check(model)
    if isinstance(texts, str):
        raise ValueError("`texts` must be a list of strings; got one string.")
    if not batch_size >= 1:
        raise ValueError(f"`batch_size` must be 1 or more; got {batch_size!r}.")
    packed = model.tokenizer.pack(list(texts), model.max_length)
    lengths = packed["padding_mask"].sum(axis=1)
    batch_size = min(batch_size, len(lengths))
    scores, sums = np.zeros(len(lengths), "float32"), _Sums(model)
    order = np.argsort(-lengths, kind="stable")  # the longest first: memory will do
    for start in range(0, len(order), batch_size):
        rows = order[start : start + batch_size]
        # The last batch is filled up, so that it needs no program of its own.
        filled = np.resize(rows, batch_size)
        length = -(-lengths[rows[0]] // LENGTH_STEP) * LENGTH_STEP
        batch = _of_length(packed, filled, min(length, model.max_length))
        scores[rows] = sums.predict_on_batch(batch)[: len(rows)]
    return scores


def check(model):
    """Raises a `ValueError` unless a model can give pseudo-log-likelihoods of texts."""
    if not _gives_probabilities(type(model)):
        able = sorted(
            registered_name(cls)
            for cls in known_classes(Pretrainer)
            if _gives_probabilities(cls)
        )
        raise ValueError(
            f"{type(model).__name__} gives tokens no probabilities. Use one of the "
            f"models that do: {', '.join(able)}."
        )
    if model.tokenizer is None:
        raise ValueError(
            "Raw strings need the model's tokenizer: load a saved preset, or pass "
            "`tokenizer` to `from_preset`."
        )


def _gives_probabilities(cls):
    base = Pretrainer.token_log_probabilities
    return getattr(cls, "token_log_probabilities", base) is not base


class _Sums(FusedSteps, keras.Model):
    """The sums over the tokens of each text, so that Keras compiles them as a whole."""

    def __init__(self, model):
        super().__init__(name="sums")  # TensorFlow wants no leading underscore
        self.model = model
        self.built = True

    def call(self, inputs):
        logs = self.model.token_log_probabilities(inputs)
        learned = maskable_tokens(inputs, self.model.unmaskable_ids)
        return ops.sum(ops.where(learned, logs, 0.0), axis=1)


def _of_length(packed, rows, length):
    """Returns some rows of packed texts, cut or padded to a length."""
    wider = max(0, length - packed["token_ids"].shape[1])
    # What stands where `padding_mask` is 0 plays no part.
    return {
        name: np.pad(array[rows], ((0, 0), (0, wider)))[:, :length]
        for name, array in packed.items()
    }
