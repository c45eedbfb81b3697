"""The training step of each system can be compiled for GPUs and for TPUs."""

import contextlib

import keras
import numpy as np
import pytest

from keras_corrupt import gpu_kernels, models
from keras_corrupt.devices import (
    dropout_attention,
    flash_attention,
    hardware_random,
    splash_attention,
)
from keras_corrupt.training import AdamW
from tests.conftest import SIZES, make_inputs
from tests.cross_view.conftest import (
    make_parser,
    make_token_tagger,
    make_translator,
    one_batch,
    sentences_of,
)

pytestmark = pytest.mark.skipif(
    keras.backend.backend() != "jax", reason="accelerators are JAX's"
)

ENCODER = SIZES["discriminator"]
RELATIVE = {"relative_positions": {"num_buckets": 8, "max_distance": 16}}
IDS = {name: SIZES[name] for name in ("mask_id", "unmaskable_ids")}
BOTH = {name: SIZES[name] for name in ("discriminator", "generator")}
SYSTEMS = {
    "MaskedLM": {"encoder": ENCODER},
    "Electra": BOTH,
    "AdversarialElectra": BOTH,
    "UnigramElectra": {"discriminator": ENCODER},
    "ReplaceMLM": BOTH,
    "AllTokensMLM": BOTH,
    "Electric": {"discriminator": ENCODER, "generator": {}},
    "ElectraTT": {"discriminator": ENCODER, "generator": {}},
    "TwoTower": {"encoder": ENCODER},
    "Teams": {"discriminator": ENCODER, "generator_layers": 1, "num_negatives": 3},
    "CocoLM": {
        "discriminator": {**ENCODER, "embedding_size": 16},
        "generator": {"num_layers": 1},
    },
}


@pytest.fixture(autouse=True)
def hardware(monkeypatch):
    monkeypatch.setattr(hardware_random, "is_used", lambda: True)


def lowered(model, data, platforms, checks=(), scope=None):
    """Returns the program of a model's training step on a batch."""
    import jax

    model.compile(AdamW(1e-4, global_clipnorm=1.0), jit_compile=False)
    model.optimizer.build(model.trainable_variables)
    model._symbolic_build(data_batch=data)
    state = model._get_jax_state(
        trainable_variables=True,
        non_trainable_variables=True,
        optimizer_variables=True,
        metrics_variables=True,
    )
    shapes = jax.tree.map(
        lambda x: jax.ShapeDtypeStruct(np.shape(x), x.dtype), (state, data)
    )
    export = jax.export.export(
        jax.jit(model.train_step), platforms=platforms, disabled_checks=checks
    )
    with scope or contextlib.nullcontext():
        return export(*shapes).mlir_module()


@pytest.mark.parametrize("system", SYSTEMS)
def test_a_step_lowers(system):
    model = getattr(models, system)(**SYSTEMS[system], **IDS, dtype="mixed_bfloat16")
    program = lowered(model, (make_inputs(),), ["cuda", "tpu"])
    # Nothing goes back to Python, and masks and samples are drawn in hardware.
    assert "callback" not in program
    assert ("stablehlo.rng_bit_generator" in program) == (system != "TwoTower")
    products = [x for x in program.splitlines() if "stablehlo.dot_general" in x]
    assert sum("bf16" in x for x in products) > 0.8 * len(products)


@pytest.mark.parametrize("make", [make_parser, make_translator, make_token_tagger])
def test_a_step_of_cross_view_training_lowers(make):
    model = make(dtype="mixed_bfloat16")
    program = lowered(model, one_batch(model, sentences_of(4)[0]), ["cuda", "tpu"])
    assert "callback" not in program
    # A parser draws dropout alone.
    assert ("stablehlo.rng_bit_generator" in program) == (make is not make_parser)


@pytest.fixture
def an_h100(monkeypatch):
    """Has JAX believe in a GPU that cuDNN's flash attention runs on."""
    from jax._src.cudnn import fused_attention_stablehlo

    answers = {
        "check_cudnn_version": lambda: 91100,
        "check_compute_capability": lambda capability: True,
        "is_cuda_compute_capability_equal": lambda capability: False,
    }
    for name, answer in answers.items():
        monkeypatch.setattr(fused_attention_stablehlo, name, answer)
    monkeypatch.setattr(flash_attention, "is_available", lambda: True)


@pytest.mark.parametrize(
    ("changes", "dtype", "layers"),
    [
        ({"attention_dropout": 0.0}, "mixed_bfloat16", ENCODER["num_layers"]),
        ({"attention_dropout": 0.0}, "float32", 0),
        ({"attention_dropout": 0.1}, "mixed_bfloat16", 0),
        ({"attention_dropout": 0.0, **RELATIVE}, "mixed_bfloat16", 0),
    ],
)
def test_attention_is_cudnns_where_it_has_a_kernel(changes, dtype, layers, an_h100):
    import jax

    model = models.MaskedLM({**ENCODER, **changes}, **IDS, dtype=dtype)
    calls = ["__cudnn$fmhaScaleBiasSoftmax", "__cudnn$fmhaScaleBiasSoftmaxBackward"]
    checks = [jax.export.DisabledSafetyCheck.custom_call(call) for call in calls]
    program = lowered(model, (make_inputs(),), ["cuda"], checks)
    for call in calls:
        assert program.count(f"@{call}(") == layers


def triton_kernels(changes, length, hidden_size=32):
    """Returns how many kernels of Pallas a step has, lowered for an H100."""
    import jax
    from jax.sharding import AbstractDevice, AbstractMesh, AxisType

    encoder = {"max_length": 64, "num_heads": 2, "hidden_size": hidden_size}
    model = models.MaskedLM(
        {**ENCODER, **encoder, **changes}, **IDS, dtype="mixed_bfloat16"
    )
    call = "__gpu$xla.gpu.triton"
    checks = [jax.export.DisabledSafetyCheck.custom_call(call)]
    device = AbstractDevice("NVIDIA H100", num_cores=132, platform="gpu")
    # Pallas asks it what it computes on.
    mesh = AbstractMesh((1,), ("device",), (AxisType.Auto,), abstract_device=device)
    scope = jax.sharding.use_abstract_mesh(mesh)
    batch = (make_inputs(length=length),)
    return lowered(model, batch, ["cuda"], checks, scope).count(f"@{call}(")


@pytest.mark.parametrize(
    ("changes", "length", "kernels"),
    [
        # One kernel forward and one backward, which all layers call.
        ({"attention_dropout": 0.1, "num_layers": 3}, 64, 2),
        ({"attention_dropout": 0.1, "local_window": 8}, 64, 2),
        ({"attention_dropout": 0.1}, 60, 0),
        ({"attention_dropout": 0.1, **RELATIVE}, 64, 0),
    ],
)
def test_attention_with_dropout_is_a_kernel_where_there_is_one(
    changes, length, kernels, an_h100, monkeypatch
):
    monkeypatch.setenv(dropout_attention.SWITCH, "kernel")
    assert triton_kernels(changes, length) == kernels


@pytest.mark.parametrize(
    ("changes", "length", "kernels"),
    [
        ({"num_layers": 3}, 64, 2),  # forward and backward, which all layers call
        ({"num_layers": 3}, 60, 0),
        ({"norm": "pre"}, 64, 0),
        ({"remat": "layer"}, 64, 0),
        ({"hidden_size": 32}, 64, 0),
    ],
)
def test_a_layer_has_kernels_where_they_are_asked_for(
    changes, length, kernels, an_h100, monkeypatch
):
    monkeypatch.setenv(dropout_attention.SWITCH, "plain")
    assert triton_kernels(changes, length, hidden_size=64) == 0
    monkeypatch.setenv(gpu_kernels.SWITCH, "on")
    assert triton_kernels(changes, length, hidden_size=64) == kernels


@pytest.mark.parametrize(
    ("changes", "length", "kernels"),
    [
        # One for both layers, forward and backward.
        ({"attention_dropout": 0.0}, 128, 2),
        ({"attention_dropout": 0.0}, 96, 0),
        ({"attention_dropout": 0.1}, 128, 0),
        ({"attention_dropout": 0.0, **RELATIVE}, 128, 0),
    ],
)
def test_attention_is_splash_where_it_has_a_kernel(
    changes, length, kernels, monkeypatch
):
    monkeypatch.setattr(splash_attention, "is_available", lambda: True)
    encoder = {**ENCODER, "max_length": 128, **changes}
    model = models.MaskedLM(encoder, **IDS, dtype="mixed_bfloat16")
    program = lowered(model, (make_inputs(length=length),), ["tpu"])
    assert program.count("@tpu_custom_call(") == kernels
