"""Options for the worker processes of a service, and the number of processors, which bounds their number."""

import math
import os
from collections.abc import Callable
from functools import reduce
from pathlib import Path

import click

from roost.cli.numbers import Number, WholeNumber

MIB = 1 << 20


WORKERS_OF_A_PROCESSOR = 16
LEAST_MOST_WORKERS = 64


def most_workers() -> int:
    """Return the most worker processes that a service may have on this machine.

    Each takes memory, and beyond some for each processor further ones do not make the service faster.
    """
    return max(LEAST_MOST_WORKERS, WORKERS_OF_A_PROCESSOR * count_processors())


class WorkerCount(click.ParamType[int]):
    """A positive number of worker processes, or ``auto``."""

    name = "number|auto"

    def convert(self, value: str | int, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if value == "auto":
            return count_processors()
        return int(WholeNumber(1, most_workers()).convert(value, param, ctx))


_OPTIONS = (
    click.option(
        "--workers",
        type=WorkerCount(),
        default="1",
        show_default=True,
        help="Processes. auto: one for each processor that this process may use.",
    ),
    click.option(
        "--worker-memory-limit",
        "memory_limit",
        type=WholeNumber(1),
        metavar="MIB",
        help="A worker whose resident memory is larger is replaced by a new one.",
    ),
    click.option(
        "--drain-seconds",
        type=Number(0),
        default=10.0,
        show_default=True,
        help="Time to finish requests under way when a worker ends; then it is killed.",
    ),
)


def with_workers(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of worker processes to a command.

    The command gets them as ``workers``, ``memory_limit`` (in MiB) and ``drain_seconds``.
    """
    return reduce(lambda decorated, option: option(decorated), reversed(_OPTIONS), command)


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
