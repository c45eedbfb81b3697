"""How Numba compiles the kernels, and where it caches what it compiled.

What Numba compiles has the code of the functions that it calls inside, but its cache
notices only edits of a function's own file, and other versions of Numba. So the cache
of the kernels is a folder whose name is a hash of all that the code is made from.
"""

import contextlib
import ctypes
import functools
import hashlib
import os
import shutil
import tempfile
from pathlib import Path

import llvmlite
import numba
import numpy as np
from llvmlite import binding
from numba import cfunc, config, njit
from numba.core.codegen import get_host_cpu_features
from numba.core.types import ExternalFunction

SOURCES = Path(__file__).parent
#: Caches that are kept beside each other: the latest ones in use.
CACHES = 8

# For Intel's processors LLVM makes vectors of half the size that AVX-512 has. Numba
# has this setting for a process only, so other code that it compiles gets it, too.
if config.CPU_FEATURES is None and "+avx512f" in get_host_cpu_features():
    config.CPU_FEATURES = get_host_cpu_features() + ",-prefer-256-bit"


def compiled(function):
    """Compiles what kernels are made of."""
    return cached(
        njit,
        function,
        nogil=True,
        error_model="numpy",
        # Sums in any order. NaN stays NaN.
        fastmath={"reassoc", "contract", "nsz", "arcp"},
    )


def c_function(result, *arguments):
    """Compiles a function that C calls, from its types."""
    return functools.partial(cached, functools.partial(cfunc, result(*arguments)))


def external(name, result, *arguments, library=None):
    """Declares a C function that compiled code calls.

    Args:
        name: Its name.
        result: The type that it returns.
        arguments: The types that it takes.
        library: Path of its library; without, it is one of the process's own.

    Raises:
        ImportError: There is none. LLVM would end the process.
    """
    if not hasattr(ctypes.CDLL(library and str(library)), name):
        raise ImportError(f"{library or 'this system'} has no function {name}")
    return ExternalFunction(name, result(*arguments))


def cached(compiler, function, **options):
    """Compiles a function, or takes it from the cache.

    Args:
        compiler: `numba.njit`, or a function made of `numba.cfunc`.
        function: The function.
        options: The compiler's options.
    """
    folder = cache_folder()
    if folder is None or not os.path.exists(function.__code__.co_filename):
        return compiler(**options)(function)
    with _numba_cache(folder):
        return compiler(cache=True, **options)(function)


@contextlib.contextmanager
def _numba_cache(folder):
    """Has Numba cache the functions that are decorated inside in a folder."""
    before, config.CACHE_DIR = config.CACHE_DIR, str(folder)
    try:
        yield
    finally:
        config.CACHE_DIR = before


@functools.cache
def cache_folder():
    """Makes the folder of the cache, or returns `None` if none can be written."""
    for parent in _cache_parents():
        folder = parent / f"kernels-{_hash_of_what_code_is_made_from()}"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=folder).close()
            os.utime(folder)  # the time of its latest use
            _delete_oldest(parent)
        except OSError:
            continue
        return folder
    return None


def _cache_parents():
    """Yields folders that may hold caches, the best first."""
    if config.CACHE_DIR:  # the user's choice, NUMBA_CACHE_DIR
        yield Path(config.CACHE_DIR, "keras_corrupt")
    yield SOURCES / "__pycache__"
    with contextlib.suppress(RuntimeError):  # a user without a home
        home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        yield Path(home, "keras_corrupt")


def _hash_of_what_code_is_made_from():
    """Returns hexadecimal digits that tell sources, versions and processors apart."""
    made_from = [numba.__version__, llvmlite.__version__, np.__version__]
    # Numba tells processors apart within a folder, but not if two write at a time.
    made_from += [binding.get_host_cpu_name(), get_host_cpu_features()]
    made_from += [str(config.CPU_NAME), str(config.CPU_FEATURES)]
    for path in sorted(SOURCES.glob("*.py")):
        made_from += [path.name, path.read_text(encoding="utf-8")]
    return hashlib.sha256("\0".join(made_from).encode()).hexdigest()[:16]


def _delete_oldest(parent):
    """Deletes the caches in a folder that were not used for longest."""
    caches = sorted(parent.glob("kernels-*"), key=os.path.getmtime)
    for old in caches[:-CACHES]:
        shutil.rmtree(old, ignore_errors=True)
