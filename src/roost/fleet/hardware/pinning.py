"""Pinning of the dedicated vCPUs of one guest cell to host CPUs.

Source: ``_pack_instance_onto_cores`` of ``nova/virt/hardware.py``. Cores are filled evenly: a guest gets as
many threads of each core as the emptiest cores have free.
"""

from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

from roost.fleet.hardware.cpus import Cpus, numbers_of
from roost.fleet.hardware.host_topology import HostCell
from roost.fleet.hardware.lack import CellLack, LackKind


class Pinning(NamedTuple):
    """Host CPUs of one guest cell.

    ``cpus``: one for each dedicated vCPU. ``reserved``: for emulator threads. ``withheld``: siblings of these
    that no other guest may use.
    """

    cpus: tuple[int, ...]
    reserved: tuple[int, ...] = ()
    withheld: tuple[int, ...] = ()


def pin(host: HostCell, count: int, thread_policy: str, reserved: int) -> Pinning | CellLack:
    """Return host CPUs for ``count`` dedicated vCPUs and ``reserved`` for emulator threads, or the lack."""
    free = host.free_cpus.bit_count()
    if count + reserved > free:
        return CellLack(LackKind.DEDICATED_CPUS, count + reserved, free)
    if thread_policy == "isolate":
        return _one_for_each_core(host, count, reserved)
    return _packed(host, count, reserved, require=thread_policy == "require")


def _packed(host: HostCell, count: int, reserved: int, *, require: bool) -> Pinning | CellLack:
    cores = [numbers_of(core) for core in host.free_cores]
    if require and host.threads_per_core == 1:
        return CellLack(LackKind.NO_THREADS)
    cpus: Sequence[int] | None = None
    most = 0
    for threads in range(max(map(len, cores), default=0), int(require), -1):
        having = [core for core in cores if len(core) >= threads]
        most = max(most, threads * len(having))
        if threads * len(having) >= count:
            cpus = [*chain.from_iterable(core[:threads] for core in having)][:count]
            break
    if cpus is None and not require:
        # The same number of threads of each core does not suffice, but all free threads may.
        everything = [*chain.from_iterable(cores)]
        most = len(everything)
        cpus = everything[:count] if most >= count else None
    if cpus is None:
        return CellLack(LackKind.THREADS if require else LackKind.DEDICATED_CPUS, count, most)
    if not reserved:
        return Pinning(tuple(cpus))
    taken = frozenset(cpus)
    left = [cpu for core in cores for cpu in core if cpu not in taken]
    # Emulator threads need a vCPU of the cell that is pinned: that is Nova's rule.
    if not count or len(left) < reserved:
        return CellLack(LackKind.DEDICATED_CPUS, count + reserved, len(taken) + len(left) if count else 0)
    return Pinning(tuple(cpus), tuple(left[:reserved]))


def _one_for_each_core(host: HostCell, count: int, reserved: int) -> Pinning | CellLack:
    """Pin to one thread of each core; the siblings stay idle."""
    threads = host.threads_per_core
    free = host.free_cores
    whole = [core for core in free if core.bit_count() >= threads]
    if not count or len(whole) < max(1, count):
        return CellLack(LackKind.WHOLE_CORES, max(1, count), len(whole) if count else 0)
    # Siblings can be withheld only on nodes that do not distinguish dedicated CPUs from shared ones.
    if threads > 1 and host.pcpuset != host.cpuset:
        return CellLack(LackKind.THREADS_EXPOSED)
    used = whole[:count]
    cpus = tuple(numbers_of(core)[0] for core in used)
    # Whole cores first: siblings of a partly used core cannot be withheld.
    others = sorted((core for core in free if core not in used), key=lambda core: core.bit_count() < threads)
    if len(others) < reserved:
        return CellLack(LackKind.WHOLE_CORES, count + reserved, count + len(others))
    kept = tuple(numbers_of(core)[0] for core in others[:reserved])
    taken = _union(used) | _union(others[:reserved])
    named = frozenset((*cpus, *kept))
    return Pinning(cpus, kept, tuple(cpu for cpu in numbers_of(taken) if cpu not in named))


def _union(cores: Sequence[Cpus]) -> Cpus:
    found = 0
    for core in cores:
        found |= core
    return found
