import numpy as np
import pytest

from keras_corrupt.downstream import TextClassifier
from keras_corrupt.downstream.optimizer import optimizer_of
from keras_corrupt.models.fine_tuning import FineTuningSettings
from tests.downstream.conftest import ENCODER


@pytest.mark.parametrize("rule, extra", [("paper", 0), ("released", 1)])
def test_every_variable_learns_at_the_rate_of_its_depth(tokenizer, rule, extra):
    encoder = {**ENCODER, "num_layers": 3, "embedding_size": 12}
    model = TextClassifier(encoder, tokenizer, labels=["a", "b"])
    settings = FineTuningSettings(
        learning_rate=0.01,
        epochs=1,
        layer_decay=0.7,
        layer_decay_rule=rule,
        warmup_fraction=0,
    )
    optimizer = optimizer_of(settings, 10, num_layers=3)
    variables = model.trainable_variables
    before = [np.array(v) for v in variables]
    optimizer.build(variables)
    optimizer.apply([np.ones(v.shape, "float32") for v in variables], variables)
    # All gradients are alike, so the steps differ by the rates alone.
    steps = {
        v.path: np.unique((old - np.array(v)).round(7))
        for v, old in zip(variables, before, strict=True)
    }
    head = steps["head/dense/kernel"].mean()
    assert head > 0
    depths = {"head": 0, "layer_2": 1, "layer_1": 2, "layer_0": 3, "embedding": 4}
    for path, step in steps.items():
        part = next(part for part in depths if part in path)
        expected = 0.7 ** (depths[part] + (extra if part != "head" else 0))
        np.testing.assert_allclose(step / head, expected, rtol=1e-3, err_msg=path)
    assert len(steps) == len(variables)
