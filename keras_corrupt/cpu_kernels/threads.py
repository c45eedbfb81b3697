"""Threads that share the pieces of an operation.

They are started once and wait. A thread started for each operation often begins on
the core of the one that started it, and waits there until that one is done.
"""

import ctypes
import functools
import os
import sys
import threading

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from keras_corrupt.cpu_kernels.compiling import cached, external
from keras_corrupt.cpu_kernels.cpus import thread_count
from keras_corrupt.cpu_kernels.float_mode import float_mode, set_float_mode

Word, Int, Words = types.intp, types.int32, types.CPointer(types.intp)

# A job, in words: the next job, the C function that does it, how many helpers it still
# wants and how many are at it; the next piece, how many there are, what length they are
# cut from; the floating-point mode of the caller; then address and shape of the arrays:
# cut arrays, outputs, sums, whole arrays.
LINK, FUNCTION, WANTED, RUNNING, NEXT, PIECES, LENGTH, MODE, ARRAYS = range(9)
# A pool, in words: the first job; a lock; conditions: there is work, work is done. What
# POSIX keeps of each has room in 16 words.
LOCK, WORK, DONE, POOL_WORDS = 1, 17, 33, 49

if sys.platform == "win32":
    raise ImportError("Windows has no POSIX threads")

lock = external("pthread_mutex_lock", Int, Word)
unlock = external("pthread_mutex_unlock", Int, Word)
wait = external("pthread_cond_wait", Int, Word, Word)
notify = external("pthread_cond_broadcast", Int, Word)


@functools.cache
def pool():
    """Starts the threads.

    Returns:
        The address of what they share, and their number, the caller's included.
    """
    words, count = np.zeros(POOL_WORDS, np.intp), thread_count()
    _initialize(words)
    for _ in range(count - 1):
        threading.Thread(target=_help, args=(words,), daemon=True).start()
    # A forked process has no helpers, and a helper may have held the lock.
    os.register_at_fork(after_in_child=functools.partial(_initialize, words))
    return words.ctypes.data, count


def _initialize(words):
    """Makes a pool without a job."""
    words[:] = 0
    posix, address = ctypes.CDLL(None), words.ctypes.data
    posix.pthread_mutex_init(ctypes.c_void_p(_at(address, LOCK)), None)
    posix.pthread_cond_init(ctypes.c_void_p(_at(address, WORK)), None)
    posix.pthread_cond_init(ctypes.c_void_p(_at(address, DONE)), None)


@intrinsic
def call(context, function, job):
    """Calls the C function at an address."""

    def code(context, builder, signature, args):
        kind = ir.FunctionType(ir.VoidType(), [args[1].type])
        builder.call(builder.inttoptr(args[0], kind.as_pointer()), [args[1]])
        return context.get_dummy_value()

    return types.void(function, job), code


@intrinsic
def words_at(context, address):
    """Returns the words at an address."""

    def code(context, builder, signature, args):
        return builder.inttoptr(args[0], args[0].type.as_pointer())

    return Words(address), code


@njit(inline="always")
def _at(address, word):
    return address + 8 * word


@functools.partial(cached, njit, nogil=True)
def _help(pool):
    """Does jobs for ever."""
    address = pool.ctypes.data
    own_mode = float_mode()
    lock(_at(address, LOCK))
    while pool[LINK] >= 0:  # always
        if pool[LINK] == 0:
            wait(_at(address, WORK), _at(address, LOCK))
            continue
        job = pool[LINK]
        words = words_at(job)
        words[WANTED] -= 1
        words[RUNNING] += 1
        if words[WANTED] == 0:
            pool[LINK] = words[LINK]
        unlock(_at(address, LOCK))
        set_float_mode(words[MODE])
        call(words[FUNCTION], job)
        set_float_mode(own_mode)
        lock(_at(address, LOCK))
        words[RUNNING] -= 1
        if words[RUNNING] == 0:
            notify(_at(address, DONE))
    return pool


@njit
def run_pieces(pool, job, helpers):
    """Runs the pieces of a job, with up to so many helpers."""
    words = words_at(job)
    words[MODE] = float_mode()
    if helpers > 0:
        lock(_at(pool, LOCK))
        first = words_at(pool)
        words[WANTED], words[LINK], first[LINK] = helpers, first[LINK], job
        notify(_at(pool, WORK))
        unlock(_at(pool, LOCK))
    call(words[FUNCTION], job)
    if helpers > 0:
        lock(_at(pool, LOCK))
        before = words_at(pool)
        while before[LINK] != 0 and before[LINK] != job:
            before = words_at(before[LINK])
        if before[LINK] == job:  # who has not begun shall not
            before[LINK] = words[LINK]
        while words[RUNNING] > 0:
            wait(_at(pool, DONE), _at(pool, LOCK))
        unlock(_at(pool, LOCK))
