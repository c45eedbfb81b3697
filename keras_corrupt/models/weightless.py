"""Models that have shapes and no values: enough to count what they cost."""

import contextlib

import keras
from keras.src.backend.common import global_state


@contextlib.contextmanager
def weightless():
    """Has models made whose variables take no memory, however large they are.

    Their methods that count work; to call or to train them makes no sense.

    Example:

    >>> from keras_corrupt.models import Electra
    >>> with weightless():
    ...     model = Electra.from_preset("large")
    >>> f"{model.count_params():,}"
    '354,659,387'
    """
    # Keras keeps a list of variables without values, and gives them some at the end of
    # the next scope. No public function takes them off that list.
    waiting = global_state.get_global_attribute(
        "uninitialized_variables", [], set_to_default=True
    )
    before = len(waiting)
    try:
        with keras.StatelessScope(initialize_variables=False):
            yield
    finally:
        del waiting[before:]
