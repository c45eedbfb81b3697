import pytest

from keras_corrupt.devices import peaks


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("NVIDIA H100 80GB HBM3", 989e12),
        ("NVIDIA A100-SXM4-40GB", 312e12),
        ("TPU v5 lite", 197e12),
        ("NVIDIA H100 PCIe", None),  # slower than the others of its name
        ("Tesla T4", None),  # no bfloat16
        ("cpu", None),
    ],
)
def test_chips_are_known_by_name(monkeypatch, kind, expected):
    monkeypatch.setattr(peaks, "device_kind", lambda: kind)
    assert peaks.peak_flops("mixed_bfloat16") == expected
    assert peaks.peak_flops("float32") is None


def test_this_machine_has_a_kind():
    assert peaks.device_kind()
