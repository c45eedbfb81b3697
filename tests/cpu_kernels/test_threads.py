"""The threads that share the pieces of an operation."""

import ctypes
import os

import numpy as np
import pytest


def test_all_threads_treat_denormal_numbers_like_the_first():
    import tensorflow as tf

    from keras_corrupt.cpu_kernels.program import like, run
    from keras_corrupt.cpu_kernels.threads import pool

    if pool()[1] == 1:
        pytest.skip("one processor, no other threads")
    halve = compiled_halve()
    smallest = np.finfo(np.float32).tiny
    half = tf.function(lambda x: run(halve, [x], [like(x)])[0])
    for _ in range(20):
        halves = half(tf.fill((2**20,), smallest)).numpy()
        # Denormal, or zero where the processor does not do with denormal numbers.
        assert len(np.unique(halves)) == 1


def compiled_halve():
    from keras_corrupt.cpu_kernels.compiling import compiled

    @compiled
    def halve(first, x, out):
        for i in range(len(x)):
            out[i] = x[i] * np.float32(0.5)

    return halve


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """Eight processors in no container; returns a function that writes its files."""
    import tensorflow as tf

    from keras_corrupt.devices import cpus

    monkeypatch.setattr(cpus, "ROOT", tmp_path)
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(8), raising=False)
    threading = tf.config.threading
    monkeypatch.setattr(threading, "get_intra_op_parallelism_threads", lambda: 0)

    def write(**files):
        for path, text in files.items():
            path = tmp_path / path
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    return write


def threads_of_the_machine():
    from keras_corrupt.cpu_kernels.cpus import thread_count

    return thread_count()


def test_a_machine_without_limits_uses_all_processors(machine):
    assert threads_of_the_machine() == 8


@pytest.mark.parametrize("asked, count", [(3, 3), (16, 8)])
def test_threads_follow_tensorflow(machine, monkeypatch, asked, count):
    import tensorflow as tf

    monkeypatch.setattr(
        tf.config.threading, "get_intra_op_parallelism_threads", lambda: asked
    )
    assert threads_of_the_machine() == count


def test_threads_follow_the_processors_allowed(machine, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {1, 6}, raising=False)
    assert threads_of_the_machine() == 2


SECOND = {"proc/self/cgroup": "0::/jobs/mine\n"}
FIRST = {"proc/self/cgroup": "9:memory:/mine\n4:cpu,cpuacct:/mine\n0::/mine\n"}


@pytest.mark.parametrize(
    "files, count",
    [
        (SECOND | {"sys/fs/cgroup/jobs/mine/cpu.max": "250000 100000\n"}, 3),
        # What a group above may use is a limit, too.
        (
            SECOND
            | {
                "sys/fs/cgroup/jobs/mine/cpu.max": "max 100000\n",
                "sys/fs/cgroup/jobs/cpu.max": "100000 100000\n",
                "sys/fs/cgroup/cpu.max": "400000 100000\n",
            },
            1,
        ),
        (SECOND | {"sys/fs/cgroup/jobs/mine/cpu.max": "max 100000\n"}, 8),
        (
            FIRST
            | {
                "sys/fs/cgroup/cpu/mine/cpu.cfs_quota_us": "200000\n",
                "sys/fs/cgroup/cpu/mine/cpu.cfs_period_us": "100000\n",
            },
            2,
        ),
        (
            FIRST
            | {
                "sys/fs/cgroup/cpu/mine/cpu.cfs_quota_us": "-1\n",
                "sys/fs/cgroup/cpu/mine/cpu.cfs_period_us": "100000\n",
            },
            8,
        ),
    ],
    ids=["quota", "quota above", "no quota", "version 1", "version 1, no quota"],
)
def test_threads_follow_the_containers_quota(machine, files, count):
    machine(**files)
    assert threads_of_the_machine() == count


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::RuntimeWarning")
def test_a_process_forked_while_the_lock_is_held_can_take_it():
    from keras_corrupt.cpu_kernels.threads import LOCK, pool

    posix, lock = ctypes.CDLL(None), ctypes.c_void_p(pool()[0] + 8 * LOCK)
    posix.pthread_mutex_lock(lock)
    try:
        child = os.fork()
        if child == 0:
            os._exit(posix.pthread_mutex_trylock(lock))  # 0 if it was taken
        assert os.waitpid(child, 0)[1] == 0
    finally:
        posix.pthread_mutex_unlock(lock)
