"""Changes of a request's hardware: fewer PCI devices of an alias, smaller NUMA cells.

The amount that a host has for a guest follows from many conditions together, so it is found by deciding: the
largest amount below the requested one with which the host takes the instance.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from msgspec.structs import replace

from roost.fleet.hardware.guest_topology import GuestTopology
from roost.model.reasons import RelaxationKind
from roost.model.spec import RequestSpec
from roost.scheduler.errors import SchedulerError
from roost.scheduler.explain.misses import nearest_positions
from roost.scheduler.explain.relaxations import Proposal
from roost.scheduler.explain.snapshot import Condition, Snapshot
from roost.scheduler.explain.survey import Survey, TimeLimit
from roost.scheduler.filters.numa_topology import NUMATopologyFilter
from roost.scheduler.filters.pci_passthrough import PciPassthroughFilter
from roost.scheduler.request.demand.pci import ALIAS
from roost.scheduler.request.scheduling_request import SchedulingRequest

MOST_HOSTS = 3
"""Hosts on which the largest amounts are sought."""

_Changed = Callable[[int], RequestSpec]
"""Returns the spec with another amount."""


def lowered(
    snapshot: Snapshot, request: SchedulingRequest, survey: Survey, time_limit: TimeLimit
) -> Iterator[Proposal]:
    """Yield changes of the requested hardware, on hosts that lack nothing else."""
    hardware = [each for each in survey.conditions if each.is_of(NUMATopologyFilter, PciPassthroughFilter)]
    hosts: Sequence[int | None] = [survey.index.item(each) for each in _lacking_only(survey, hardware)]
    requests = request.demand.devices
    # With the devices in the query, each in a group of its own, no host is known to lack just them.
    if hosts or (requests and request.options.pci.in_placement):
        hosts = snapshot.to_try(request, hosts)
    for each in requests:
        if each.alias is None or each.count < 2:
            continue
        alias, count = each.alias, each.count

        def fewer(number: int, alias: str = alias) -> RequestSpec:
            return _with_count(request.spec, alias, number)

        for found, host in _largest(snapshot, request, hosts, range(1, count), fewer, time_limit):
            text = f"{found} PCI {'device' if found == 1 else 'devices'} of alias {alias} instead of {count}"
            yield _proposal(snapshot, "devices", alias, text, (count, found), request, fewer(found), host)
    guest = request.demand.guest
    if guest is None or not any(each.is_of(NUMATopologyFilter) for each in hardware):
        return
    flavor = request.spec.flavor
    for name, wanted, step, unit in (
        ("vcpus", flavor.vcpus, len(guest.cells), "vCPUs"),
        ("memory_mb", flavor.memory_mb, _memory_step(guest), "MiB of memory"),
    ):

        def smaller(number: int, name: str = name) -> RequestSpec:
            return replace(request.spec, flavor=replace(flavor, **{name: number}))

        for found, host in _largest(snapshot, request, hosts, range(step, wanted, step), smaller, time_limit):
            text = f"{found} {unit} instead of {wanted}"
            yield _proposal(snapshot, "cells", name, text, (wanted, found), request, smaller(found), host)


def _lacking_only(survey: Survey, hardware: Sequence[Condition]) -> list[int]:
    """Return the positions of the hosts nearest to having the hardware, of hosts that lack nothing else."""
    if not hardware:
        return []
    failed = np.zeros(len(survey.index), dtype=np.int32)
    removed = np.zeros(len(survey.index), dtype=np.bool_)
    for each in hardware:
        removed |= each.removed if each.failing is None else each.failing
        if each.failing is not None:
            failed += each.failing
    only = survey.offered & survey.is_host & removed & (survey.failures == failed)
    return nearest_positions(survey, hardware, only, MOST_HOSTS)


def _largest(
    snapshot: Snapshot,
    request: SchedulingRequest,
    hosts: Sequence[int | None],
    amounts: range,
    changed: _Changed,
    time_limit: TimeLimit,
) -> Iterator[tuple[int, int | None]]:
    """Yield the largest of the ascending amounts with which a host takes the instance, for each host with
    one."""
    for host in hosts:
        low, high = 0, len(amounts)
        while low < high and not time_limit.over():
            middle = (low + high) // 2
            if _works(snapshot, request, changed(amounts[middle]), host):
                low = middle + 1
            else:
                high = middle
        if low:
            yield amounts[low - 1], host


def _works(snapshot: Snapshot, request: SchedulingRequest, spec: RequestSpec, host: int | None) -> bool:
    try:
        changed = snapshot.with_spec(request, spec)
    except SchedulerError:
        # Flavor and image describe single cells, or CPUs by number, which contradicts another amount.
        return False
    return snapshot.works(changed, None, host) is not None


def _proposal(
    snapshot: Snapshot,
    kind: RelaxationKind,
    name: str,
    text: str,
    numbers: tuple[int, int],
    request: SchedulingRequest,
    spec: RequestSpec,
    host: int | None,
) -> Proposal:
    before, after = numbers
    changed = snapshot.with_spec(request, spec)
    distance = (before - after) / before
    return Proposal(kind, name, text, distance, changed, (host,), None, None, before, after)


def _with_count(spec: RequestSpec, alias: str, count: int) -> RequestSpec:
    """Return the spec with another number of devices of an alias, wherever it names it."""
    if any(each.alias is not None for each in spec.pci_requests):
        requests = tuple(
            replace(each, count=count) if each.alias == alias else each for each in spec.pci_requests
        )
        return replace(spec, pci_requests=requests)
    parts = [each.partition(":") for each in spec.flavor.extra_specs[ALIAS].split(",")]
    text = ",".join(
        f"{name.strip()}:{count if name.strip() == alias else before.strip()}" for name, _, before in parts
    )
    flavor = replace(spec.flavor, extra_specs={**spec.flavor.extra_specs, ALIAS: text})
    return replace(spec, flavor=flavor)


def _memory_step(guest: GuestTopology) -> int:
    """Return the MiB by which a guest's memory can be lowered: each cell has equal memory, in whole pages."""
    size = guest.page_size or 0
    return len(guest.cells) * max(1, size // 1024)
