"""What the system says of processes."""

from pathlib import Path


def children(pid: int) -> list[int]:
    """The processes below one, all the way down."""
    found: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in map(int, task.read_text().split()):
            found += [child, *children(child)]
    return found


def resident(pid: int) -> int:
    """Bytes of memory that a process holds, its share of what it has in common with others; 0: it is gone."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) * 1024


def peak(pid: int) -> int:
    """The most bytes that a process ever held resident; 0: it is gone."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) * 1024
