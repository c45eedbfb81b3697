"""What a training step needs on a TPU, told by its compiler; no TPU is needed.

    pip install -e '.[test]' 'jax[tpu]'
    python -m benchmarks.accelerator_memory --output RESULTS
    python -m benchmarks.accelerator_memory --output RESULTS \\
        --system Teams --sizes base large --batches 32 256 --remat none layer

The step is the one that training runs, optimizer and all, on JAX, compiled for one
core of `--chip` and not run. Where it does not fit, the compiler says what it would
need. FLOPs and bytes moved are the compiler's count. The times that they give at the
published rates of that chip and of others (a roofline) are estimates: no step can take
less, and on a GPU another compiler moves other bytes.
"""

import dataclasses
import os
import re
import time
from pathlib import Path
from typing import Literal

os.environ["KERAS_BACKEND"] = "jax"
os.environ["JAX_PLATFORMS"] = "cpu"
# Without these, libtpu looks for a TPU.
os.environ |= {"TPU_SKIP_MDS_QUERY": "1", "TPU_WORKER_HOSTNAMES": "localhost"}
os.environ |= {"TPU_ACCELERATOR_TYPE": "v5litepod-4", "TPU_WORKER_ID": "0"}

import jax
import jax.numpy as jnp
import tyro
from jax.experimental import topologies

import keras_corrupt
from keras_corrupt.devices import hardware_random
from keras_corrupt.devices.peaks import FLOPS
from keras_corrupt.training import AdamW

#: Chip -> its FLOP/s in half precision and the bytes a second of its memory, as
#: published.
RATES = {
    "v5e": (FLOPS["v5e"], 819e9),
    "v6e": (FLOPS["v6e"], 1640e9),
    "T4": (FLOPS["T4"], 320e9),
    "A100": (FLOPS["A100"], 2039e9),
    "H200": (FLOPS["H200"], 4800e9),
}


@dataclasses.dataclass
class Settings:
    """What to compile."""

    output: str
    """Directory for the table."""
    system: str = "Electra"
    """Class of the model."""
    sizes: tuple[str, ...] = ("small", "base", "large")
    """Presets."""
    batches: tuple[int, ...] = (32, 64, 256)
    """Sequences of a step."""
    length: int = 512
    """Tokens of a sequence."""
    remat: tuple[str, ...] = ("none", "attention", "layer")
    """Parts that are computed again."""
    dtypes: tuple[str, ...] = ("mixed_bfloat16",)
    """Precisions."""
    chip: Literal["v5e", "v6e"] = "v5e"
    """The TPU that it is compiled for."""


def training_step(system, size, dtype, remat):
    """Returns the function of a step and the shapes of its state."""
    # What a TPU would answer.
    hardware_random.is_used = lambda: True
    cls = getattr(keras_corrupt.models, system)
    main = next(iter(cls.network_arguments))
    model = cls.from_preset(size, dtype=dtype, **{main: {"remat": remat}})
    model.compile(AdamW(1e-4, global_clipnorm=1.0), jit_compile=False)
    model.optimizer.build(model.trainable_variables)
    model._symbolic_build(data_batch=texts(2, 8))
    state = model._get_jax_state(
        trainable_variables=True,
        non_trainable_variables=True,
        optimizer_variables=True,
        metrics_variables=True,
    )
    return model.train_step, jax.tree.map(shape_of, state)


def shape_of(array):
    return jax.ShapeDtypeStruct(array.shape, array.dtype)


def texts(batch, length):
    names = "token_ids", "segment_ids", "padding_mask"
    return ({name: jnp.ones((batch, length), jnp.int32) for name in names},)


def compiled(step, state, batch, length, device):
    """Returns the compiled step, or the compiler's bytes where it does not fit."""
    inputs = jax.tree.map(shape_of, texts(batch, length))
    sharding = jax.sharding.SingleDeviceSharding(device)
    lowered = jax.jit(step, donate_argnums=0, in_shardings=sharding).lower(
        state, inputs
    )
    try:
        return lowered.compile()
    except jax.errors.JaxRuntimeError as error:
        needed = re.search(r"temporaries \(([\d.]+)G\) exceeds", str(error))
        if needed is None:
            raise
        kept = sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(state))
        return float(needed.group(1)) * 2**30 + kept


def row_of(step, state, batch, settings, device):
    start = time.perf_counter()
    program = compiled(step, state, batch, settings.length, device)
    seconds = time.perf_counter() - start
    if isinstance(program, float):
        return (
            f"{program / 2**30:.1f} (too much) | | {'| ' * len(RATES)}| {seconds:.0f} s"
        )
    memory, cost = program.memory_analysis(), program.cost_analysis()
    needed = memory.argument_size_in_bytes + memory.temp_size_in_bytes
    flops, moved = cost["flops"], cost["bytes accessed"]
    times = " | ".join(f"{1000 * t:.0f}" for t in least_seconds(flops, moved).values())
    return (
        f"{needed / 2**30:.1f} | {flops / 1e12:.2f} | {moved / 1e9:.0f} | {times} | "
        f"{seconds:.0f} s"
    )


def least_seconds(flops, moved):
    """Returns the least time of a step by each chip's rates: chip -> seconds."""
    return {chip: max(flops / f, moved / m) for chip, (f, m) in RATES.items()}


def main(settings):
    topology = topologies.get_topology_desc(
        platform="tpu", topology_name=f"{settings.chip}:2x2"
    )
    output = Path(settings.output)
    output.mkdir(parents=True, exist_ok=True)
    path = output / f"{settings.system.lower()}_{settings.chip}.md"
    lines = [
        f"# {settings.system}, one core of a TPU {settings.chip}, length "
        f"{settings.length}\n",
        f"JAX {jax.__version__}, {topology.devices[0].device_kind}\n",
        "| size | batch | precision | computed again | GiB | TFLOP | GB moved | "
        + " | ".join(f"ms on {chip}" for chip in RATES)
        + " | compiled in |",
        "|---|---:|---|---|---:|---:|---:|" + "---:|" * (len(RATES) + 1),
    ]
    print(lines[0])
    for size in settings.sizes:
        for dtype in settings.dtypes:
            for remat in settings.remat:
                step, state = training_step(settings.system, size, dtype, remat)
                for batch in settings.batches:
                    row = row_of(step, state, batch, settings, topology.devices[0])
                    lines.append(f"| {size} | {batch} | {dtype} | {remat} | {row} |")
                    print(lines[-1], flush=True)
                    path.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main(tyro.cli(Settings, description=__doc__, use_underscores=True))
