"""Checkpoints of the first format, which number their variables."""

import keras

from keras_corrupt.heads import VocabularyHead
from keras_corrupt.training.optimizer import saved_variables


def rename(arrays, model, names):
    """Gives the arrays of such a checkpoint the names that variables have now.

    Args:
        arrays: A dict from `model.0`, `optimizer.0` and so on to arrays.
        model: The model, compiled.
        names: The names of all its variables and its optimizer's, by `id`.

    Returns:
        A dict from names to arrays. A checkpoint of another model has names left that
        no variable has.
    """
    numbered = _numbered(model)
    return {
        names[id(numbered[number])] if number in numbered else number: array
        for number, array in arrays.items()
    }


def _numbered(model):
    variables = _former_order(model)
    found = {f"model.{i}": variable for i, variable in enumerate(variables)}
    # The optimizer has lists with a variable for each of the model's.
    now = {id(v): i for i, v in enumerate(model.trainable_variables)}
    former = [now[id(v)] for v in variables if id(v) in now]
    places = {
        id(variable): (values, i)
        for values in vars(model.optimizer).values()
        if isinstance(values, list) and len(values) == len(former)
        for i, variable in enumerate(values)
        if isinstance(variable, keras.Variable) and id(variable) not in now
    }
    for number, variable in enumerate(saved_variables(model.optimizer)):
        if id(variable) in places:
            values, i = places[id(variable)]
            variable = values[former[i]]
        found[f"optimizer.{number}"] = variable
    return found


def _former_order(model):
    """Lists the model's variables as they stood before the heads were layers.

    The bias of a vocabulary was the first of its network's variables.
    """
    inner = {id(v) for network in model.layers for v in network.variables}
    found = [v for v in model.variables if id(v) not in inner]
    for network in model.layers:
        head = getattr(network, "head", None)
        found += [head.bias] if isinstance(head, VocabularyHead) else []
        found += network.variables
    return list({id(v): v for v in found}.values())
