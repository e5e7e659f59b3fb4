"""The report of a compute host: everything that the scheduler knows about it besides its inventory."""

import msgspec


class HostAggregate(msgspec.Struct, frozen=True):
    """One host aggregate of a host, with the aggregate's metadata.

    Metadata keys are Nova's: ``availability_zone``, ``filter_tenant_id``, extra specs, weigher multipliers.
    The host's root provider in placement has an aggregate with the same ``uuid``.
    """

    uuid: str
    name: str
    metadata: dict[str, str] = {}


class HostReport(msgspec.Struct, frozen=True, kw_only=True):
    """The last report of one host's agent.

    ``node`` is the uuid of the host's root provider. ``last_seen`` is the time of the last heartbeat, in
    seconds since the epoch. ``failed_builds`` counts failed builds since the last successful one.
    ``metrics`` are named numbers whose units the reporter chooses (a temperature in degrees Celsius, say).
    """

    host: str
    node: str
    cell: str
    last_seen: float
    enabled: bool = True
    failed_builds: int = 0
    metrics: dict[str, float] = {}
    aggregates: tuple[HostAggregate, ...] = ()
