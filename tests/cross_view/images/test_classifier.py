import json

import keras
import numpy as np
import pytest
from scipy.special import log_softmax, rel_entr, softmax

from keras_corrupt.cross_view import CrossViewImageClassifier
from keras_corrupt.cross_view.images.encoder import KERNELS, ImageEncoder
from keras_corrupt.cross_view.images.setup import UseAverage
from keras_corrupt.cross_view.run.cross_view_run import averaged
from keras_corrupt.cross_view.tasks.shapes import draw_shapes
from tests.conftest import COMPILED, gradients_of
from tests.cross_view.conftest import make_image_classifier

IMAGES = draw_shapes(12, 20)[0][:, 2:18]
LABELS = np.arange(12) % 3


def batch_of(model, labelled=True, **moved):
    labels = LABELS if labelled else None
    return model.batches(IMAGES, labels, len(IMAGES), 0, **moved).batch(0)


def randomize(model):
    """Gives all weights values that tell them apart, norms' statistics too."""
    rng = np.random.default_rng(0)
    for variable in (*model.encoder.weights, *model.primary.weights):
        values = rng.normal(0, 0.3, variable.shape)
        positive = variable.path.endswith(("/variance", "/scale"))
        variable.assign(0.5 + np.abs(values) if positive else values)


def network(model, images, by_batch=False):
    """The features and the logits of images, in NumPy."""
    x = np.array(images, "float64")
    for i, (convolution, norm) in enumerate(
        zip(model.encoder.convolutions, model.encoder.norms, strict=True)
    ):
        size = KERNELS[i]
        edge = size // 2 if i < 6 else 0
        x = np.pad(x, [(0, 0), (edge, edge), (edge, edge), (0, 0)])
        windows = np.lib.stride_tricks.sliding_window_view(x, (size, size), (1, 2))
        x = np.einsum("bhwcij,ijcf->bhwf", windows, np.array(convolution.kernel))
        mean, variance = np.array(norm.mean), np.array(norm.variance)
        if by_batch:
            mean, variance = x.mean((0, 1, 2)), x.var((0, 1, 2))
        x = (x - mean) / np.sqrt(variance + 1e-6) * np.array(norm.scale)
        x = x + np.array(norm.offset)
        x = np.where(x > 0, x, 0.1 * x)
        if i in (2, 5):
            batch, height, width, channels = x.shape
            x = x[:, : height // 2 * 2, : width // 2 * 2]
            x = x.reshape(batch, height // 2, 2, width // 2, 2, channels).max((2, 4))
    kernel, bias = (np.array(v) for v in model.primary.weights)
    return x, x.mean((1, 2)) @ kernel + bias


@pytest.mark.parametrize("by_batch", [False, True])
def test_the_network_is_miyatos(by_batch):
    model = make_image_classifier()
    randomize(model)
    inputs, _ = batch_of(model)
    features, logits = network(model, inputs["images"], by_batch)
    assert features.shape == (12, 2, 3, 4)
    found = model.encoder(inputs["images"], by_batch=by_batch)
    np.testing.assert_allclose(found, features, atol=1e-4)
    # Targets are made by the batch's statistics, predictions by the moving ones.
    outputs = model.teach(inputs) if by_batch else model(inputs)["logits"]
    np.testing.assert_allclose(outputs, logits, atol=1e-4)


def test_presets_are_appendix_d():
    model = CrossViewImageClassifier.from_preset("base", labels=list("0123456789"))
    filters = [v.shape[-1] for v in (c.kernel for c in model.encoder.convolutions)]
    assert filters == [128] * 3 + [256] * 3 + [512, 256, 128]
    assert [c.kernel.shape[0] for c in model.encoder.convolutions] == [3] * 7 + [1] * 2
    assert model.encoder.grid == (6, 6)
    (module,) = model.auxiliary
    assert tuple(module.kernel.shape) == (36, 128, 10)
    # Multiplications of the convolutions on 32 x 32, 16 x 16 and 6 x 6 places.
    products = 1024 * 9 * 128 * (3 + 128 + 128)
    products += 256 * 9 * (128 * 256 + 2 * 256 * 256)
    products += 36 * (9 * 256 * 512 + 512 * 256 + 256 * 128)
    assert 2 * products < model.encoder.flops() < 1.02 * 2 * products


@pytest.mark.parametrize("axis", [0, 1])
def test_a_module_sees_a_patch_of_21_to_29_pixels_and_all_of_it(axis):
    model = make_image_classifier(image_shape=(32, 32, 3), channels=[2] * 9)
    for convolution in model.encoder.convolutions:
        # All that is seen counts: nothing cancels, or is less than a maximum.
        convolution.kernel.assign(0.1 + np.abs(np.array(convolution.kernel)))
    (module,) = model.auxiliary
    module.kernel.assign(np.abs(np.array(module.kernel)))
    images = np.ones((33, 32, 32, 3), "float32")
    for place in range(32):
        line = (place,) if axis == 0 else (slice(None), place)
        images[(place + 1, *line)] += 100.0
    logits = np.array(module(model.encoder(images))).reshape(33, 6, 6, 3)
    changed = (logits[1:] != logits[0]).any(axis=-1)  # [32, 6, 6]
    sizes = []
    for i in range(6):
        first, last = max(0, 4 * i - 9), min(31, 4 * i + 20)
        expected = (np.arange(32) >= first) & (np.arange(32) <= last)
        modules = changed[:, i] if axis == 0 else changed[:, :, i]
        assert (modules == expected[:, None]).all()
        sizes.append(last - first + 1)
    assert sizes == [21, 25, 29, 29, 25, 21]


def test_each_region_has_a_softmax_of_its_own():
    model = make_image_classifier()
    (module,) = model.auxiliary
    rng = np.random.default_rng(0)
    features = rng.normal(size=(2, 2, 3, 4)).astype("float32")
    module.bias.assign(rng.normal(size=(6, 3)))
    kernel, bias = np.array(module.kernel), np.array(module.bias)
    found = np.array(module(features))
    for region in range(6):
        vector = features[:, region // 3, region % 3]
        expected = vector @ kernel[region] + bias[region]
        np.testing.assert_allclose(found[:, region], expected, atol=1e-5)


@pytest.mark.parametrize(
    "arguments, students",
    [
        ({"perturbation": "none"}, 6),
        ({"perturbation": "random"}, 6),
        ({"perturbation": "adversarial", "views": ["regions", "vat"]}, 7),
        ({"views": ["vat"], "cross_view_weight": 0.5}, 1),
    ],
)
def test_losses(arguments, students):
    model = make_image_classifier(**arguments, label_smoothing=0.1)
    inputs, targets = batch_of(model)
    inputs["padding_mask"][3] = 0
    real = inputs["padding_mask"] > 0
    outputs = model(inputs, training=True)
    found = float(model.compute_loss(inputs, targets, outputs))
    known = 0.9 * np.eye(3)[targets] + 0.1 / 3
    each = -(known * log_softmax(np.array(outputs["logits"], "float64"), -1)).sum(-1)
    assert found == pytest.approx(each[real].mean(), rel=1e-4)

    inputs["labelled"] = inputs["labelled"] * 0
    outputs = model(inputs, training=True)
    found = float(model.compute_loss(inputs, targets, outputs))
    _, logits = network(model, inputs["images"], by_batch=True)
    np.testing.assert_allclose(outputs["targets"], softmax(logits, -1), atol=1e-4)
    assert len(outputs["auxiliary"]) == students
    divergences = [
        rel_entr(
            np.array(outputs["targets"], "float64"),
            softmax(np.array(student, "float64"), -1),
        ).sum(-1)
        for student in outputs["auxiliary"]
    ]
    expected = arguments.get("cross_view_weight", 1.0) * sum(divergences)[real].mean()
    assert found == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("perturbation", ["none", "random", "adversarial"])
def test_students_see_images_with_noise_of_a_norm(perturbation, monkeypatch):
    model = make_image_classifier(perturbation=perturbation, vat_norm=3.0)
    inputs, _ = batch_of(model, labelled=False)
    seen = []
    encode = CrossViewImageClassifier.encode

    def recorded(self, inputs, training=False, noise=None):
        seen.append(None if noise is None else np.array(noise))
        return encode(self, inputs, training, noise)

    monkeypatch.setattr(CrossViewImageClassifier, "encode", recorded)
    encoded = model.encode(inputs, True)
    model.learned(inputs, encoded)
    assert seen[0] is None and len(seen) == 1 + (perturbation != "none")
    if perturbation != "none":
        norms = np.sqrt((seen[1] ** 2).sum((1, 2, 3)))
        np.testing.assert_allclose(norms, 3.0, rtol=1e-4)


def test_adversarial_noise_changes_predictions_more_than_others():
    model = make_image_classifier(vat_norm=2.0)
    randomize(model)
    inputs, _ = batch_of(model, labelled=False)
    targets = softmax(np.array(model.teach(inputs), "float64"), -1)
    noise = np.array(model.adversarial_noise(inputs, targets))
    norms = np.sqrt((noise**2).sum((1, 2, 3)))
    np.testing.assert_allclose(norms, 2.0, rtol=1e-4)

    def divergence(noise):
        logits = np.array(model.teach(inputs, noise.astype("float32")), "float64")
        return rel_entr(targets, softmax(logits, -1)).sum()

    others = np.random.default_rng(0).normal(size=(10, *noise.shape))
    others *= 2.0 / np.sqrt((others**2).sum((2, 3, 4), keepdims=True))
    assert divergence(noise) > 1.5 * max(map(divergence, others))


@pytest.mark.parametrize("labelled", [True, False])
def test_each_kind_of_batch_trains_its_own_modules(labelled):
    model = make_image_classifier()
    inputs, targets = batch_of(model, labelled)

    def loss():
        return model.compute_loss(inputs, targets, model(inputs, training=True))

    found = gradients_of(loss, model)
    (module,) = model.auxiliary
    assert found[id(model.primary.kernel)].any() == labelled
    assert found[id(module.kernel)].any() != labelled
    assert found[id(model.encoder.convolutions[0].kernel)].any()


@pytest.fixture(scope="module")
def trained():
    """A compiled model, its optimizer averaging the weights."""
    keras.utils.set_random_seed(0)
    model = make_image_classifier(labelled_dropout=0.0)
    optimizer = keras.optimizers.Adam(0.01, use_ema=True, ema_momentum=0.5)
    model.compile(optimizer, jit_compile=COMPILED)
    return model


def test_statistics_are_those_of_labelled_batches(trained):
    norm = trained.encoder.norms[0]
    before = [np.array(v) for v in trained.encoder.moving_statistics]
    trained.train_on_batch(*batch_of(trained, labelled=False))
    for old, variable in zip(before, trained.encoder.moving_statistics, strict=True):
        np.testing.assert_array_equal(variable, old)
    inputs, targets = batch_of(trained)
    x = np.array(trained.encoder.convolutions[0](inputs["images"]), "float64")
    trained.train_on_batch(inputs, targets)
    expected = 0.99 * before[0] + 0.01 * x.mean((0, 1, 2))
    np.testing.assert_allclose(norm.mean, expected, atol=1e-6)
    expected = 0.99 * before[1] + 0.01 * x.var((0, 1, 2))
    np.testing.assert_allclose(norm.variance, expected, rtol=1e-4)


def test_the_average_has_statistics_of_its_own(trained):
    for _ in range(3):
        trained.train_on_batch(*batch_of(trained))
    before = trained.get_weights()
    batches = trained.batches(IMAGES, LABELS, len(IMAGES), 0)
    inputs, _ = batches.batch(0)
    with averaged(trained, UseAverage(trained, batches)):
        kernel = trained.encoder.convolutions[0].kernel
        average = trained.optimizer._model_variables_moving_average
        assert any(
            v.shape == kernel.shape and np.array_equal(v, kernel) for v in average
        )
        # Of one batch: so what is predicted is what the batch's own statistics give.
        _, logits = network(trained, inputs["images"], by_batch=True)
        np.testing.assert_allclose(trained(inputs)["logits"], logits, atol=1e-4)
    for a, b in zip(trained.get_weights(), before, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.usefixtures("graphs")
def test_it_learns_shapes():
    keras.utils.set_random_seed(0)
    images, labels = draw_shapes(128, 16, seed=3)
    model = CrossViewImageClassifier.from_preset(
        "tiny",
        image_shape=(16, 16, 3),
        labels=list("0123"),
        preprocessing="colours",
        views=[],
        labelled_dropout=0.0,
    )
    model.preprocessing.fit(images)
    optimizer = keras.optimizers.Adam(0.01, use_ema=True, ema_momentum=0.8)
    model.compile(optimizer, jit_compile=COMPILED)
    batches = model.batches(images, labels, 32, 0)
    for i in range(50):
        model.train_on_batch(*batches.batch(i))
    with averaged(model, UseAverage(model, batches)):
        found = model.predictions(images)
    assert np.mean([int(a) == b for a, b in zip(found, labels, strict=True)]) > 0.6


def test_a_preset_has_what_predicts(tmp_path):
    model = make_image_classifier(preprocessing="zca", image_shape=(12, 12, 3))
    images = IMAGES[:, :12, :12]
    model.preprocessing.fit(images)
    randomize(model)
    model.save_to_preset(tmp_path / "preset")
    loaded = CrossViewImageClassifier.from_preset(tmp_path / "preset")
    for a, b in zip(
        (v for network in model.networks.values() for v in network.weights),
        (v for network in loaded.networks.values() for v in network.weights),
        strict=True,
    ):
        np.testing.assert_array_equal(a, b)
    assert loaded.predictions(images) == model.predictions(images, batch_size=5)
    assert json.loads(json.dumps(loaded.get_config())) == model.get_config()
    content = json.loads((tmp_path / "preset" / "config.json").read_text())
    assert model.parameters_of(content["config"]) == sum(
        network.count_params() for network in model.networks.values()
    )
    content["config"]["channels"] = [10**6] * 9
    (tmp_path / "preset" / "config.json").write_text(json.dumps(content))
    with pytest.raises(ValueError, match="more than the weights"):
        CrossViewImageClassifier.from_preset(tmp_path / "preset")


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"image_shape": (11, 32, 3)}, "`image_shape` must be height and width, 12"),
        ({"image_shape": (32, 32)}, "`image_shape` must be"),
        ({"channels": [4] * 8}, "`channels` must be 9 positive whole numbers"),
        ({"channels": [4] * 8 + [0]}, "`channels` must be 9 positive whole numbers"),
        ({"preprocessing": "pca"}, "`preprocessing` must be 'zca' or 'colours'"),
        ({"views": ["future"]}, "`views` must be different ones of regions"),
        ({"perturbation": "vat"}, "`perturbation` must be one of none, random"),
        ({"vat_norm": 0}, "`vat_norm` must be above 0"),
        ({"cross_view_weight": 0}, "`cross_view_weight` must be above 0"),
        ({"labelled_dropout": 1.0}, "`labelled_dropout` must be"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        make_image_classifier(**arguments)


def test_images_are_bytes_of_one_size():
    model = make_image_classifier()
    for images in (IMAGES / 255.0, IMAGES[:, :12], IMAGES[0]):
        with pytest.raises(ValueError, match=r"uint8 \[images, 16, 20, 3\]; got"):
            model.predictions(images)


def test_an_update_is_three_passes_and_those_of_views():
    def flops(**arguments):
        return make_image_classifier(**arguments).update_flops()

    model = make_image_classifier()
    head = 2 * 4 * 3 + 3
    forward = model.encoder.flops() + head
    training = 3 * (model.encoder.flops(training=True) + head)
    modules = 3 * 6 * head
    assert flops(views=[]) == training
    found = flops(perturbation="none")
    assert found == training + (forward + modules) / 2
    found = flops(perturbation="random")
    assert found == training + (forward + training + modules) / 2
    noisy = training + (3 * forward + training) / 2
    assert flops(views=["vat"]) == noisy
    for views in (["regions"], ["regions", "vat"]):  # which see the same noise
        assert flops(views=views) == noisy + modules / 2


def test_odd_sizes_lose_their_last_row():
    encoder = ImageEncoder((13, 30, 1), channels=[2] * 9)
    assert encoder(np.zeros((1, 13, 30, 1), "float32")).shape == (1, 1, 5, 2)
    assert encoder.grid == (1, 5)
