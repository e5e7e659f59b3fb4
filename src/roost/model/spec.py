"""The input of the scheduler (flavor, image, group, request spec) and its output (selection, destination)."""

from typing import Any, Literal

import msgspec

from roost.model.allocation import GroupClaim, GroupPolicy
from roost.model.assignment import Assignment
from roost.model.request import RequestGroup

NumaPolicy = Literal["required", "preferred", "legacy", "socket"]
"""NUMA affinity that devices must have to the guest.

``required``: on one of the host's NUMA nodes that the guest uses. ``socket``: on the same socket as one of
these. ``legacy``: as ``required``, or a device whose NUMA node is unknown. ``preferred``: close ones first,
else any.
Source: ``numa_policy`` of Nova's option ``[pci] alias``.
"""


class PciRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A request for ``count`` equal PCI devices, of a flavor's alias or of a Neutron port.

    - ``id``: names the request within the request spec, and its devices in the assignment.
    - ``specs``: alternatives. A device suits if it has all properties of one of them. Properties are
      ``vendor_id``, ``product_id``, ``dev_type`` (``type-PCI``, ``type-PF``, ``type-VF``, ``vdpa``) and tags
      such as ``physical_network``; None stands for a tag that the device does not have.
    - ``alias``: the name of the flavor's alias, None for a port.
    - ``numa_policy``: None means ``legacy``.
    - ``requester_id``: the id of the port, None for an alias.

    Source: ``InstancePCIRequest`` of Nova.
    """

    id: str
    count: int = 1
    specs: tuple[dict[str, str | None], ...]
    alias: str | None = None
    numa_policy: NumaPolicy | None = None
    requester_id: str | None = None

    @property
    def wanted(self) -> tuple[object, ...]:
        """The conditions on devices as a hashable value, equal for requests that differ only in their ids."""
        specs = tuple(tuple(sorted(each.items(), key=lambda item: item[0])) for each in self.specs)
        return (self.count, specs, self.numa_policy, self.alias is not None)


Operation = Literal["create", "rebuild", "resize", "migrate", "live_migrate", "evacuate", "unshelve"]
"""Operations that a host is selected for. ``rebuild`` keeps the instance on its host and claims nothing."""

Hints = dict[str, tuple[str, ...]]
"""Scheduler hints: key -> list of values, mostly of one value."""


class Flavor(msgspec.Struct, frozen=True):
    """A named instance size: ``vcpus`` in threads, ``memory_mb`` and ``swap_mb`` in MiB, disks in GiB.

    ``disk_gb`` is the root disk, ``ephemeral_gb`` the disks beside it. ``extra_specs`` has Nova's keys:
    `roost.scheduler.request.query` turns some of them into resources and traits, filters compare others.
    """

    name: str
    vcpus: int
    memory_mb: int
    disk_gb: int = 0
    extra_specs: dict[str, str] = {}
    ephemeral_gb: int = 0
    swap_mb: int = 0


class Image(msgspec.Struct, frozen=True):
    """The image that an instance is made from.

    ``properties`` has Nova's keys, such as ``hw_disk_bus``, and ``trait:NAME``. Values are texts.
    """

    id: str | None = None
    disk_format: str | None = None
    properties: dict[str, str] = {}


class RequestedDestination(msgspec.Struct, frozen=True, kw_only=True):
    """The place that a request is restricted to; filters evaluate the hosts in it as usual.

    ``host`` is the name of a compute service, ``node`` of one of its compute nodes. ``aggregates`` are uuids
    in conjunctive normal form: a host is in one aggregate of every set. ``cell`` is the name of a cell,
    ``cell_uuid`` its uuid if the caller has one, which is looked for first. ``allow_cross_cell_move`` permits
    hosts outside of the cell.
    """

    host: str | None = None
    node: str | None = None
    cell: str | None = None
    aggregates: tuple[frozenset[str], ...] = ()
    forbidden_aggregates: frozenset[str] = frozenset()
    allow_cross_cell_move: bool = False
    cell_uuid: str | None = None


class RequestedNetwork(msgspec.Struct, frozen=True, kw_only=True):
    """A network or port that instances are attached to, with the facts of Neutron that restrict hosts.

    ``segments``: ids of the segments that the network or port can be on, which are the uuids of their
    providers in placement; for a port with an address, only the segment of its subnet. Empty if the network
    is not routed. ``remote_managed``: the port is served by a SmartNIC. ``device_profile``: the name of the
    device profile of the port's accelerator.
    """

    network_id: str | None = None
    port_id: str | None = None
    segments: tuple[str, ...] = ()
    remote_managed: bool = False
    device_profile: str | None = None


class NetworkMetadata(msgspec.Struct, frozen=True, kw_only=True):
    """The networks of a request that NUMA cells of hosts may be close to.

    ``physnets``: names of physical networks. ``tunneled``: one of the networks is tunneled.

    Source: ``NetworkMetadata`` of Nova.
    """

    physnets: frozenset[str] = frozenset()
    tunneled: bool = False


class ServerGroup(msgspec.Struct, frozen=True):
    """A server group.

    ``hosts`` has the host of each placed member that the writer of the spec knows, so a host with two members
    is in it twice. Members that have a claim in the ledger count also if ``hosts`` lacks them.
    ``max_server_per_host`` limits ``anti-affinity``.

    ``members``: the uuids of members, as far as the writer of the spec knows them. Where nodes report them
    they count also if ``hosts`` lacks them, but for ``affinity``. Nova has each host once in ``hosts``.
    """

    uuid: str
    policy: GroupPolicy
    hosts: tuple[str, ...] = ()
    max_server_per_host: int = 1
    members: tuple[str, ...] = ()

    def claim(self, held_by: str | None = None) -> GroupClaim:
        """Return the group as the condition of a claim. ``held_by``: see `GroupClaim`."""
        return GroupClaim(self.uuid, self.policy, self.max_server_per_host, held_by)


class RequestSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A request for one or more equal instances, as the conductor passes it to the scheduler.

    - ``requested_resources``: request groups beside the flavor's (ports, devices), each with its own suffix;
      ``pci_groups``: the suffixes of those that are PCI devices.
    - ``pci_requests``: requests for PCI devices of the pools that nodes report. The scheduler adds those of
      the flavor's aliases, unless one of these requests has an alias already.
    - ``root_required``, ``root_forbidden``: traits of the tree's root. ``same_subtree``: sets of suffixes.
    - ``required_traits``, ``forbidden_traits``: traits of the unsuffixed group.
    - ``volume_backed``: the root disk is a volume, so that hosts provide none.
    - ``ignore_hosts``: hosts that are not used; ``retried_hosts``: hosts that have failed this request.
    - ``force_hosts``, ``force_nodes``: the only hosts and nodes that are used. No filter evaluates them.
    - ``needs_version``: the lowest service version of an agent that can build all of it.
    - ``image.properties`` and ``scheduler_hints`` have free keys; records redact values that look like
      secrets.
    """

    project_id: str
    user_id: str
    flavor: Flavor
    operation: Operation = "create"
    image: Image | None = None
    volume_backed: bool = False
    availability_zone: str | None = None
    group: ServerGroup | None = None
    requested_resources: tuple[RequestGroup, ...] = ()
    pci_groups: frozenset[str] = frozenset()
    pci_requests: tuple[PciRequest, ...] = ()
    required_traits: frozenset[str] = frozenset()
    forbidden_traits: frozenset[str] = frozenset()
    root_required: frozenset[str] = frozenset()
    root_forbidden: frozenset[str] = frozenset()
    same_subtree: tuple[frozenset[str], ...] = ()
    requested_networks: tuple[RequestedNetwork, ...] = ()
    network_metadata: NetworkMetadata | None = None
    requested_destination: RequestedDestination | None = None
    force_hosts: tuple[str, ...] = ()
    force_nodes: tuple[str, ...] = ()
    ignore_hosts: frozenset[str] = frozenset()
    retried_hosts: frozenset[str] = frozenset()
    scheduler_hints: Hints = {}
    needs_version: int = 0

    @property
    def image_properties(self) -> dict[str, str]:
        """The properties of the image, empty without an image."""
        return {} if self.image is None else self.image.properties


class Selection(msgspec.Struct, frozen=True):
    """One host for one instance: the selected host, whose ``allocations`` are claimed, or an alternate.

    ``host`` is the name of the compute service, ``node`` the uuid of the root provider, ``cell`` the cell's
    name. ``zone`` is the host's availability zone, None in selections that earlier versions stored.
    ``allocations`` and ``mappings`` (suffix of a request group -> uuids of the providers that serve it) are
    the allocation request, in the form of microversion ``allocation_request_version``. ``limits`` are the
    limits that filters set for the host, by name, as in Nova. ``weight`` is the host's weighed score.
    ``assignment`` is the hardware of the node that the instance holds. An alternate's was free when the
    alternate was found; a new assignment is chosen when the alternate is used.
    ``ordinal`` is the number of the recorded attempt that claimed the host, 0 in alternates.
    ``generation`` is the consumer's generation after this claim, None in alternates, and in selections
    that earlier versions stored.
    """

    host: str
    node: str
    cell: str
    allocations: dict[str, dict[str, int]]
    mappings: dict[str, list[str]]
    weight: float
    zone: str | None = None
    limits: dict[str, object] = {}
    allocation_request_version: str = "1.39"
    assignment: Assignment | None = None
    ordinal: int = 0
    generation: int | None = None


class Destination(msgspec.Struct, frozen=True):
    """The result for one instance: the claimed host, and alternates in the same cell, best first.

    ``run`` is the id of the scheduler run that chose them.
    """

    run: str
    instance: str
    selected: Selection
    alternates: tuple[Selection, ...] = ()


def current_spec(stored: dict[str, Any]) -> dict[str, Any]:
    """Return the plain data of a request spec in today's form.

    Until 0.1.0 a hint had one value, properties of the image stood in the spec itself, and ``requested_host``
    named the requested host.
    """
    spec = dict(stored)
    hints = spec.get("scheduler_hints")
    if isinstance(hints, dict):
        spec["scheduler_hints"] = {
            key: [value] if isinstance(value, str) else value for key, value in hints.items()
        }
    properties = spec.pop("image_properties", None)
    if properties:
        spec["image"] = {"properties": properties}
    host = spec.pop("requested_host", None)
    if host is not None:
        spec["requested_destination"] = {"host": host}
    return spec


Where = Literal["extra_spec", "image_property", "hint"]
"""The part of a request with free keys: flavor, image, or scheduler hints."""


class UnreadKey(msgspec.Struct, frozen=True):
    """A key of a request that has no effect, because no part of the configured scheduler reads it.

    ``text`` is a sentence that names the key and the reason, or the key that was meant. It omits the value.
    """

    where: Where
    key: str
    text: str
