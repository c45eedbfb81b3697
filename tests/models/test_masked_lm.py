import math

import keras
import numpy as np
import pytest

from keras_corrupt.models import MaskedLM
from keras_corrupt.training import AdamW
from tests.conftest import COMPILED, SIZES
from tests.models.conftest import with_right_predictions

ENCODER = SIZES["discriminator"]
IDS = {"mask_id": 4, "unmaskable_ids": (0, 2, 3)}


def test_loss_equals_numpy(inputs):
    model = MaskedLM(ENCODER, **IDS)
    model.compile(optimizer=AdamW(1e-3))
    outputs = model(inputs)
    np.testing.assert_array_equal(
        outputs["mlm"].target_ids,
        np.take_along_axis(
            inputs["token_ids"], np.array(outputs["mlm"].masking.positions), 1
        ),
    )
    outputs = with_right_predictions(outputs)
    loss = float(model.compute_loss(inputs, y_pred=outputs))
    logits = np.array(outputs["mlm"].logits, "float64")
    weights = np.array(outputs["mlm"].masking.weights)
    targets = outputs["mlm"].target_ids
    logs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    nll = -np.take_along_axis(logs, targets[..., None], -1)[..., 0]
    assert loss == pytest.approx((nll * weights).sum() / weights.sum(), rel=1e-5)
    right = ((logits.argmax(-1) == targets) * weights).sum() / weights.sum()
    assert right > 0 and float(
        model.objectives["mlm"].accuracy.result()
    ) == pytest.approx(right)


def test_logits_are_those_of_the_tied_embeddings(inputs):
    network = MaskedLM(ENCODER, **IDS).network
    positions = np.tile(np.array([[1, 5]], "int32"), (6, 1))
    logits = np.array(network(inputs, positions))
    hidden = np.array(network.encoder(inputs))[:, [1, 5]]
    transform = network.head.transform
    h = hidden @ np.array(transform.kernel) + np.array(transform.bias)
    h = 0.5 * h * (1 + np.vectorize(math.erf)(h / np.sqrt(2)))
    h = (h - h.mean(-1, keepdims=True)) / np.sqrt(h.var(-1, keepdims=True) + 1e-12)
    table = np.array(network.encoder.embeddings.token.embeddings)
    np.testing.assert_allclose(logits, h @ table.T, atol=1e-4)


@pytest.mark.usefixtures("graphs")
def test_fit_beats_the_unigram_distribution():
    rng = np.random.default_rng(0)
    first = rng.integers(5, 50, (512, 1))
    ids = np.repeat(first, 16, axis=1).astype("int32")  # each sequence repeats a token
    x = {"token_ids": ids, "segment_ids": 0 * ids, "padding_mask": 0 * ids + 1}
    sizes = {"dropout": 0.0, "hidden_size": 32, "num_layers": 2}
    model = MaskedLM({**ENCODER, **sizes}, **IDS)
    model.compile(optimizer=AdamW(3e-3), jit_compile=COMPILED)
    model.fit(x, batch_size=64, epochs=15, verbose=0)
    result = model.evaluate(x, batch_size=64, verbose=0, return_dict=True)
    assert result["mlm_loss"] < 0.5 * np.log(45)


def test_keras_file_round_trip(tmp_path, inputs):
    model = MaskedLM(ENCODER, mask_rate=0.3, **IDS)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert loaded.get_config() == model.get_config()
    a, b = model(inputs), loaded(inputs)  # the generators' states are saved as well
    np.testing.assert_array_equal(
        np.array(a["mlm"].token_ids), np.array(b["mlm"].token_ids)
    )
    np.testing.assert_allclose(
        np.array(a["mlm"].logits), np.array(b["mlm"].logits), atol=1e-6
    )
