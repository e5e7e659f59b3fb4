"""The number of processors that a process may use."""

import math
import os
from pathlib import Path

CGROUP = Path("/sys/fs/cgroup")


def count_processors(cgroup: Path = CGROUP) -> int:
    """Return the number of processors in this process's affinity, or its cgroup's CPU quota if that is less.

    ``cgroup``: the root of the hierarchy, where a container has the files of its own group. A quota of half
    a processor counts as one.
    """
    available = len(os.sched_getaffinity(0))
    quota = _quota(cgroup)
    return available if quota is None else max(1, min(available, math.ceil(quota)))


def _quota(cgroup: Path) -> float | None:
    """Return the processors that the CPU quota of the process's groups allows, None without a quota."""
    quotas = []
    for folder in _groups(cgroup):
        try:
            quota, period = (folder / "cpu.max").read_text().split()
        except (OSError, ValueError):
            continue
        if quota != "max":
            quotas.append(int(quota) / int(period))
    return min(quotas, default=None)


def _groups(cgroup: Path) -> list[Path]:
    """Return the folders of the process's group (cgroup v2) and of the groups around it."""
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return [cgroup]
    own = next((line[3:].strip("/") for line in lines if line.startswith("0::")), "")
    folder = cgroup / own
    return [folder, *(each for each in folder.parents if each.is_relative_to(cgroup))]
