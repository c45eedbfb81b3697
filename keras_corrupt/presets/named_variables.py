"""Names for the variables of a model that do not depend on the order of its making.

A variable is named by the attributes that lead to it: `encoder/layers_0/norm/gamma`.
Keras's own paths are no names: two networks can have equal paths, and an automatic
part of a path counts the objects that were made before.
"""

import keras

#: What an attribute can be to lead to variables.
PARTS = keras.Variable, keras.random.SeedGenerator, keras.layers.Layer


def named_variables(layer):
    """Names all variables of a layer or model, also of random generators.

    A variable that networks share has the name by which it is reached first.

    Args:
        layer: A `keras.layers.Layer` or `keras.Model`. Metrics have no names.

    Returns:
        A dict from names to `keras.Variable`s.

    Raises:
        ValueError: Two variables have one name, or one cannot be reached by attributes
            that are layers, or lists of layers.

    Example:

    >>> dense = keras.layers.Dense(2)
    >>> dense.build((None, 3))
    >>> sorted(named_variables(dense))
    ['bias', 'kernel']
    """
    names, seen = {}, set()

    def visit(item, name):
        if id(item) in seen:
            return
        seen.add(id(item))
        if isinstance(item, keras.random.SeedGenerator):
            item = item.state
        if isinstance(item, keras.Variable):
            if name in names:
                raise ValueError(f"Two variables of {layer.name} are named {name}.")
            names[name] = item
            return
        for attribute, value in list(vars(item).items()):
            if isinstance(value, PARTS):
                visit(value, _joined(name, attribute.strip("_")))
            elif isinstance(value, (list, tuple)) and not attribute.startswith("_"):
                for i, part in enumerate(value):
                    if isinstance(part, PARTS):
                        visit(part, _joined(name, f"{attribute.strip('_')}_{i}"))

    visit(layer, "")
    reached = {id(variable) for variable in names.values()}
    lost = [v.path for v in layer.variables if id(v) not in reached]
    if lost:
        raise ValueError(
            f"Variables of {layer.name} that no attribute leads to: {lost}. Make the "
            "layers that hold them attributes, or put them into a list that is one."
        )
    return names


def named_weights(network):
    """Returns the named variables of a network but for its random generators'."""
    weights = {id(variable) for variable in network.weights}
    return {n: v for n, v in named_variables(network).items() if id(v) in weights}


def _joined(name, attribute):
    return f"{name}/{attribute}" if name else attribute
