"""Instances as bodies and queries of HTTP requests and responses."""

from collections import Counter
from typing import Annotated, ClassVar, Literal

import msgspec
from msgspec import Meta

from roost.conductor.instances.network_types import WantedNetwork, WantedPortResources
from roost.model.allocation import GroupPolicy
from roost.model.instance import BuildAttempt
from roost.model.names import lookalike
from roost.model.request import RequestGroup, all_of
from roost.model.spec import Hints, RequestedDestination, UnreadKey
from roost.model.vocabulary import MAX_INT, MAX_NAME
from roost.web.policy import OfProjects
from roost.web.query import DEFAULT_PAGE, LARGEST_PAGE, Moment, Uuid

MOST_AT_ONCE = 1000
"""Instances of one request at most. A larger count is refused."""

MOST_NETWORKS = 100
"""Networks and ports of one request at most. More are refused."""

SCHEDULING = "scheduling"
"""State of an instance that is accepted and not in a cell yet."""

UNKNOWN = "unknown"
"""State of an instance whose cell cannot be asked."""

_State = Literal[
    "scheduling",
    "unknown",
    "assigned",
    "starting",
    "active",
    "lost",
    "powering-off",
    "stopped",
    "powering-on",
    "rebuilding",
    "rebuilding-stopped",
    "shelving",
    "offloaded",
    "shelved",
    "unshelving",
    "failed",
    "abandoned",
    "error",
    "deleting",
    "destroyed",
]

_InstanceName = Annotated[
    str,
    Meta(
        pattern="^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}$",
        description="letters, digits, . _ -, at most 64, beginning with none of . -",
    ),
]
_UuidPrefix = Annotated[
    str, Meta(pattern="^[0-9a-fA-F-]{4,36}$", description="four or more of the first characters of a uuid")
]
_Count = Annotated[int, Meta(ge=1, le=MOST_AT_ONCE)]
_Amount = Annotated[int, Meta(ge=0, le=MAX_INT)]
_Name = Annotated[str, Meta(min_length=1, max_length=MAX_NAME)]


class WantedFlavor(msgspec.Struct, forbid_unknown_fields=True):
    """A flavor in a request."""

    vcpus: _Amount
    memory_mb: _Amount
    disk_gb: _Amount = 0
    name: _Name = "custom"
    extra_specs: dict[str, str] = {}
    ephemeral_gb: _Amount = 0
    swap_mb: _Amount = 0


class WantedImage(msgspec.Struct, forbid_unknown_fields=True):
    """An image in a request. ``properties`` has Nova's keys, such as ``hw_disk_bus``."""

    id: _Name | None = None
    disk_format: _Name | None = None
    properties: dict[str, str] = {}


class WantedRebuild(msgspec.Struct, forbid_unknown_fields=True):
    """The body with which the guest of an instance is made anew. Without `image` from the same one."""

    image: WantedImage | None = None


class WantedShelving(msgspec.Struct, forbid_unknown_fields=True):
    """The body with which an instance is shelved. `discard_disks`: its disk is made anew from its image."""

    discard_disks: bool = False


class WantedGroup(msgspec.Struct, forbid_unknown_fields=True):
    """A server group in a request. `hosts` are the hosts of its members so far.

    If the uuid is that of a group of `/v1/server-groups`, that group's policy and rules count.
    """

    uuid: _Name
    policy: GroupPolicy
    hosts: tuple[str, ...] = ()
    max_server_per_host: Annotated[int, Meta(ge=1, le=MAX_INT)] = 1


class WantedInstances(msgspec.Struct, forbid_unknown_fields=True):
    """The body of a request. Without `min_count` all instances are placed or none.

    `name` is what people call the instance; several are `name-1`, `name-2` and so on. Names may be the same.
    Filters judge a host or node that is requested. They do not judge one that is forced.
    """

    flavor: WantedFlavor
    name: _InstanceName | None = None
    count: _Count = 1
    min_count: _Count | None = None
    availability_zone: str | None = None
    group: WantedGroup | None = None
    required_traits: frozenset[str] = frozenset()
    forbidden_traits: frozenset[str] = frozenset()
    requested_host: str | None = None
    requested_node: str | None = None
    forced_host: _Name | None = None
    forced_node: _Name | None = None
    networks: Annotated[tuple[WantedNetwork, ...], Meta(max_length=MOST_NETWORKS)] = ()
    image: WantedImage | None = None
    volume_backed: bool = False
    ignore_hosts: frozenset[str] = frozenset()
    scheduler_hints: dict[str, str | tuple[str, ...]] = {}

    @property
    def hints(self) -> Hints:
        """The scheduler hints; one value is a list of one."""
        return {
            key: (value,) if isinstance(value, str) else value for key, value in self.scheduler_hints.items()
        }

    @property
    def destination(self) -> RequestedDestination | None:
        """The place that the request is restricted to."""
        if self.requested_host is None and self.requested_node is None:
            return None
        return RequestedDestination(host=self.requested_host, node=self.requested_node)

    @property
    def is_forced(self) -> bool:
        """True if a host or node is forced, so that no filter judges it."""
        return self.forced_host is not None or self.forced_node is not None

    @property
    def port_groups(self) -> tuple[RequestGroup, ...]:
        """The request groups of all ports. Each has its id as suffix."""
        return tuple(
            RequestGroup(group.resources, group.id, all_of(*group.required))
            for resources in self._port_resources
            for group in resources.request_groups
        )

    @property
    def subtrees(self) -> tuple[frozenset[str], ...]:
        """The sets of request groups whose providers are in one subtree."""
        return tuple(frozenset(each.same_subtree) for each in self._port_resources if each.same_subtree)

    @property
    def group_hint(self) -> str | None:
        """The server group that the hints name."""
        named = self.hints.get("group", ())
        return named[0] if named else None

    def _check_names(self) -> None:
        """Refuse names of hosts, nodes and zones that may be mistaken for others."""
        places = (self.requested_host, self.requested_node, self.forced_host, self.forced_node)
        of_group = () if self.group is None else self.group.hosts
        for name in (*places, self.availability_zone, *sorted(self.ignore_hosts), *of_group):
            if name is not None and (why := lookalike(name)) is not None:
                raise ValueError(f"the name {name!a} {why}")

    @property
    def _port_resources(self) -> list[WantedPortResources]:
        return [each.resource_request for each in self.networks if each.resource_request is not None]

    def __post_init__(self) -> None:
        self._check_names()
        if self.min_count is not None and self.min_count > self.count:
            raise ValueError(f"min_count {self.min_count} is more than count {self.count}")
        if self.is_forced and self.destination is not None:
            raise ValueError("a host cannot be requested and forced at once")
        ports = Counter(each.port_id for each in self.networks if each.port_id is not None)
        for port, times in ports.items():
            if times > 1 or self.count > 1:
                raise ValueError(f"port {port} is of one instance, not of {max(times, self.count)}")
        for suffix, times in Counter(group.suffix for group in self.port_groups).items():
            if times > 1:
                raise ValueError(f"{times} request groups of ports have the id {suffix}")
        groups = {*self.hints.get("group", ()), *([self.group.uuid] if self.group is not None else [])}
        if len(groups) > 1:
            raise ValueError(f"an instance is in one server group, not in {' and '.join(sorted(groups))}")


class InstancesQuery(OfProjects, forbid_unknown_fields=True):
    """The query of a list of instances. `cell` and `host` are for administrators."""

    OF_OPERATORS: ClassVar = ("cell", "host")

    request_id: Annotated[
        str | None,
        Meta(description="Only the instances of one request, or of several, with commas between their ids."),
    ] = None
    state: Annotated[_State | None, Meta(description="Only those in one state.")] = None
    cell: Annotated[str | None, Meta(description="Only those of one cell; for administrators.")] = None
    host: Annotated[str | None, Meta(description="Only those of one host; for administrators.")] = None
    changed_since: Annotated[
        Moment | None,
        Meta(description="Only those in cells that have changed since, in seconds since the epoch."),
    ] = None
    name: Annotated[str | None, Meta(description="Only those with this name.")] = None
    uuid_prefix: Annotated[
        _UuidPrefix | None, Meta(description="Only those whose uuid begins so, by four characters at least.")
    ] = None
    limit: Annotated[int, Meta(ge=1, le=LARGEST_PAGE, description="Instances on a page.")] = DEFAULT_PAGE
    marker: Annotated[
        Uuid | None, Meta(description="`next` of the page before: the page begins after this uuid.")
    ] = None

    @property
    def request_ids(self) -> tuple[str, ...] | None:
        """The requests whose instances are asked for; None: all."""
        return None if self.request_id is None else tuple(self.request_id.split(","))


class AcceptedInstances(msgspec.Struct, forbid_unknown_fields=True):
    """A request that is accepted, and durable: the uuids that its instances will have.

    `warnings` are the keys of the request that have no effect: extra specs, properties of the image,
    scheduler hints.
    """

    request_id: str
    instances: tuple[str, ...]
    warnings: tuple[UnreadKey, ...] = ()


class ShownInstance(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """An instance. `attempt` counts the hosts it was assigned to; `attempts` are those that ended without a
    guest, and why.

    Its `state` is `scheduling` until it is in a cell, and `unknown` while its cell cannot be asked: `flavor`
    is null then. `run` is the scheduler's run that placed it. `claim` is what it has in placement: provider
    -> class -> amount. `node` is the root provider of its node. `changed_at`: in seconds since the epoch.
    `availability_zone` is that of its host when it was placed there; before, the one that was asked for.

    `name` is null where nobody gave it one. `move` is the uuid of the move that is under way, null without
    one.

    A project sees no `cell`, `host`, `node`, `claim`, `attempts` and `move`, and a `reason` that names no
    host.
    """

    uuid: str
    request_id: str
    project_id: str
    user_id: str
    flavor: str | None
    state: str
    cell: str | None
    host: str | None
    attempt: int
    reason: str | None
    node: str | None = None
    run: str | None = None
    claim: dict[str, dict[str, int]] | None = None
    attempts: list[BuildAttempt] = []
    changed_at: float | None = None
    name: str | None = None
    availability_zone: str | None = None
    move: str | None = None


class InstancePage(msgspec.Struct, forbid_unknown_fields=True):
    """Instances in order of their uuids. `next` is the marker of the next page, null on the last one.

    `cells_down` are cells that cannot be asked: their instances are `unknown`, or missing if they are
    searched for by what only their cell knows. A project sees none of their names.
    """

    instances: list[ShownInstance]
    next: str | None
    cells_down: list[str]


class WordOfOperator(msgspec.Struct, forbid_unknown_fields=True):
    """The body with which an operator gives an instance up: how it is known that no guest of it runs."""

    evidence: Annotated[str, Meta(min_length=1, max_length=1000)]
