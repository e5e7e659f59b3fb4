"""What-if: the number of further instances of a request that fit, on present or hypothetical hosts."""

import msgspec

from roost.model.reasons import HostNames, Reasons
from roost.model.spec import UnreadKey


class MoreHosts(msgspec.Struct, frozen=True):
    """Hypothetical hosts: ``number`` copies of the host ``like``."""

    like: str
    number: int


class Scenario(msgspec.Struct, frozen=True):
    """Hypothetical hosts: those in ``drained`` take no new instances, those in ``added`` exist as well.

    A name is that of a compute service (all of its nodes), that of a node, or the uuid of a node's root
    provider. The present instances of drained hosts stay there.

    ``without``: constraints that are left out of the request, by the names of explanations: filters,
    constraints of the query, places, "server group", weighers.
    """

    drained: tuple[str, ...] = ()
    added: tuple[MoreHosts, ...] = ()
    without: tuple[str, ...] = ()


class Share(msgspec.Struct, frozen=True):
    """``hosts`` hosts take ``instances`` instances each."""

    instances: int
    hosts: int
    names: HostNames


class ZoneShare(msgspec.Struct, frozen=True):
    """``instances`` instances are on ``hosts`` hosts of an availability zone."""

    zone: str
    instances: int
    hosts: int


class WhatIf(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The number of further instances of a request that fit.

    ``fits`` instances were placed one after another, as the scheduler places them, on ``on_hosts`` hosts.
    ``limited``: the requested maximum was reached, and more may fit. ``complete``: False if the time ran out,
    and more may fit. Otherwise ``binds`` says why the next instance does not fit.

    ``where``: the hosts by the number of instances that each takes, largest first, without the last
    ``shares_left_out`` entries. An added host has the name of the host that it copies, ``+`` and a number.
    ``zones``: the zones that take instances, by name; a host in several zones counts in the first one.
    ``hosts``: the number of hosts, without drained and with added ones.

    ``warnings``: keys of the request that have no effect.

    ``version``, ``node_version``: the versions of the ledger and of the node journal that it was found on.
    """

    fits: int
    limited: bool = False
    complete: bool = True
    on_hosts: int
    hosts: int
    where: tuple[Share, ...] = ()
    shares_left_out: int = 0
    zones: tuple[ZoneShare, ...] = ()
    binds: Reasons | None = None
    version: int | None = None
    node_version: int | None = None
    warnings: tuple[UnreadKey, ...] = ()
