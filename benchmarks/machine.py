"""What a result was measured on."""

import importlib.metadata
import os
import platform
import time
from pathlib import Path

import psutil

# What decides how fast a CPU multiplies matrices.
FLAGS = ("avx2", "avx512f", "avx512_bf16", "amx_bf16")


def description():
    """Returns a line: processor, cores, memory, instructions, versions."""
    name, flags = platform.processor() or platform.machine(), ""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        lines = dict(
            (part.strip() for part in line.split(":", 1))
            for line in cpuinfo.read_text().splitlines()
            if ":" in line
        )
        name = lines.get("model name", name)
        has = lines.get("flags", "").split()
        flags = f" ({', '.join(flag for flag in FLAGS if flag in has)})"
    versions = ", ".join(
        f"{package} {importlib.metadata.version(package)}"
        for package in ("tensorflow", "keras")
    )
    memory = psutil.virtual_memory().total / 1e9
    return f"{name}{flags}, {os.cpu_count()} cores, {memory:.0f} GB; {versions}"


def matmul_gflops(dtype):
    """Returns what a large matrix product reaches here, in GFLOP/s."""
    import tensorflow as tf

    n = 4096
    x = tf.cast(tf.random.normal((n, n)), dtype)
    times = []
    for _ in range(6):
        start = time.perf_counter()
        tf.reduce_sum(tf.cast(tf.matmul(x, x)[0], "float32")).numpy()
        times.append(time.perf_counter() - start)
    return 2 * n**3 / min(times) / 1e9
