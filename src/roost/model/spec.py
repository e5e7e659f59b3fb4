"""The scheduler's input (flavor, server group, request spec) and its output (selection, destination)."""

import msgspec

from roost.model.request import RequestGroup


class Flavor(msgspec.Struct, frozen=True):
    """A named instance size: ``vcpus`` in threads, ``memory_mb`` in MiB, ``disk_gb`` in GiB.

    ``extra_specs`` has Nova's keys: ``resources[S]:CLASS``, ``trait[S]:NAME``, ``group_policy``, and keys
    that the aggregate extra specs filter compares.
    """

    name: str
    vcpus: int
    memory_mb: int
    disk_gb: int = 0
    extra_specs: dict[str, str] = {}


class ServerGroup(msgspec.Struct, frozen=True):
    """A server group.

    ``policy`` is ``affinity`` or ``anti-affinity``. ``hosts`` has the host of each placed member, so a host
    with two members is in it twice. ``max_server_per_host`` limits ``anti-affinity``.
    """

    uuid: str
    policy: str
    hosts: tuple[str, ...] = ()
    max_server_per_host: int = 1


class RequestSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A request for one or more equal instances, as the conductor passes it to the scheduler.

    ``requested_resources`` are request groups beside the flavor's (ports, devices), each with its own
    suffix. ``image_properties`` and ``scheduler_hints`` have free keys; records redact values that look like
    secrets.
    """

    project_id: str
    user_id: str
    flavor: Flavor
    availability_zone: str | None = None
    group: ServerGroup | None = None
    requested_resources: tuple[RequestGroup, ...] = ()
    required_traits: frozenset[str] = frozenset()
    forbidden_traits: frozenset[str] = frozenset()
    ignore_hosts: frozenset[str] = frozenset()
    requested_host: str | None = None
    image_properties: dict[str, str] = {}
    scheduler_hints: dict[str, str] = {}


class Selection(msgspec.Struct, frozen=True):
    """One host for one instance: the selected host, whose ``allocations`` are claimed, or an alternate.

    ``host`` is the name of the compute service, ``node`` the uuid of the root provider, ``cell`` the cell's
    name. ``mappings``: suffix of a request group -> uuids of the providers that serve it. ``weight`` is the
    host's weighed score.
    """

    host: str
    node: str
    cell: str
    allocations: dict[str, dict[str, int]]
    mappings: dict[str, list[str]]
    weight: float


class Destination(msgspec.Struct, frozen=True):
    """The result for one instance: the claimed host, and alternates in the same cell, best first.

    ``run`` is the id of the scheduler run that chose them.
    """

    run: str
    instance: str
    selected: Selection
    alternates: tuple[Selection, ...] = ()
