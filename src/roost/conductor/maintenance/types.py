"""The bodies, queries and responses of the operations of maintenance."""

import re
from typing import Annotated, Final, get_args

import msgspec
from msgspec import Meta

from roost.model.maintenance import HostState, MaintenanceState
from roost.model.vocabulary import MAX_NAME
from roost.web.errors import BadRequest
from roost.web.query import DEFAULT_PAGE, LARGEST_PAGE, Uuid

MOST_HOSTS = 20_000
"""Hosts of a selection at most."""

HostName = Annotated[str, Meta(min_length=1, max_length=MAX_NAME)]


_MARKER: Final = re.compile(r"([0-9.e+]{1,40})_([0-9a-f-]{36})")


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


class WantedMaintenance(MaintenanceToPlan, forbid_unknown_fields=True, kw_only=True):
    """The hosts that are to be emptied in waves, worked on and given back.

    `reserve` and `most_hosts` are those of its plans. With `keep_going` it goes on after a host was left out;
    else it pauses.
    """

    keep_going: bool = False


class MaintenancesQuery(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The query of a list of maintenances."""

    under_way: Annotated[
        bool | None, Meta(description="Only those that have not ended; with false those that have.")
    ] = None
    host: Annotated[str | None, Meta(description="Only those under way that have this host.")] = None
    limit: Annotated[int, Meta(ge=1, le=LARGEST_PAGE, description="Maintenances on a page.")] = DEFAULT_PAGE
    marker: Annotated[str | None, Meta(description="`next` of the page before.")] = None

    @property
    def after(self) -> tuple[float, str] | None:
        """Begin and uuid of the last maintenance of the page before. Raises `BadRequest`."""
        if self.marker is None:
            return None
        found = _MARKER.fullmatch(self.marker)
        try:
            if found is not None:
                return float(found[1]), found[2]
        except ValueError:
            pass
        raise BadRequest(f"marker {self.marker!r} is not `next` of a page of maintenances")


class MaintainedHostsQuery(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """The query of the hosts of a maintenance."""

    state: Annotated[
        str | None, Meta(description=f"Only hosts in these states: {', '.join(get_args(HostState))}.")
    ] = None
    limit: Annotated[int, Meta(ge=1, le=LARGEST_PAGE, description="Hosts on a page.")] = DEFAULT_PAGE
    marker: Annotated[str | None, Meta(description="`next` of the page before.")] = None

    @property
    def states(self) -> tuple[str, ...]:
        """The states. Raises `BadRequest`."""
        states = () if self.state is None else tuple(self.state.split(","))
        for each in states:
            if each not in get_args(HostState):
                raise BadRequest(f"state {each!r} is none of {', '.join(get_args(HostState))}")
        return states


class ShownMaintenance(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A maintenance.

    `wave`: the number of the last wave that has begun, 0 before the first. `hosts`: their numbers by state.
    `left`: hosts that are neither returned nor left out. `reason`: why it is paused, or why the next wave
    does not begin. Times are in seconds since the epoch; `changed_at` is of its state.
    """

    uuid: Uuid
    state: MaintenanceState
    wave: int
    hosts: dict[str, int]
    left: int
    reason: str | None
    reserve: bool
    most_hosts: int | None
    keep_going: bool
    began: float
    changed_at: float
    user_id: str


class MaintenancePage(msgspec.Struct, forbid_unknown_fields=True):
    """Maintenances, the newest first. `next`: the marker of the next page; null on the last one."""

    maintenances: list[ShownMaintenance]
    next: str | None


class ShownHook(msgspec.Struct, forbid_unknown_fields=True):
    """The end of the last call of the hook for a host, or an operator's word in place of it.

    `failure`: why it counts as failed, null if it does not. `status`: the exit status of the command, or of
    the response; null if there was none. `output`: the last lines.
    """

    failure: str | None
    status: int | None
    output: str


class ShownMaintainedHost(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A host of a maintenance.

    `instances`: how many are left on a host that is being emptied; null in other states, and if its cell
    cannot be asked. `calls`: of the hook that have begun, of these `failures`. `reason`: why it is left out.
    """

    host: str
    cell: str
    state: HostState
    wave: int
    instances: int | None
    calls: int
    failures: int
    hook: ShownHook | None
    reason: str | None
    changed_at: float


class MaintainedHostPage(msgspec.Struct, forbid_unknown_fields=True):
    """Hosts of a maintenance by name. `next`: the marker of the next page; null on the last one."""

    hosts: list[ShownMaintainedHost]
    next: str | None
