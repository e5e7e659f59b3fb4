"""The bodies and responses of the operations of maintenance."""

from typing import Annotated

import msgspec
from msgspec import Meta

from roost.model.vocabulary import MAX_NAME

MOST_HOSTS = 20_000
"""Hosts of a selection at most."""

HostName = Annotated[str, Meta(min_length=1, max_length=MAX_NAME)]


class MaintenanceToPlan(msgspec.Struct, forbid_unknown_fields=True):
    """The hosts that are to be emptied in waves.

    With `reserve` each wave leaves room for the instances of any one further host, if there was room for them
    before the wave. `most_hosts`: hosts in a wave at most.
    """

    hosts: Annotated[tuple[HostName, ...], Meta(min_length=1, max_length=MOST_HOSTS)]
    reserve: bool = True
    most_hosts: Annotated[int, Meta(ge=1)] | None = None


class ShownPlannedMove(msgspec.Struct, forbid_unknown_fields=True):
    """An instance moves from one host to another."""

    instance: str
    source_host: str
    target_host: str


class ShownWave(msgspec.Struct, forbid_unknown_fields=True):
    """Hosts that are empty together once all `moves` are done, in any order.

    `unsheltered`: hosts outside for whose instances there is no reserve, as they fit on no others before the
    wave either.
    """

    hosts: tuple[str, ...]
    moves: tuple[ShownPlannedMove, ...]
    unsheltered: int


class ShownHostLeftOut(msgspec.Struct, forbid_unknown_fields=True):
    """A host that cannot be emptied, with the reason. `instance`: one that keeps it there."""

    host: str
    reason: str
    instance: str | None


class ShownMaintenancePlan(msgspec.Struct, forbid_unknown_fields=True):
    """The waves of a maintenance, one after another: each begins where those before have put the instances.

    `least_waves`: no plan has fewer, by capacity alone; `bound` says why. `moves`: of all waves; no instance
    has more than two.
    """

    waves: tuple[ShownWave, ...]
    left_out: tuple[ShownHostLeftOut, ...]
    least_waves: int
    bound: str
    moves: int
