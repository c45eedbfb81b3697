"""Which precision the hardware multiplies matrices fastest in."""

import keras
from llvmlite import binding

from keras_corrupt.devices.accelerators import accelerators

#: Instructions of CPUs that multiply bfloat16, as LLVM names them. Without them a step
#: in bfloat16 takes longer than one in float32.
CPU_FEATURES = ("amx-bf16", "avx512bf16")
#: From Ampere on, NVIDIA's GPUs multiply bfloat16.
GPU_CAPABILITY = 8.0


def named(dtype):
    """Returns the precision that a name stands for; `"auto"` is the fastest one.

    >>> named("float32")
    'float32'
    """
    return fastest() if dtype == "auto" else dtype


def fastest():
    """Returns `"mixed_bfloat16"` or `"float32"`, for what Keras computes on."""
    if accelerators():
        faster = all(capability >= GPU_CAPABILITY for capability in _gpus())
    else:
        features = binding.get_host_cpu_features()
        faster = any(features.get(name) for name in CPU_FEATURES)
    return "mixed_bfloat16" if faster else "float32"


def _gpus():
    """Yields the compute capability of each GPU; TPUs have none, and bfloat16."""
    if keras.backend.backend() == "jax":
        import jax

        for device in jax.devices():
            if device.platform == "gpu":
                yield float(device.compute_capability)
    else:
        import tensorflow as tf

        for device in tf.config.list_physical_devices("GPU"):
            details = tf.config.experimental.get_device_details(device)
            major, minor = details.get("compute_capability", (0, 0))
            yield major + minor / 10
