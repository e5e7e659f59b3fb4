"""The request spec: what a user wants to run, as the conductor hands it to the scheduler."""

import msgspec

from roost.model.request import RequestGroup


class Flavor(msgspec.Struct, frozen=True):
    """A named size. ``vcpus`` threads, ``memory_mb`` MiB, ``disk_gb`` GiB.

    ``extra_specs`` are Nova's: ``resources[S]:CLASS``, ``trait[S]:NAME``, ``group_policy``, and keys for
    the aggregate extra specs filter.
    """

    name: str
    vcpus: int
    memory_mb: int
    disk_gb: int = 0
    extra_specs: dict[str, str] = {}


class ServerGroup(msgspec.Struct, frozen=True):
    """A server group: ``policy`` is ``affinity`` or ``anti-affinity``; ``hosts`` are those of its members
    so far, once for each member."""

    uuid: str
    policy: str
    hosts: tuple[str, ...] = ()
    max_server_per_host: int = 1


class RequestSpec(msgspec.Struct, frozen=True, kw_only=True):
    """Everything the scheduler needs to know of a request for one or more equal instances.

    ``requested_resources`` are further request groups (ports, devices), each with a suffix of its own.
    ``image_properties`` and ``scheduler_hints`` are free form; records redact what looks like a secret.
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
    """One destination. A selected host's ``allocations`` are claimed; an alternate's are ready to be.

    ``host`` is the service's name, ``node`` the uuid of the root provider, ``cell`` the cell's name;
    ``mappings`` says which providers serve which request group; ``weight`` is the sum of the weighers.
    """

    host: str
    node: str
    cell: str
    allocations: dict[str, dict[str, int]]
    mappings: dict[str, list[str]]
    weight: float


class Destination(msgspec.Struct, frozen=True):
    """Where one instance goes: the claimed host, and alternates in the same cell, best first.

    ``run`` is the id of the scheduler run that chose them.
    """

    run: str
    instance: str
    selected: Selection
    alternates: tuple[Selection, ...] = ()
