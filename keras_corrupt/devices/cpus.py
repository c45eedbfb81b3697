"""How many processors there are for this process."""

import math
import os
from pathlib import Path

#: Where the files of the system are, which tests replace.
ROOT = Path("/")


def available_cpus():
    """Returns how many processors this process may use and its container pays for."""
    limits = [os.cpu_count() or 1, *map(math.ceil, _quotas())]
    if hasattr(os, "sched_getaffinity"):
        limits.append(len(os.sched_getaffinity(0)))
    return max(1, min(limits))


def _quotas():
    """Yields the processors' worth of time of each Linux control group above us."""
    for line in _read("proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        own = Path(path.strip("/"))
        for group in (own, *own.parents):
            if not controllers:  # version 2
                quota = _read(f"sys/fs/cgroup/{group}/cpu.max").split()
            elif "cpu" in controllers.split(","):
                folder = f"sys/fs/cgroup/cpu/{group}"
                files = ("cpu.cfs_quota_us", "cpu.cfs_period_us")
                quota = [_read(f"{folder}/{name}").strip() for name in files]
            else:
                continue
            # Without a limit it says "max", or -1; without a file it is empty.
            if len(quota) == 2 and all(n.isdecimal() for n in quota):
                yield int(quota[0]) / int(quota[1])


def _read(path):
    try:
        return (ROOT / path).read_text()
    except OSError:
        return ""
