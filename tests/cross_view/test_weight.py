"""What the loss without labels counts."""

import numpy as np
import pytest

from keras_corrupt.cross_view import CrossViewMultiTask
from tests.conftest import COMPILED
from tests.cross_view.conftest import make_parser, make_tagger, one_batch, sentences_of
from tests.cross_view.test_module_labels import CERTAIN, KINDS


def losses(model, inputs, targets):
    """The loss, and the part of it that is learned without labels, unweighted."""
    model.reset_metrics()
    found = model.train_on_batch(inputs, targets, return_dict=True)
    return found["loss"], found["cross_view_loss"]


@pytest.mark.parametrize("kind", ["tagger", "translator", "images"])
def test_the_weight_rises_with_each_update_without_labels(kind):
    make, batch_of = KINDS[kind]
    model = make(cross_view_weight=0.5, cross_view_ramp=2)
    model.compile("sgd", jit_compile=COMPILED, run_eagerly=not COMPILED)
    batches = {labelled: batch_of(model, labelled=labelled) for labelled in (0, 1)}
    for labelled, weight in [(1, None), (0, 0.25), (1, None), (0, 0.5), (0, 0.5)]:
        loss, without_labels = losses(model, *batches[labelled])
        if labelled:
            assert without_labels == 0 and loss > 0
        else:
            assert loss == pytest.approx(weight * without_labels, rel=1e-4)
            assert without_labels > 0


def test_several_tasks_have_one_weight():
    tagger = make_tagger(cross_view_weight=3.0, cross_view_ramp=2, **CERTAIN)
    parser = make_parser(encoder=tagger.encoder, **CERTAIN)
    model = CrossViewMultiTask({"tags": tagger, "trees": parser})
    model.compile("sgd", jit_compile=COMPILED, run_eagerly=not COMPILED)
    inputs, targets = one_batch(tagger, sentences_of(4)[0])
    inputs["task"] = np.full_like(inputs["labelled"], -1)
    for weight in (1.5, 3.0, 3.0):
        before = parts(model, inputs)
        loss, _ = losses(model, inputs, targets)
        assert loss == pytest.approx(weight * before, rel=1e-4)


def parts(model, inputs):
    """The sum of the tasks' losses without labels."""
    seen = np.array(model.cross_view_weight.seen)
    found = model(inputs, training=True)
    model.cross_view_weight.seen.assign(seen)
    return sum(
        float(part.cross_view_loss(model.inputs_of(i, inputs), outputs)[0])
        for i, (part, outputs) in enumerate(zip(model.parts, found, strict=True))
    )


def test_without_a_rise_nothing_is_counted():
    weights = [v.path for v in make_tagger(cross_view_weight=0.5).weights]
    assert len(weights) == len(make_tagger().weights)
    assert not any("seen" in path for path in weights)


@pytest.mark.parametrize("changes", [{"cross_view_weight": 0}, {"cross_view_ramp": -1}])
def test_bad_weights(changes):
    with pytest.raises(ValueError, match="`cross_view_weight` must be above 0, `cross"):
        make_tagger(**changes)
