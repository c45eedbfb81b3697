"""Auxiliary modules that learn labels, too."""

from functools import partial

import numpy as np
import pytest

from keras_corrupt.cross_view.tasks.shapes import draw_shapes
from tests.conftest import loss_and_gradients
from tests.cross_view.conftest import (
    batch_of_trees,
    make_image_classifier,
    make_parser,
    make_tagger,
    make_token_tagger,
    make_translator,
    one_batch,
    sentences_of,
    trees_of,
)
from tests.cross_view.translation.test_translator import (
    batch_of as batch_of_translations,
)

#: As gradients are compared, nothing is left to chance.
CERTAIN = {"labelled_dropout": 0.0, "unlabelled_dropout": 0.0}


def images(model, labelled):
    labels = np.arange(8) % 3 if labelled else None
    return model.batches(draw_shapes(8, 20)[0][:, 2:18], labels, 8, 0).batch(0)


def sentences(model, labelled):
    words, tags = sentences_of(4)
    return one_batch(model, words, tags if labelled else None)


def trees(model, labelled):
    words, _ = sentences_of(4)
    return batch_of_trees(model, words, trees_of(words) if labelled else None)


KINDS = {
    "tagger": (partial(make_tagger, **CERTAIN), sentences),
    "parser": (partial(make_parser, **CERTAIN), trees),
    "translator": (
        partial(make_translator, attention_dropout=0.0, beam_size=2, **CERTAIN),
        batch_of_translations,
    ),
    "images": (partial(make_image_classifier, perturbation="none", **CERTAIN), images),
    "token_tagger": (
        partial(make_token_tagger, dropout=0.0, unlabelled_dropout=0.0),
        sentences,
    ),
}


@pytest.mark.usefixtures("graphs")
@pytest.mark.parametrize("kind", KINDS)
def test_auxiliary_modules_alone_learn_more_than_they_did(kind):
    make, batch_of = KINDS[kind]
    model = make()
    found = {}
    for labelled in (True, False):
        inputs, targets = batch_of(model, labelled=labelled)

        def loss(inputs=inputs, targets=targets):
            outputs = model(inputs, training=True)
            return model.compute_loss(inputs, targets, outputs)

        for model.modules_learn_labels in (False, True):
            # Two programs of batch norms would differ by rounding.
            found[labelled, model.modules_learn_labels] = loss_and_gradients(
                loss, model, compiled=kind != "images"
            )
    own = {id(v) for module in model.auxiliary for v in module.trainable_variables}
    for labelled in (True, False):
        (before, without), (after, with_labels) = (
            found[labelled, learn] for learn in (False, True)
        )
        for variable in model.trainable_variables:
            a, b = without[id(variable)], with_labels[id(variable)]
            if labelled and id(variable) in own:
                assert not a.any() and b.any(), variable.path
            else:
                np.testing.assert_allclose(a, b, atol=1e-6, err_msg=variable.path)
        more = 0.0
        if labelled:
            inputs, targets = batch_of(model, labelled=True)
            logits = model.auxiliary_logits(inputs, model.encode(inputs, True))
            more = sum(
                float(model.supervised_loss(inputs, targets, {"logits": each})[0])
                for each in logits.values()
            )
            assert more > 0
        assert after - before == pytest.approx(more, rel=1e-4, abs=1e-5)


def test_baselines_have_no_modules_that_could_learn_labels():
    model = make_tagger(views=["word_dropout"])
    model.modules_learn_labels = True
    inputs, _ = sentences(model, labelled=True)
    assert "labelled_auxiliary" not in model(inputs, training=True)
