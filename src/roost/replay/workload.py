"""A workload: hosts, and requests that arrive in bins of virtual time.

A runner goes through the bins in order. At each it first frees every instance whose departure
(`Request.departures`) is at or before the bin's start, then submits the bin's requests in order. So an
instance that lives for less than its bin still meets everything else that arrives in it.
"""

import uuid
from collections.abc import Sequence
from typing import Final

import msgspec

from roost.model.allocation import Resources
from roost.model.request import RequestGroup
from roost.model.spec import Flavor

BIN_SECONDS: Final = 300
"""Width of a bin, virtual seconds, where a workload's source does not say otherwise."""

AVAILABILITY_ZONE: Final = "availability_zone"
"""The key of an aggregate's metadata that makes the aggregate an availability zone, as in Nova."""

_PROJECTS: Final = uuid.UUID("8d1b7f0c-5c53-5a33-9f1e-6a2f6b0c7e11")


class Child(msgspec.Struct, frozen=True):
    """A child provider of a host, named ``<host>-<suffix>``."""

    suffix: str
    resources: Resources
    traits: tuple[str, ...] = ()


class HostShape(msgspec.Struct, frozen=True):
    """The provider tree of a host: what its root has, and the children under the root.

    Amounts are totals of inventories, nothing reserved or overcommitted (MEMORY_MB: MiB, DISK_GB: GiB).
    """

    resources: Resources
    children: tuple[Child, ...] = ()
    traits: tuple[str, ...] = ()


class Aggregate(msgspec.Struct, frozen=True):
    """A host aggregate and its metadata. Equal names mean the same aggregate."""

    name: str
    metadata: dict[str, str] = {}


class Host(msgspec.Struct, frozen=True):
    """One host. ``cell`` is the index of its cell, None where the runner may choose."""

    name: str
    shape: HostShape
    cell: int | None = None
    aggregates: tuple[Aggregate, ...] = ()

    @property
    def availability_zone(self) -> str | None:
        """The zone that one of its aggregates makes it a part of."""
        zones = (aggregate.metadata.get(AVAILABILITY_ZONE) for aggregate in self.aggregates)
        return next((zone for zone in zones if zone is not None), None)


# No reference cycle can go through these two, and a trace has very many: the collector need not look at them.
class Request(msgspec.Struct, frozen=True, gc=False):
    """A request for one or more equal instances.

    ``at`` is when it arrives; ``lifetimes`` has one entry for each instance, None if it stays to the end
    (both virtual seconds). ``requested_resources`` are further request groups, as in a request spec.
    ``group_policy`` puts the request's instances into a server group of their own with this policy
    (``affinity`` or ``anti-affinity``).
    """

    at: int
    project_id: str
    flavor: Flavor
    lifetimes: tuple[int | None, ...]
    requested_resources: tuple[RequestGroup, ...] = ()
    availability_zone: str | None = None
    group_policy: str | None = None
    required_traits: frozenset[str] = frozenset()

    @property
    def count(self) -> int:
        """How many instances are asked for."""
        return len(self.lifetimes)

    @property
    def departures(self) -> tuple[int | None, ...]:
        """When each instance departs, virtual seconds; None if it stays to the end."""
        return tuple(None if lifetime is None else self.at + lifetime for lifetime in self.lifetimes)


class Bin(msgspec.Struct, frozen=True, gc=False):
    """The requests that arrive from ``start`` (virtual seconds) on, until the next bin; in order."""

    start: int
    requests: tuple[Request, ...]


class Workload(msgspec.Struct, frozen=True):
    """Hosts and bins, with every custom name that they use. Bins are in order of time, hosts' names unique.

    Flavors of one name are equal. ``resource_classes`` and ``traits`` are the custom ones (also those that
    only requests name), sorted: what must be created before the hosts can be.
    """

    name: str
    hosts: tuple[Host, ...]
    bins: Sequence[Bin]
    resource_classes: tuple[str, ...] = ()
    traits: tuple[str, ...] = ()

    @property
    def requests(self) -> int:
        """Number of requests."""
        return sum(len(bin_.requests) for bin_ in self.bins)

    @property
    def instances(self) -> int:
        """Number of instances asked for."""
        return sum(request.count for bin_ in self.bins for request in bin_.requests)

    def first(self, bins: int | None, hosts: int | None) -> "Workload":
        """The first ``bins`` bins on the first ``hosts`` hosts; None for all of them."""
        return msgspec.structs.replace(self, bins=self.bins[:bins], hosts=self.hosts[:hosts])


def project_id(tenant: str) -> str:
    """The project id that always stands for ``tenant``, in Keystone's form: 32 hexadecimal digits."""
    return uuid.uuid5(_PROJECTS, tenant).hex


def into_bins(requests: Sequence[Request], width: int = BIN_SECONDS) -> tuple[Bin, ...]:
    """``requests``, in order of arrival, in bins starting at multiples of ``width``, without empty ones."""
    bins: dict[int, list[Request]] = {}
    for request in requests:
        bins.setdefault(request.at // width * width, []).append(request)
    return tuple(Bin(start, tuple(arriving)) for start, arriving in bins.items())
