"""Checkpoints of runs whose optimizer, not the model, went through batches in parts.

Such an optimizer counted the parts, and had a sum of gradients for each variable, which
is zero after a whole step.
"""

from keras_corrupt.training.optimizer import saved_variables


def as_one_step(arrays, model, step=None):
    """Makes of a checkpoint's arrays those of an optimizer that counts steps.

    Args:
        arrays: Name -> array. Names are those of `checkpoint.state`, or numbers.
        model: The model, compiled.
        step: Steps that are done, or `None` if other phases did some of them.

    Raises:
        ValueError: The model goes through batches in another number of parts.
    """
    optimizer, slots = model.optimizer, len(model.trainable_variables)
    if optimizer.gradient_accumulation_steps:
        return arrays
    sums = [n for n in arrays if n.startswith("optimizer/accumulated_gradients/")]
    count = "optimizer/iterations"
    variables = len(saved_variables(optimizer)) + slots
    numbers = [f"optimizer.{i}" for i in range(variables)]
    if numbers[-1] in arrays:
        # They stand before the two moments, which are the last.
        kept = [arrays[n] for n in numbers[: -3 * slots] + numbers[-2 * slots :]]
        arrays = arrays | dict(zip(numbers, kept, strict=False))
        sums, count = numbers[-slots:], numbers[0]
    if not sums:
        return arrays
    steps, left = divmod(arrays[count], model.micro_batches)
    if left or step not in (None, steps):
        raise ValueError(
            "An earlier version began the run, and continues it with the --accumulate "
            "that it was begun with."
        )
    rest = {name: array for name, array in arrays.items() if name not in set(sums)}
    return rest | {count: steps}
