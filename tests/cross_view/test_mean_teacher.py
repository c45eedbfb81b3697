import keras
import numpy as np
from scipy.special import softmax

from tests.conftest import COMPILED
from tests.cross_view.conftest import (
    make_image_classifier,
    make_tagger,
    one_batch,
    sentences_of,
)


def predicting(model):
    return [w for net in model.networks.values() for w in net.get_weights()]


def test_targets_are_those_of_the_average_of_the_weights():
    tagger = make_tagger(views=["full"])
    tagger.learn_from_average(0.7)
    tagger.compile(keras.optimizers.SGD(0.5), jit_compile=COMPILED)
    sentences, tags = sentences_of(8)
    labelled, classes = one_batch(tagger, sentences, tags)
    unlabelled, _ = one_batch(tagger, sentences)
    average = [np.zeros_like(w) for w in predicting(tagger)]
    for update in range(1, 7):
        # The first ones are the mean of all so far.
        new = max(1 / update, 0.3)
        average = [
            a + new * (w - a) for a, w in zip(average, predicting(tagger), strict=True)
        ]
        if update < 6:
            tagger.train_on_batch(unlabelled if update % 2 else labelled, classes)
    outputs = tagger(unlabelled, training=True)
    teacher = make_tagger(views=["full"])
    own = np.array(teacher.teach(unlabelled))
    rest = iter(average)
    for network in teacher.networks.values():
        network.set_weights([next(rest) for _ in network.weights])
    expected = np.array(teacher.teach(unlabelled))
    assert np.abs(expected - own).max() > 0.1
    np.testing.assert_allclose(outputs["targets"], softmax(expected, -1), atol=1e-5)
    student = np.array(tagger.teach(unlabelled))
    assert np.abs(softmax(student, -1) - softmax(expected, -1)).max() > 1e-3


def test_the_average_is_no_weight_that_learns_or_is_saved(tmp_path):
    plain, taught = make_tagger(), make_tagger()
    taught.learn_from_average(0.9)
    assert len(taught.trainable_variables) == len(plain.trainable_variables)
    taught.save_to_preset(tmp_path / "preset")
    loaded = type(taught).from_preset(tmp_path / "preset")
    assert loaded.teacher is None
    for a, b in zip(predicting(taught), predicting(loaded), strict=True):
        np.testing.assert_array_equal(a, b)


def test_images_have_the_average_as_teacher_too():
    model = make_image_classifier(perturbation="none")
    model.learn_from_average(0.9)
    images = np.random.default_rng(0).integers(0, 256, (4, 16, 20, 3)).astype("uint8")
    inputs, _ = model.batches(images, None, 4).batch(0)
    first = np.array(model(inputs, training=True)["targets"])
    assert np.abs(first - 1 / 3).max() > 0.01
    for variable in model.primary.trainable_variables:
        variable.assign(-variable)
    second = np.array(model(inputs, training=True)["targets"])
    np.testing.assert_allclose(second, 1 / 3, atol=1e-6)  # the average of w and -w
