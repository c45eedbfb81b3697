import numpy as np
import pytest

from keras_corrupt import models
from keras_corrupt.encoders import TransformerEncoder
from keras_corrupt.training import AdamW
from tests.conftest import COMPILED, SIZES, make_inputs

IDS = {"mask_id": 4, "unmaskable_ids": (0, 2, 3)}
WIDE = SIZES["discriminator"] | {"embedding_size": 16}
#: System -> its arguments beside the encoder.
SYSTEMS = {
    "AllTokensMLM": {"generator": SIZES["generator"]},
    "CocoLM": {"generator": {}},
    "Electra": {"generator": SIZES["generator"]},
    "Electric": {"generator": SIZES["generator"]},
    "MaskedLM": {},
    "ReplaceMLM": {"generator": SIZES["generator"]},
    "Teams": {"generator_layers": 1},
    "UnigramElectra": {"noise": "uniform"},
}


@pytest.mark.parametrize("name", SYSTEMS)
def test_an_encoder_that_is_there_is_trained_and_saved(name, tmp_path):
    encoder = TransformerEncoder(**WIDE)
    before = [np.array(v) for v in encoder.trainable_variables]
    model = getattr(models, name)(encoder, **SYSTEMS[name], **IDS)
    assert model.encoder is encoder
    model.compile(AdamW(1e-2), jit_compile=COMPILED, run_eagerly=not COMPILED)
    model.train_on_batch(make_inputs())
    changes = zip(before, encoder.trainable_variables, strict=True)
    assert any(np.abs(a - np.array(b)).max() > 1e-3 for a, b in changes)
    model.save_to_preset(tmp_path / "preset")
    loaded = models.load_preset(tmp_path / "preset")
    inputs = make_inputs()
    np.testing.assert_array_equal(loaded.encoder(inputs), encoder(inputs))


def test_tables_of_an_encoder_that_is_there_cannot_be_differences():
    encoder = TransformerEncoder(**WIDE)
    tied = {"tied_embeddings": "gradient_disentangled"}
    with pytest.raises(ValueError, match="give its constructor arguments"):
        models.Electra(encoder, SIZES["generator"], **tied, **IDS)
