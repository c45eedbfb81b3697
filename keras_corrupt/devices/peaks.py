"""How many operations a second a device can do, as its maker says."""

import keras

#: Chip -> its FLOP/s in half precision, without sparsity, as published. The number of a
#: T4 is float16, which it has instead of bfloat16.
FLOPS = {
    "v5e": 197e12,
    "v6e": 918e12,
    "T4": 65e12,
    "A100": 312e12,
    "H100": 989e12,
    "H200": 989e12,
}
#: What JAX and TensorFlow call chips that have bfloat16.
_NAMES = {
    "TPU v5 lite": "v5e",
    "TPU v6 lite": "v6e",
    "A100": "A100",
    "H100 80GB HBM3": "H100",
    "H200": "H200",
}


def peak_flops(dtype):
    """Returns the FLOP/s of a device here, or `None` where they are not known.

    Args:
        dtype: The precision of the layers. Only `mixed_bfloat16` has a known peak.
    """
    if dtype != "mixed_bfloat16":
        return None
    kind = device_kind()
    return next((FLOPS[chip] for name, chip in _NAMES.items() if name in kind), None)


def device_kind():
    """Returns what the backend calls its first device, such as `NVIDIA H200`."""
    if keras.backend.backend() == "jax":
        import jax

        return jax.devices()[0].device_kind
    import tensorflow as tf

    for device in tf.config.list_physical_devices("GPU"):
        details = tf.config.experimental.get_device_details(device)
        return details.get("device_name", "")
    return "cpu"
