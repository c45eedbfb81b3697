"""Where JAX keeps what it has compiled, for the next process."""

import os
from pathlib import Path

import keras

from keras_corrupt.devices.accelerators import accelerators

#: JAX's own variable for the folder; empty for none.
FOLDER = "JAX_COMPILATION_CACHE_DIR"


def keep():
    """Has JAX keep what it compiles for accelerators: a minute for ELECTRA-Small.

    It keeps small programs, too, which JAX would not by itself: each shape of a weight
    has a program that draws its first values. The folder is `keras_corrupt/compiled` in
    the user's cache. The environment variable `JAX_COMPILATION_CACHE_DIR` names another
    one; an empty value turns it off. On CPUs the programs are of that one kind of
    processor, and compiling takes seconds.
    """
    if keras.backend.backend() != "jax" or not accelerators() or FOLDER in os.environ:
        return
    import jax

    caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(caches, "keras_corrupt", "compiled")
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
