import pytest

from keras_corrupt.devices import precision


@pytest.mark.parametrize(
    "features, expected",
    [
        ({"avx2": True, "amx-bf16": False, "avx512bf16": False}, "float32"),
        ({"avx2": True, "amx-bf16": False, "avx512bf16": True}, "mixed_bfloat16"),
        ({"avx2": True, "amx-bf16": True}, "mixed_bfloat16"),
        ({}, "float32"),
    ],
)
def test_of_cpus(features, expected, monkeypatch):
    monkeypatch.setattr(precision, "accelerators", list)
    monkeypatch.setattr(precision.binding, "get_host_cpu_features", lambda: features)
    assert precision.fastest() == expected


@pytest.mark.parametrize(
    "capabilities, expected",
    [((7.5,), "float32"), ((8.0, 9.0), "mixed_bfloat16"), ((), "mixed_bfloat16")],
)
def test_of_gpus_and_tpus(capabilities, expected, monkeypatch):
    monkeypatch.setattr(precision, "accelerators", lambda: ["an accelerator"])
    monkeypatch.setattr(precision, "_gpus", lambda: capabilities)
    assert precision.fastest() == expected
