"""Processes, their memory and their processor time, as Linux reports them in /proc."""

import contextlib
from pathlib import Path


def descendants(pid: int) -> list[int]:
    """Return the ids of all descendants of a process."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in map(int, task.read_text().split()):
            found += [child, *descendants(child)]
    return found


def proportional_set_size(pid: int) -> int:
    """Return the proportional set size of a process in bytes, 0 if it has ended."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) * 1024


def peak_resident_size(pid: int) -> int:
    """Return the peak of the resident set size of a process in bytes, 0 if it has ended."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) * 1024


def processor_seconds(pid: int) -> float:
    """Return the processor time of the threads of a process in seconds, without threads that have ended."""
    nanoseconds = 0
    for thread in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        with contextlib.suppress(OSError):
            nanoseconds += int(thread.read_text().split()[0])
    return nanoseconds / 1e9
