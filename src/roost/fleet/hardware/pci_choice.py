"""`Pools`: the free PCI devices of one node, and which of them a list of requests gets.

Source of the order of all steps: ``PciDeviceStats`` of ``nova/pci/stats.py``.
"""

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from roost.fleet.hardware.pci_pools import TYPE_PF, VDPA, PciPool, is_true, pools_of
from roost.model.assignment import AssignedDevices
from roost.model.pci import PciRequest

Sockets = Mapping[int, int | None]
"""Host cell -> its socket, None where the node does not report it."""

Mappings = Mapping[str, Sequence[str]]
"""Suffix of a request group -> uuids of the providers that serve it."""

Taken = tuple[tuple[int, int], ...]
"""What one request takes: the number of each pool, and how many devices of it."""

NOT_MATCHED: Final = frozenset(("resource_class", "traits", "rp_uuid", "rp_uuids"))
"""Properties of a request that placement decides on. Source: ``ignored_spec_tags`` of Nova."""

MOST_STEPS: Final = 500
"""Steps of the search that is made where requests for physical and virtual functions get in each other's way;
a longer search finds nothing."""


class Pools:
    """The free devices of one node, by pool, in the order in which pools are used."""

    __slots__ = ("pools",)

    def __init__(self, pools: Sequence[PciPool]) -> None:
        self.pools = pools

    @classmethod
    def reported(cls, reported: Iterable[Mapping[str, Any]]) -> "Pools":
        """The pools of a node's report, see `pools_of`."""
        return cls(pools_of(reported))

    def __bool__(self) -> bool:
        return bool(self.pools)

    def without(self, assigned: Iterable[AssignedDevices]) -> "Pools":
        """What is left when these devices are assigned.

        A physical function and its virtual ones cannot both be used: one assigned takes the other away.
        Devices of a pool that the node does not report any more are gone already.
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
        return Pools([pool for pool in shrunk if pool.count])

    def choose(
        self,
        requests: Sequence[PciRequest],
        host_cells: Collection[int] | None = None,
        sockets: Sockets | None = None,
        mappings: Mappings | None = None,
    ) -> tuple[AssignedDevices, ...] | None:
        """The devices that the requests get, None if one of them does not get enough.

        ``host_cells``: the host cells that the guest's cells are on; without any, NUMA affinity does not
        matter. ``sockets``: of all host cells, for the policy ``socket``. ``mappings``: those of the
        allocation candidate; a request that has groups in it gets devices of the providers that serve these,
        see `group_suffix`.

        Requests are served in order, each from the first pools that suit, as Nova does. Where that takes
        a physical function together with virtual functions of it, which Nova finds out on the host alone,
        another choice is looked for.
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
        """The pools that may serve a request, in the order in which they are used."""
        pools = self.pools
        wanted = Wanted(request)
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
        """The pools that are close enough to the guest's cells: the closest ones, if they suffice.

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
        """Whether a physical function is among pools that devices are taken from, and a virtual one of it."""
        some = [self.pools[at] for at in taken if self.pools[at].address is not None]
        whole = {pool.address for pool in some if pool.is_physical}
        return any(pool.address in whole for pool in some if pool.is_virtual)

    def _drop_dependents(self, left: list[int], taken: Collection[int]) -> None:
        """Leave nothing of the pools that devices taken from others make unusable: see `without`."""
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
        """Devices for all requests of which none is a part of another, by depth-first search."""
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
        """The ways to take ``count`` devices from pools, those that use up the first pools first."""
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
    """How many devices of a request each provider serves by the mappings of an allocation candidate; nothing
    if the request is not asked of placement, as those of ports."""
    if not mappings or request.alias is None:
        return Counter()
    groups = (group_suffix(request, number) for number in range(request.count))
    return Counter(mappings[group][0] for group in groups if group in mappings)


def devices_of_providers(requests: Sequence[PciRequest], mappings: Mappings | None) -> Hashable:
    """How many devices each provider serves, for each request. Allocation candidates for which this is equal
    get the same devices: the order in which the groups of eight equal devices are served makes 8! of them."""
    return tuple(frozenset(providers_of(each, mappings).items()) for each in requests)


def group_suffix(request: PciRequest, number: int) -> str:
    """The suffix of the request group of one of the devices of a request, counted from 0.

    Source: ``generate_request_groups_from_pci_requests`` of Nova's ``RequestSpec``.
    """
    return f"{request.id}-{number}"


class Wanted:
    """Which devices a request is for."""

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
        """Whether devices of a pool have all properties of one of the alternatives.

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
        """Whether a pool is of ordinary devices, or the request names its kind: physical functions, vDPA
        devices and devices that a SmartNIC manages are for requests that name them."""
        if pool.is_physical and not self.names_physical:
            return False
        if pool.dev_type == VDPA and VDPA not in self._types:
            return False
        return self._remote_managed or not pool.remote_managed

    @property
    def names_physical(self) -> bool:
        """Whether the request may get physical functions."""
        return TYPE_PF in self._types

    def may_get(self, pool: PciPool) -> bool:
        """Whether devices of a pool are for the request, wherever they are."""
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
    """A pool with ``count`` devices at most, and without those whose addresses are ``gone``. What it has left
    has no addresses where these cannot be told."""
    if not pool.devices:
        return pool if count == pool.count else msgspec.structs.replace(pool, count=count)
    devices = tuple(each for each in pool.devices if each not in gone)
    count = min(count, len(devices))
    if count == pool.count:
        return pool
    return msgspec.structs.replace(pool, count=count, devices=devices if len(devices) == count else ())
