"""How many kernels an accelerator starts for a training step, told by its compiler.

    pip install -e '.[test]' jax-cuda12-plugin jax-cuda12-pjrt nvidia-cuda-nvcc-cu12
    python -m benchmarks.step_kernels --output RESULTS
    python -m benchmarks.step_kernels --output RESULTS --attention plain
    python -m benchmarks.step_kernels --output RESULTS --layers kernels

The step is the one of a training run on JAX, within a program of several, compiled for
an H100 that need not be there (`--target h100`) or for this machine's CPU (`--target
cpu`, which needs no further package, and says less: CPUs fuse otherwise). Without a GPU
XLA cannot try which form of a product is the fastest; on a GPU it may take others, of
some kernels more or fewer. Nothing is run: the only time that is told is the time of
tracing and lowering, which a program that is in JAX's cache still takes.
"""

import dataclasses
import os
import time
from pathlib import Path
from typing import Literal

os.environ["KERAS_BACKEND"] = "jax"
os.environ["JAX_PLATFORMS"] = "cpu"
os.environ["XLA_FLAGS"] = "--xla_gpu_autotune_level=0"

import jax
import jax.numpy as jnp
import tyro
from jax.experimental import topologies

import keras_corrupt
from benchmarks.kernels import kernels_of_a_step
from keras_corrupt import gpu_kernels
from keras_corrupt.devices import (
    dropout_attention,
    flash_attention,
    hardware_random,
)
from keras_corrupt.devices.many_updates import program
from keras_corrupt.training import AdamW

#: An H100 as XLA describes it (`xla/backends/gpu/target_config/specs`).
H100 = """
gpu_device_info {
  threads_per_block_limit: 1024 threads_per_warp: 32
  shared_memory_per_block: 49152 shared_memory_per_core: 233472
  threads_per_core_limit: 2048 core_count: 132 fpus_per_core: 128
  block_dim_limit_x: 2147483647 block_dim_limit_y: 65535 block_dim_limit_z: 65535
  memory_bandwidth: 3352320000000 l2_cache_size: 52428800 clock_rate_ghz: 1.98
  device_memory_size: 84929347584 shared_memory_per_block_optin: 232448
  cuda_compute_capability { major: 9 }
  registers_per_core_limit: 65536 registers_per_block_limit: 65536
}
platform_name: "CUDA"
dnn_version_info { major: 9 minor: 7 }
runtime_version { major: 12 minor: 8 }
device_description_str: "NVIDIA H100 80GB HBM3"
"""

INPUTS = "token_ids", "segment_ids", "padding_mask"


@dataclasses.dataclass
class Settings:
    """What to compile."""

    output: str
    """Directory for the table."""
    system: str = "Electra"
    """Class of the model."""
    size: str = "small"
    """Preset."""
    batch: int = 128
    """Sequences of a step."""
    length: int = 128
    """Tokens of a sequence."""
    attention: Literal["kernel", "plain"] = "kernel"
    """Whether attention with dropout is a kernel, where there is one for it."""
    layers: Literal["plain", "kernels"] = "plain"
    """Whether layers are `gpu_kernels`, which are off unless asked for."""
    dtype: str = "mixed_bfloat16"
    """Precision."""
    target: Literal["h100", "cpu"] = "h100"
    """What it is compiled for."""


def training_program(settings):
    """Returns the function of two updates and the shapes of its arguments."""
    # What a GPU would answer.
    hardware_random.is_used = lambda: True
    flash_attention.is_available = lambda: settings.target == "h100"
    os.environ[dropout_attention.SWITCH] = settings.attention
    os.environ[gpu_kernels.SWITCH] = "on" if settings.layers == "kernels" else "off"
    cls = getattr(keras_corrupt.models, settings.system)
    model = cls.from_preset(settings.size, dtype=settings.dtype)
    model.compile(AdamW(1e-4, global_clipnorm=1.0), jit_compile=True)
    model.optimizer.build(model.trainable_variables)
    model._symbolic_build(data_batch=texts(2, 8))
    state = model._get_jax_state(
        trainable_variables=True,
        non_trainable_variables=True,
        optimizer_variables=True,
        metrics_variables=True,
    )
    batches = [texts(settings.batch, settings.length)] * 2
    return program(model), jax.tree.map(
        lambda array: jax.ShapeDtypeStruct(array.shape, array.dtype), (state, batches)
    )


def texts(batch, length):
    return ({name: jnp.ones((batch, length), jnp.int32) for name in INPUTS},)


def compiled(function, arguments, target):
    """Returns the text of the compiled program."""
    devices = jax.devices()
    if target == "h100":
        devices = topologies.get_topology_desc(
            "h100", "cuda", target_config=H100, topology="1x1x1"
        ).devices
    mesh = jax.sharding.Mesh(devices[:1], ("device",))
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
    # Pallas asks it what it computes on.
    with jax.sharding.use_abstract_mesh(mesh.abstract_mesh):
        jitted = jax.jit(function, donate_argnums=0, in_shardings=sharding)
        begun = time.process_time()
        lowered = jitted.lower(*arguments)
        print(f"traced and lowered in {time.process_time() - begun:.1f} s of a core")
        return lowered.compile().as_text()


def main(settings):
    function, arguments = training_program(settings)
    counts = kernels_of_a_step(compiled(function, arguments, settings.target))
    lines = [
        f"{settings.system} {settings.size}, {settings.batch} x {settings.length}, "
        f"{settings.dtype}, attention: {settings.attention}, layers: "
        f"{settings.layers}; {settings.target}, JAX {jax.__version__}: "
        f"{counts.total()} kernels a step\n",
        "| kernel | number |",
        "|---|---:|",
        *(f"| {name} | {number} |" for name, number in counts.most_common()),
    ]
    output = Path(settings.output)
    output.mkdir(parents=True, exist_ok=True)
    parts = [settings.system, settings.size, settings.target, settings.attention]
    parts += ["layers"] * (settings.layers == "kernels")
    (output / f"{'_'.join(parts).lower()}.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main(tyro.cli(Settings, description=__doc__, use_underscores=True))
