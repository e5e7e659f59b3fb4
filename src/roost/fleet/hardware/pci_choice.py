"""`FreePools`: the free PCI devices of one node, and the choice of devices for a list of requests.

Source of the order of all steps: ``PciDeviceStats`` of ``nova/pci/stats.py``.
"""

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from roost.fleet.hardware.pci_pools import TYPE_PF, VDPA, PciPool, is_true, pools_of
from roost.model.assignment import AssignedDevices
from roost.model.spec import PciRequest

Sockets = Mapping[int, int | None]
"""Host cell -> its socket, None where the node does not report it."""

Mappings = Mapping[str, Sequence[str]]
"""Suffix of a request group -> uuids of the providers that serve it."""

Taken = tuple[tuple[int, int], ...]
"""The devices that one request takes: pairs of the index of a pool and a number of its devices."""

NOT_MATCHED: Final = frozenset(("resource_class", "traits", "rp_uuid", "rp_uuids"))
"""Properties of a request that placement checks instead. Source: ``ignored_spec_tags`` of Nova."""

MOST_STEPS: Final = 500
"""Most steps of the search for requests of which one takes a physical function and another a virtual function
of it; a longer search finds nothing."""


class FreePools:
    """The free devices of one node, by pool, in the order in which pools are used."""

    __slots__ = ("pools",)

    def __init__(self, pools: Sequence[PciPool]) -> None:
        self.pools = pools

    @classmethod
    def reported(cls, reported: Iterable[Mapping[str, Any]]) -> "FreePools":
        """Return the pools of a node's report, see `pools_of`."""
        return cls(pools_of(reported))

    def __bool__(self) -> bool:
        return bool(self.pools)

    def without(self, assigned: Iterable[AssignedDevices]) -> "FreePools":
        """Return the devices that are left when these are assigned.

        A physical function and its virtual functions exclude each other: one assigned makes the other
        unusable. Devices of a pool that the node no longer reports are gone already.
        """
        taken = Counter[str]()
        gone: set[str] = set()
        for each in assigned:
            taken[each.pool] += each.count
            gone.update(each.addresses)
        if not taken:
            return self
        left = [max(0, pool.count - taken[pool.key]) for pool in self.pools]
        self._drop_dependents(left, {at for at, pool in enumerate(self.pools) if pool.key in taken})
        shrunk = (_shrunk(pool, count, gone) for pool, count in zip(self.pools, left, strict=True) if count)
        return FreePools([pool for pool in shrunk if pool.count])

    def choose(
        self,
        requests: Sequence[PciRequest],
        host_cells: Collection[int] | None = None,
        sockets: Sockets | None = None,
        mappings: Mappings | None = None,
    ) -> tuple[AssignedDevices, ...] | None:
        """Return the devices that the requests get, None if one of them does not get enough.

        ``host_cells``: the host cells that the guest's cells are on; without any, NUMA affinity does not
        matter. ``sockets``: of all host cells, for the policy ``socket``. ``mappings``: those of the
        allocation candidate; a request that has groups in it gets devices of the providers that serve these,
        see `group_suffix`.

        Requests are served in order, each from the first pools that suit, as Nova does. If that takes a
        physical function together with virtual functions of it, another choice is searched. Nova detects
        this conflict only on the host.
        """
        left = [pool.count for pool in self.pools]
        taken: list[Taken] = []
        for request in requests:
            providers = providers_of(request, mappings)
            suitable = self._suitable(request, left, host_cells, sockets, providers)
            some = next(self._ways(suitable, left, request.count, providers), None)
            if some is None:
                return None
            for at, count in some:
                left[at] -= count
            taken.append(some)
        if self._conflict({at for some in taken for at, _ in some}):
            searched = self._search(requests, host_cells, sockets, mappings)
            if searched is None:
                return None
            taken = searched
        return tuple(self._named(requests, taken))

    def _suitable(
        self,
        request: PciRequest,
        left: Sequence[int],
        host_cells: Collection[int] | None,
        sockets: Sockets | None,
        providers: Counter[str],
    ) -> list[int]:
        """Return the pools that may serve a request, in the order in which they are used."""
        pools = self.pools
        wanted = DeviceConditions(request)
        suitable = [at for at, pool in enumerate(pools) if left[at] and wanted.suits(pool)]
        if host_cells:
            suitable = self._close(suitable, request, left, host_cells, sockets or {})
        suitable = [at for at in suitable if wanted.names(pools[at])]
        if providers:
            suitable = [
                at
                for at in suitable
                if pools[at].provider in providers and left[at] >= providers[pools[at].provider or ""]
            ]
        return suitable

    def _close(
        self,
        suitable: list[int],
        request: PciRequest,
        left: Sequence[int],
        host_cells: Collection[int],
        sockets: Sockets,
    ) -> list[int]:
        """Return the pools that are close enough to the guest's cells: the closest ones, if they suffice.

        Source: ``_filter_pools_for_numa_cells``.
        """
        cells = {at: self.pools[at].numa_node for at in suitable}
        close = [at for at in suitable if cells[at] in host_cells]
        policy = request.numa_policy or "legacy"
        if policy == "required" or sum(left[at] for at in close) >= request.count:
            return close
        if policy == "socket":
            if any(socket is None for socket in sockets.values()):
                return []
            near = {sockets[cell] for cell in host_cells if cell in sockets}
            here = {cell for cell, socket in sockets.items() if socket in near}
            return [at for at in suitable if cells[at] in here]
        close = [at for at in suitable if cells[at] is None or cells[at] in host_cells]
        if policy == "legacy" or sum(left[at] for at in close) >= request.count:
            return close
        return sorted(suitable, key=lambda at: cells[at] is not None and cells[at] not in host_cells)

    def _conflict(self, taken: Collection[int]) -> bool:
        """Return whether both a physical function and a virtual function of it are taken."""
        some = [self.pools[at] for at in taken if self.pools[at].address is not None]
        whole = {pool.address for pool in some if pool.is_physical}
        return any(pool.address in whole for pool in some if pool.is_virtual)

    def _drop_dependents(self, left: list[int], taken: Collection[int]) -> None:
        """Empty the pools that become unusable when devices are taken from others: see `without`."""
        some = [self.pools[at] for at in taken if self.pools[at].address is not None]
        whole = {pool.address for pool in some if pool.is_physical}
        parts = {pool.address for pool in some if pool.is_virtual}
        for at, pool in enumerate(self.pools):
            if (pool.is_virtual and pool.address in whole) or (pool.is_physical and pool.address in parts):
                left[at] = 0

    def _search(
        self,
        requests: Sequence[PciRequest],
        host_cells: Collection[int] | None,
        sockets: Sockets | None,
        mappings: Mappings | None,
    ) -> list[Taken] | None:
        """Find devices for all requests, of which none is a part of another, by depth-first search."""
        steps = 0

        def serve(number: int, left: list[int]) -> list[Taken] | None:
            nonlocal steps
            if number == len(requests):
                return []
            request = requests[number]
            providers = providers_of(request, mappings)
            suitable = self._suitable(request, left, host_cells, sockets, providers)
            for some in self._ways(suitable, left, request.count, providers):
                steps += 1
                if steps > MOST_STEPS:
                    return None
                if self._conflict({at for at, _ in some}):
                    continue
                after = [*left]
                for at, count in some:
                    after[at] -= count
                self._drop_dependents(after, {at for at, _ in some})
                rest = serve(number + 1, after)
                if rest is not None:
                    return [some, *rest]
            return None

        return serve(0, [pool.count for pool in self.pools])

    def _ways(
        self, suitable: Sequence[int], left: Sequence[int], count: int, providers: Counter[str]
    ) -> Iterator[Taken]:
        """Yield the ways to take ``count`` devices from pools, with the most from the first pools first."""
        if not providers:
            yield from _ways(suitable, left, count)
            return
        found: dict[str, tuple[int, int]] = {}
        for at in suitable:
            provider = self.pools[at].provider or ""
            found.setdefault(provider, (at, providers[provider]))
        if found.keys() == providers.keys():
            yield tuple(found.values())

    def _named(self, requests: Sequence[PciRequest], taken: Sequence[Taken]) -> Iterator[AssignedDevices]:
        used = [0] * len(self.pools)
        for request, some in zip(requests, taken, strict=True):
            for at, count in some:
                pool = self.pools[at]
                addresses = pool.addresses(used[at], count)
                used[at] += count
                yield AssignedDevices(request=request.id, pool=pool.key, count=count, addresses=addresses)


def providers_of(request: PciRequest, mappings: Mappings | None) -> Counter[str]:
    """Return the number of devices of a request that each provider serves in an allocation candidate.

    Empty if the request is not part of the placement query, as those of ports are not.
    """
    if not mappings or request.alias is None:
        return Counter()
    groups = (group_suffix(request, number) for number in range(request.count))
    return Counter(mappings[group][0] for group in groups if group in mappings)


def devices_of_providers(requests: Sequence[PciRequest], mappings: Mappings | None) -> Hashable:
    """Return for each request the number of devices that each provider serves, as a key.

    Allocation candidates with equal keys get the same devices: eight equal devices alone make 8! candidates,
    one for each order of their groups.
    """
    return tuple(frozenset(providers_of(each, mappings).items()) for each in requests)


def group_suffix(request: PciRequest, number: int) -> str:
    """Return the suffix of the request group of one of the devices of a request, counted from 0.

    Source: ``generate_request_groups_from_pci_requests`` of Nova's ``RequestSpec``.
    """
    return f"{request.id}-{number}"


class DeviceConditions:
    """The conditions of a request on devices."""

    __slots__ = ("_alternatives", "_remote_managed", "_types")

    def __init__(self, request: PciRequest) -> None:
        self._alternatives = [
            [
                (name, None if value is None else value.lower())
                for name, value in spec.items()
                if name not in NOT_MATCHED
            ]
            for spec in request.specs
        ]
        self._types = {spec.get("dev_type") for spec in request.specs}
        self._remote_managed = any(is_true(spec.get("remote_managed")) for spec in request.specs)

    def suits(self, pool: PciPool) -> bool:
        """Return whether devices of a pool have all properties of one of the alternatives.

        Source: ``pci_device_prop_match`` of ``nova/pci/utils.py``.
        """
        has = pool.properties.get
        for alternative in self._alternatives:
            for name, value in alternative:
                if has(name) != value:
                    break
            else:
                return True
        return False

    def names(self, pool: PciPool) -> bool:
        """Return whether a pool has ordinary devices, or the request names their kind.

        Physical functions, vDPA devices and devices that a SmartNIC manages are only for requests that name
        them.
        """
        if pool.is_physical and not self.names_physical:
            return False
        if pool.dev_type == VDPA and VDPA not in self._types:
            return False
        return self._remote_managed or not pool.remote_managed

    @property
    def names_physical(self) -> bool:
        """True if the request may get physical functions."""
        return TYPE_PF in self._types

    def may_get(self, pool: PciPool) -> bool:
        """Return whether the request may get devices of a pool, whatever their NUMA node."""
        return self.suits(pool) and self.names(pool)


def _ways(suitable: Sequence[int], left: Sequence[int], count: int) -> Iterator[Taken]:
    if not count:
        yield ()
    elif sum(left[at] for at in suitable) >= count:
        first, *others = suitable
        for some in range(min(left[first], count), -1, -1):
            here = ((first, some),) if some else ()
            for rest in _ways(others, left, count - some):
                yield (*here, *rest)


def _shrunk(pool: PciPool, count: int, gone: Collection[str]) -> PciPool:
    """Return a pool with at most ``count`` devices, and without those whose addresses are ``gone``.

    The pool has no addresses if it is not known which of its devices are left.
    """
    if not pool.devices:
        return pool if count == pool.count else msgspec.structs.replace(pool, count=count)
    devices = tuple(each for each in pool.devices if each not in gone)
    count = min(count, len(devices))
    if count == pool.count:
        return pool
    return msgspec.structs.replace(pool, count=count, devices=devices if len(devices) == count else ())
