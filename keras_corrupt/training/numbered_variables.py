"""Checkpoints of the first format, which number their variables."""


def named(arrays, model):
    """Gives the arrays of such a checkpoint the names that variables have now.

    Args:
        arrays: A dict from `model.0`, `optimizer.0` and so on to arrays.
        model: The model, compiled.

    Returns:
        A dict from names to arrays.
    """
    raise NotImplementedError
