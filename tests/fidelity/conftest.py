"""What the papers' formulas need, in NumPy, and the recipes."""

import importlib.util
import math
from pathlib import Path

import numpy as np

RECIPES = Path(__file__).parents[2] / "recipes"


def recipe(name):
    spec = importlib.util.spec_from_file_location(name, RECIPES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def randomise(model):
    """Gives all variables, biases and norms too, values that show in the output."""
    rng = np.random.default_rng(0)
    for variable in model.trainable_variables:
        variable.assign(rng.normal(scale=0.5, size=variable.shape))


def gelu(x):
    return 0.5 * x * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def dense(layer, x):
    return x @ np.array(layer.kernel) + np.array(layer.bias)


def layer_norm(layer, x):
    x = (x - x.mean(-1, keepdims=True)) / x.std(-1, keepdims=True)
    return x * np.array(layer.gamma) + np.array(layer.beta)
