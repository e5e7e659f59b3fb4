"""What a compute host reports of itself, beside its inventory."""

import msgspec


class HostAggregate(msgspec.Struct, frozen=True):
    """An aggregate that a host belongs to, with its metadata.

    The metadata keys are Nova's: ``availability_zone``, ``filter_tenant_id``, extra specs, and multipliers
    of weighers. The same uuid stands on the host's root provider in placement.
    """

    uuid: str
    name: str
    metadata: dict[str, str] = {}


class HostReport(msgspec.Struct, frozen=True, kw_only=True):
    """One host as its agent last reported it.

    ``node`` is the uuid of its root provider. ``last_seen`` is the last heartbeat in seconds since the
    epoch. ``failed_builds`` counts builds that failed since the last one that did not; ``metrics`` are
    named numbers in units of the reporter's choice (a temperature in degrees Celsius, say).
    """

    host: str
    node: str
    cell: str
    last_seen: float
    enabled: bool = True
    failed_builds: int = 0
    metrics: dict[str, float] = {}
    aggregates: tuple[HostAggregate, ...] = ()
