"""Reads Azure's VM trace of 2017 as a workload.

Source: the form in which the authors of ``trace_generation_rnn`` (SOSP'21) published it, in four files:

``v1.dev.txt``            one line for each bin: its start in seconds, a space, and flavor letters with commas
                          between them; ``|`` ends the batch of one tenant
``v1.dev.c2100000.txt``   the same lines with a lifetime bin in place of each letter: ``U<n>`` for a VM that
                          ended in lifetime bin n, ``C<n>`` for one that still ran at the end of the
                          observation
``flav_map.txt``          ``vCPUs,GB letter``
``v1.interval_map.txt``   ``second bin``: the lifetime bin of a lifetime in seconds
"""

import re
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Final

from roost.bench.goals import Calibration, Goal
from roost.bench.replay.tracefile import TraceLine, read_lines
from roost.bench.replay.workload import Bin, Host, Workload, WorkloadHostTree, WorkloadRequest, project_id
from roost.model.spec import Flavor

ARRIVALS: Final = "v1.dev.txt"
ENDS: Final = "v1.dev.c2100000.txt"
FLAVORS: Final = "flav_map.txt"
INTERVALS: Final = "v1.interval_map.txt"

STANDARD_HOST: Final = WorkloadHostTree({"VCPU": 64, "MEMORY_MB": 448 * 1024})

GOALS: Final = (
    Goal(
        workload="the Azure trace in one process, 12 bins",
        unit="changes/s",
        at_least=800,
        calibrations=(Calibration((692, 730, 721, 663), "SQLite"),),
    ),
)

_BATCH_END: Final = "|"
_FLAVOR = re.compile(r"([1-9][0-9]{0,4}),([0-9]{1,5}(?:\.[0-9]{1,9})?) ([^\s,|]+)", re.ASCII)
_MIB_IN_GB: Final = 1024
"""MiB in a "GB" of the trace, which is a GiB: sizes are those of Azure's flavors (0.75 GB = 768 MiB)."""


def read(
    directory: Path, bins: int | None = None, hosts: int = 1000, shape: WorkloadHostTree = STANDARD_HOST
) -> Workload:
    """Return the first ``bins`` bins of the trace in ``directory`` (None: all), on ``hosts`` equal hosts.

    The VMs of one flavor in a tenant's batch become one request; a batch of several flavors becomes a
    request for each, in order of first appearance. The trace does not identify tenants: each batch gets a
    project of its own, the same one in every run. A lifetime is the midpoint of the first and the last
    second of its lifetime bin, and starts with the bin in which the VM arrives. A VM with ``C`` stays to
    the end.

    The whole trace is read and checked, bins that are not returned included.

    Raises:
        TraceError: a file cannot be read, or a line is invalid.
        ValueError: ``bins`` or ``hosts`` is below 1.
    """
    if hosts < 1 or (bins is not None and bins < 1):
        raise ValueError(f"hosts and bins must be 1 or more, not {hosts} and {bins}")
    arriving = _read_bins(
        read_lines(directory / ARRIVALS),
        read_lines(directory / ENDS),
        _read_flavors(directory / FLAVORS),
        _read_lifetimes(directory / INTERVALS),
    )
    digits = len(str(hosts - 1))
    return Workload(
        name="azure",
        hosts=tuple(Host(f"host-{number:0{digits}}", shape) for number in range(hosts)),
        bins=arriving[:bins],
    )


def _read_flavors(path: Path) -> dict[str, Flavor]:
    """Return the flavors by their letters."""
    flavors: dict[str, Flavor] = {}
    for line in read_lines(path):
        parts = _FLAVOR.fullmatch(line.text)
        if parts is None:
            raise line.wrong("not of the form 'vCPUs,GB letter'", line.text)
        vcpus, gb, letter = parts.groups()
        memory_mb = float(gb) * _MIB_IN_GB
        if memory_mb < 1 or not memory_mb.is_integer():
            raise line.wrong("memory is not a whole number of MiB, 1 or more", f"{gb} GB")
        if letter in flavors:
            raise line.wrong("the flavor letter is there twice", letter)
        flavors[letter] = Flavor(f"azure-{letter}", int(vcpus), int(memory_mb))
    return flavors


def _read_lifetimes(path: Path) -> dict[str, int | None]:
    """Return the lifetime in seconds for each code of the trace; None for a VM that stays to the end."""
    seconds: dict[int, list[int]] = {}
    for line in read_lines(path):
        second, space, lifetime_bin = line.text.partition(" ")
        if not space:
            raise line.wrong("not of the form 'second bin'", line.text)
        number = line.number_of("lifetime bin", lifetime_bin)
        seconds.setdefault(number, []).append(line.number_of("second", second))
    lifetimes: dict[str, int | None] = {}
    for number, within in seconds.items():
        lifetimes[f"U{number}"] = (min(within) + max(within)) // 2
        lifetimes[f"C{number}"] = None
    return lifetimes


def _read_bins(
    arrivals: list[TraceLine],
    ends: list[TraceLine],
    flavors: Mapping[str, Flavor],
    lifetimes: Mapping[str, int | None],
) -> tuple[Bin, ...]:
    if len(arrivals) != len(ends):
        longer, shorter = (arrivals, ends) if len(arrivals) > len(ends) else (ends, arrivals)
        extra = longer[len(shorter)]
        raise extra.wrong(f"{shorter[0].path.name} has no such line, only {len(shorter)}", extra.text)
    bins = [_read_bin(arrival, end, flavors, lifetimes) for arrival, end in zip(arrivals, ends, strict=True)]
    for (before, after), line in zip(pairwise(bins), arrivals[1:], strict=True):
        if after.start <= before.start:
            raise line.wrong("the bin does not start after the one before it", after.start)
    return tuple(bins)


def _read_bin(
    arrival: TraceLine, end: TraceLine, flavors: Mapping[str, Flavor], lifetimes: Mapping[str, int | None]
) -> Bin:
    start, letters = _split(arrival)
    end_start, codes = _split(end)
    if end_start != start:
        raise end.wrong(f"{arrival.path.name} has a bin that starts at {start} here", end_start)
    if len(codes) != len(letters):
        raise end.wrong(f"{arrival.path.name} has {len(letters)} entries on this line", len(codes))

    requests: list[WorkloadRequest] = []
    batches = 0
    batch: dict[str, list[int | None]] = {}
    for letter, code in zip(letters, codes, strict=True):
        if letter == _BATCH_END and code == _BATCH_END:
            if not batch:
                raise arrival.wrong("a batch is empty", _BATCH_END)
            project = project_id(f"azure/{start}/{batches}")
            requests.extend(
                WorkloadRequest(start, project, flavors[letter], tuple(of_flavor))
                for letter, of_flavor in batch.items()
            )
            batches += 1
            batch = {}
        elif letter == _BATCH_END or code == _BATCH_END:
            raise end.wrong(f"a batch ends elsewhere than in {arrival.path.name}", f"{letter} and {code}")
        elif letter not in flavors:
            raise arrival.wrong(f"flavor letter not in {FLAVORS}", letter)
        elif code not in lifetimes:
            raise end.wrong(f"not U or C and a lifetime bin of {INTERVALS}", code)
        else:
            batch.setdefault(letter, []).append(lifetimes[code])
    if batch:
        raise arrival.wrong(f"the last batch is not ended by {_BATCH_END!r}", letters[-1])
    return Bin(start, tuple(requests))


def _split(line: TraceLine) -> tuple[int, list[str]]:
    """Return the start of a bin in seconds and its entries. A bin without arrivals has no entries."""
    start, _, entries = line.text.partition(" ")
    return line.number_of("start second", start), entries.split(",") if entries else []
