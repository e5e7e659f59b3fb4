"""A workload: hosts, and requests that arrive in bins of virtual time.

A replay handles the bins in order. For each bin it first deletes every instance whose departure
(`WorkloadRequest.departures`) is at or before the bin's start, then submits the bin's requests in order. So
an instance with a lifetime shorter than a bin exists together with all others that arrive in its bin.
"""

import uuid
from collections.abc import Sequence
from typing import Final

import msgspec

from roost.model.allocation import GroupPolicy, Resources
from roost.model.request import RequestGroup
from roost.model.spec import Flavor

BIN_SECONDS: Final = 300
"""Width of a bin in virtual seconds, unless the source of a workload sets another."""

AVAILABILITY_ZONE: Final = "availability_zone"
"""The metadata key whose value makes an aggregate an availability zone. Source: Nova."""

_PROJECTS: Final = uuid.UUID("8d1b7f0c-5c53-5a33-9f1e-6a2f6b0c7e11")


class Child(msgspec.Struct, frozen=True):
    """A child provider of a host. Its name is ``<host>-<suffix>``."""

    suffix: str
    resources: Resources
    traits: tuple[str, ...] = ()


class WorkloadHostTree(msgspec.Struct, frozen=True):
    """The provider tree of a host: resources and traits of its root, and the children of the root.

    Amounts are totals of inventories without reserve or overcommitment; MEMORY_MB in MiB, DISK_GB in GiB.
    """

    resources: Resources
    children: tuple[Child, ...] = ()
    traits: tuple[str, ...] = ()


class WorkloadAggregate(msgspec.Struct, frozen=True):
    """A host aggregate and its metadata. Aggregates with one name are one aggregate."""

    name: str
    metadata: dict[str, str] = {}


class Host(msgspec.Struct, frozen=True):
    """A host. ``cell``: the index of its cell; None leaves the choice to the replay."""

    name: str
    shape: WorkloadHostTree
    cell: int | None = None
    aggregates: tuple[WorkloadAggregate, ...] = ()

    @property
    def availability_zone(self) -> str | None:
        """The availability zone of the first of its aggregates that has one."""
        zones = (aggregate.metadata.get(AVAILABILITY_ZONE) for aggregate in self.aggregates)
        return next((zone for zone in zones if zone is not None), None)


# A trace has very many requests and bins. They cannot form reference cycles, so the collector skips them.
class WorkloadRequest(msgspec.Struct, frozen=True, gc=False):
    """A request for one or more equal instances.

    ``at``: its arrival in virtual seconds. ``lifetimes``: the lifetime of each instance in virtual seconds;
    None for one that stays to the end. ``requested_resources``: further request groups, as in a request
    spec. ``group_policy``: the policy (``affinity`` or ``anti-affinity``) of a server group of the
    request's instances; None for no group.
    """

    at: int
    project_id: str
    flavor: Flavor
    lifetimes: tuple[int | None, ...]
    requested_resources: tuple[RequestGroup, ...] = ()
    availability_zone: str | None = None
    group_policy: GroupPolicy | None = None
    required_traits: frozenset[str] = frozenset()

    @property
    def count(self) -> int:
        """The number of instances."""
        return len(self.lifetimes)

    @property
    def departures(self) -> tuple[int | None, ...]:
        """The virtual second at which each instance departs; None for one that stays to the end."""
        return tuple(None if lifetime is None else self.at + lifetime for lifetime in self.lifetimes)


class Bin(msgspec.Struct, frozen=True, gc=False):
    """The requests that arrive from ``start`` (virtual seconds) until the next bin, in order."""

    start: int
    requests: tuple[WorkloadRequest, ...]


class Workload(msgspec.Struct, frozen=True):
    """Hosts with unique names, and bins in order of time.

    Flavors with one name are equal. ``resource_classes`` and ``traits`` are the custom ones that hosts and
    requests name, sorted; they must be created before the hosts. ``in_order``: the seconds are positions in
    the order of arrival, not times.
    """

    name: str
    hosts: tuple[Host, ...]
    bins: Sequence[Bin]
    resource_classes: tuple[str, ...] = ()
    traits: tuple[str, ...] = ()
    in_order: bool = False

    @property
    def requests(self) -> int:
        """The number of requests."""
        return sum(len(bin_.requests) for bin_ in self.bins)

    @property
    def instances(self) -> int:
        """The number of instances in all requests."""
        return sum(request.count for bin_ in self.bins for request in bin_.requests)

    def first(self, bins: int | None, hosts: int | None) -> "Workload":
        """Return the first ``bins`` bins on the first ``hosts`` hosts; None takes all."""
        return msgspec.structs.replace(self, bins=self.bins[:bins], hosts=self.hosts[:hosts])


def project_id(tenant: str) -> str:
    """Return the project id of a tenant, always the same: 32 hexadecimal digits, as in Keystone."""
    return uuid.uuid5(_PROJECTS, tenant).hex


def into_bins(requests: Sequence[WorkloadRequest], width: int = BIN_SECONDS) -> tuple[Bin, ...]:
    """Return bins of ``width`` virtual seconds for requests in order of arrival. There are no empty bins."""
    bins: dict[int, list[WorkloadRequest]] = {}
    for request in requests:
        bins.setdefault(request.at // width * width, []).append(request)
    return tuple(Bin(start, tuple(arriving)) for start, arriving in bins.items())
