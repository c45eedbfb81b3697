"""The training step of each system can be compiled for GPUs and for TPUs."""

import keras
import numpy as np
import pytest

from keras_corrupt import models
from keras_corrupt.devices import hardware_random
from keras_corrupt.training import AdamW
from tests.conftest import SIZES, make_inputs

pytestmark = pytest.mark.skipif(
    keras.backend.backend() != "jax", reason="accelerators are JAX's"
)

ENCODER = SIZES["discriminator"]
IDS = {name: SIZES[name] for name in ("mask_id", "unmaskable_ids")}
SYSTEMS = {
    "MaskedLM": {"encoder": ENCODER},
    "Electra": {name: SIZES[name] for name in ("discriminator", "generator")},
    "Electric": {"discriminator": ENCODER, "generator": {}},
    "Teams": {"discriminator": ENCODER, "generator_layers": 1, "num_negatives": 3},
    "CocoLM": {
        "discriminator": {**ENCODER, "embedding_size": 16},
        "generator": {"num_layers": 1},
    },
}


@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16"])
@pytest.mark.parametrize("system", SYSTEMS)
def test_a_step_lowers(system, dtype, monkeypatch):
    import jax

    monkeypatch.setattr(hardware_random, "is_used", lambda: True)
    model = getattr(models, system)(**SYSTEMS[system], **IDS, dtype=dtype)
    model.compile(AdamW(1e-4, global_clipnorm=1.0), jit_compile=False)
    model.optimizer.build(model.trainable_variables)
    inputs = make_inputs()
    model._symbolic_build(data_batch=(inputs,))
    state = model._get_jax_state(
        trainable_variables=True,
        non_trainable_variables=True,
        optimizer_variables=True,
        metrics_variables=True,
    )
    shapes = jax.tree.map(
        lambda x: jax.ShapeDtypeStruct(np.shape(x), x.dtype), (state, (inputs,))
    )
    exported = jax.export.export(jax.jit(model.train_step), platforms=["cuda", "tpu"])(
        *shapes
    )
    program = exported.mlir_module()
    # Nothing goes back to Python, and numbers are drawn in hardware.
    assert "callback" not in program
    assert "stablehlo.rng_bit_generator" in program
    if dtype == "mixed_bfloat16":
        products = [x for x in program.splitlines() if "stablehlo.dot_general" in x]
        assert sum("bf16" in x for x in products) > 0.8 * len(products)
