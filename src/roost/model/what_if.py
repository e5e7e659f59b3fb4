"""What-if: how many more instances of a request fit, on the hosts as they are or as they might be."""

import msgspec

from roost.model.reasons import HostNames, Reasons
from roost.model.unread import UnreadKey


class MoreHosts(msgspec.Struct, frozen=True):
    """``number`` hosts more that are as the host ``like``."""

    like: str
    number: int


class Scenario(msgspec.Struct, frozen=True):
    """Hosts other than they are: no host of ``drained`` is offered, and those of ``added`` are there.

    A name is that of a compute service (all of its nodes), that of a node, or the uuid of a node's root
    provider. What drained hosts hold stays there.
    """

    drained: tuple[str, ...] = ()
    added: tuple[MoreHosts, ...] = ()


class Share(msgspec.Struct, frozen=True):
    """``hosts`` hosts take ``instances`` instances each."""

    instances: int
    hosts: int
    names: HostNames


class WhatIf(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How many more instances of a request fit.

    ``fits`` instances were placed one after another, as the scheduler places them, on ``on_hosts`` hosts.
    ``limited``: these are as many as were asked about, more may fit. ``complete``: False if the time was over
    before; more may fit then as well. Otherwise ``binds`` says why the next instance does not fit.

    ``where``: which hosts take how many, those that take most first; ``shares_left_out`` further numbers of
    instances for each host are missing, the last ones. A host that is added has the name of the one that it
    is like, ``+`` and a number. ``hosts``: how many there are, without drained and with added ones.

    ``warnings``: keys of the request that have no effect.

    ``version``, ``node_version``: of the ledger and of the node journal that it was found on.
    """

    fits: int
    limited: bool = False
    complete: bool = True
    on_hosts: int
    hosts: int
    where: tuple[Share, ...] = ()
    shares_left_out: int = 0
    binds: Reasons | None = None
    version: int | None = None
    node_version: int | None = None
    warnings: tuple[UnreadKey, ...] = ()
