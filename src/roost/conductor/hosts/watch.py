"""The processes and hosts that are up, as this process sees it: the counters of their leases move.

Features are refused while processes of earlier versions are up.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Mapping
from itertools import islice

import msgspec
import structlog

from roost.conductor.events.observed import LeaseLook, SeenOutage, note_outages_now, transitions
from roost.model.service_version import SERVICE_VERSION, Feature
from roost.model.text import error_text
from roost.state.api_database.audit import LEASE as AUDIT
from roost.state.api_database.events import MarkedEvent, observe_events
from roost.state.cell_database import Cell
from roost.state.cell_database.host_work import SESSION
from roost.state.leases import Lease, LeaseTimes, ObservedLiveness, all_leases
from roost.storage import Database, StorageError
from roost.web.errors import Conflict

UP = "up"
DOWN = "down"
NO_CONDUCTOR = "no_conductor"
NO_HOST_UP = "no_host_up"
"""States of a cell whose database answers, but in which nothing is built."""

UNKNOWN = "unknown"
"""The state of a process whose database cannot be read."""

ON_REQUEST = (SESSION, AUDIT)
"""Kinds of leases that are listed only on request: those of hosts, which may be thousands, and that of the
audit, which is a task of one process."""

EVENTS_AT_ONCE = 500
"""Observed events that one transaction writes at most."""

MOST_UNWRITTEN = 20_000
"""Observed events that wait for the API database at most. With more, the earliest are dropped."""

NAMED = 3
"""Processes that a refusal names, at most."""

_log = structlog.get_logger()


class FeatureOff(Conflict):
    """A request needs a feature that processes of an earlier version would ignore."""

    code = "roost.feature_off"


class SeenLease(msgspec.Struct, frozen=True):
    """A lease and its state. ``cell``: the cell whose database has it, None for the API database."""

    lease: Lease
    state: str
    cell: str | None


class _Place:
    """The leases of one database, and what was observed of them."""

    def __init__(self, times: LeaseTimes, down_seconds: float) -> None:
        self.processes = ObservedLiveness(times.lease)
        self.hosts = ObservedLiveness(down_seconds)
        self.leases: list[Lease] = []
        self.behind: list[Lease] = []
        self.answers = True
        self.look: LeaseLook | None = None
        # The begin of its first failed look in a row, and whether the last event says away; None: no event.
        self.failing_since: float | None = None
        self.told_away: bool | None = None

    def state_of(self, lease: Lease) -> str:
        if not self.answers:
            return UNKNOWN
        if lease.kind == SESSION:
            return UP if lease.host in self.hosts.up else DOWN
        return UP if lease.name in self.processes.up else DOWN


class ServiceWatch:
    """Looks at the leases of the API database and of all cells every `LeaseTimes.renew` seconds.

    A process is down when its lease is vacant or has stood still for `LeaseTimes.lease`, after which others
    take over its work; a host is down after ``down_seconds``. A process that died before this one began is
    seen as up for that long. ``monotonic``: the clock of the observation; ``clock``: seconds since the epoch.

    Changes between two looks are written as events. Changes before the first look are not, except that the
    database of a cell is away, or answers again. With ``writes_events`` False, it only looks.
    """

    def __init__(
        self,
        api: Database,
        cells: Mapping[str, Cell],
        *,
        down_seconds: float = 60.0,
        times: LeaseTimes = LeaseTimes(),  # noqa: B008 - it is frozen
        monotonic: Callable[[], float] = time.monotonic,
        clock: Callable[[], float] = time.time,
        writes_events: bool = True,
    ) -> None:
        self._writes_events = writes_events
        self._api = api
        self._cells = cells
        self._down_seconds = down_seconds
        self._times = times
        self._monotonic = monotonic
        self._clock = clock
        self._unwritten: deque[MarkedEvent] = deque(maxlen=MOST_UNWRITTEN)
        self._outages: dict[str, SeenOutage] = {}
        self._writing = asyncio.Lock()
        self._places: dict[str | None, _Place] = {}

    async def run(self) -> None:
        """Look for ever."""
        while True:
            try:
                await self.look()
            except Exception:
                # A defect must not stop the observation silently.
                _log.exception("services cannot be watched")
            await asyncio.sleep(self._times.renew)

    async def look(self) -> None:
        """Look at all databases once."""
        cells = dict(self._cells)
        for gone in self._places.keys() - cells.keys() - {None}:
            del self._places[gone]
            self._outages.pop(gone or "", None)
        looks = [self._look_at(name, cell.database) for name, cell in cells.items()]
        await asyncio.gather(self._look_at(None, self._api), *looks)
        if self._writes_events:
            await self._write_events()

    def services(self, kinds: frozenset[str] | None = None) -> list[SeenLease]:
        """Return the leases of some kinds as last seen, in order of cells and names.

        The default is all kinds but `ON_REQUEST`.
        """
        return [
            SeenLease(lease, place.state_of(lease), cell)
            for cell, place in self._in_order()
            for lease in place.leases
            if (lease.kind not in ON_REQUEST if kinds is None else lease.kind in kinds)
        ]

    def behind(self) -> list[SeenLease]:
        """Return the leases, as last seen, of processes and hosts with an earlier service version than this.

        They are in the same order, without those that are down.
        """
        return [
            SeenLease(lease, state, cell)
            for cell, place in self._in_order()
            for lease in place.behind
            if (state := place.state_of(lease)) != DOWN
        ]

    def state_of(self, cell: str, session: Lease | None) -> str:
        """Return the state of the host of a session in a cell."""
        place = self._places.get(cell)
        if place is None:
            return UNKNOWN
        return DOWN if session is None else place.state_of(session)

    def answers(self, cell: str) -> bool:
        """Return whether the last look at a cell's database succeeded."""
        place = self._places.get(cell)
        return place is not None and place.answers

    def silent(self) -> list[str]:
        """Return the names of the cells whose databases could not be read at the last look."""
        return sorted(name for name, place in self._places.items() if name is not None and not place.answers)

    def _in_order(self) -> list[tuple[str | None, _Place]]:
        return sorted(self._places.items(), key=lambda each: each[0] or "")

    async def _look_at(self, name: str | None, database: Database) -> None:
        place = self._places.setdefault(name, _Place(self._times, self._down_seconds))
        began = self._monotonic()
        try:
            leases = await database.read(all_leases())
        except StorageError as error:
            if place.answers:
                where = "the API database" if name is None else f"cell {name}"
                _log.warning("leases cannot be read", database=where, error=str(error))
            place.answers = False
            self._failed(name, place, began, error)
            place.processes.away(self._monotonic())
            place.hosts.away(self._monotonic())
            return
        ended = self._monotonic()
        place.failing_since = None
        if name is not None and place.told_away is not False:
            self._outages[name] = SeenOutage(name, False, self._clock())
        held = [lease for lease in leases if not lease.vacant]
        place.leases, place.answers = leases, True
        # A process has a lease of its own beside that of its task.
        place.behind = [
            lease for lease in held if lease.service_version < SERVICE_VERSION and lease.kind != AUDIT
        ]
        processes = {lease.name: lease.stamp for lease in held if lease.kind != SESSION}
        place.processes.look(processes, frozenset(), began, ended)
        # A host that owes an order gets no new instances, but is alive: its instances may not be given up.
        hosts = {each.host: each.stamp for each in held if each.kind == SESSION}
        place.hosts.look(hosts, frozenset(), began, ended)
        self._observe(name, place)

    def _failed(self, name: str | None, place: _Place, began: float, error: StorageError) -> None:
        """Note that a look has failed. A cell is away after the time after which a process counts as down."""
        if place.failing_since is None:
            place.failing_since = began
        if name is None:
            return
        self._outages.pop(name, None)
        if place.told_away is not True and self._monotonic() - place.failing_since >= self._times.lease:
            self._outages[name] = SeenOutage(name, True, self._clock(), error_text(error))

    def _observe(self, name: str | None, place: _Place) -> None:
        """Queue the changes since the look before, to be written as events."""
        hosts, processes = place.hosts.up, place.processes.up
        now = LeaseLook(
            {lease.name: lease for lease in place.leases},
            {
                lease.name
                for lease in place.leases
                if (lease.host in hosts if lease.kind == SESSION else lease.name in processes)
            },
        )
        if place.look is not None:
            self._unwritten += transitions(place.look, now, cell=name, tasks=(AUDIT,), at=self._clock())
        place.look = now

    async def _write_events(self) -> None:
        async with self._writing:
            if outages := tuple(self._outages.values()):
                try:
                    await self._api.write(note_outages_now(outages))
                except StorageError as error:
                    _log.warning("cells that are away are told later", error=str(error))
                    return
                for each in outages:
                    self._outages.pop(each.cell, None)
                    if each.cell in self._places:
                        self._places[each.cell].told_away = each.away
            while self._unwritten:
                some = tuple(islice(self._unwritten, EVENTS_AT_ONCE))
                try:
                    await self._api.write(observe_events(some))
                except StorageError as error:
                    # They are written after the next look. Writing them twice changes nothing.
                    _log.warning("events are written later", events=len(self._unwritten), error=str(error))
                    return
                written = {each.mark for each in some}
                while self._unwritten and self._unwritten[0].mark in written:
                    self._unwritten.popleft()


def held_back_by(watch: ServiceWatch, feature: Feature) -> list[SeenLease]:
    """Return the processes and agents that are up and whose version is older than the feature.

    Those that are down do not count: an agent that comes back without the feature gets no work that needs it
    (`roost.conductor.agent_endpoint.host_orders`). The versions are those that were seen last: no database is
    read.
    """
    return [each for each in watch.behind() if each.lease.service_version < feature.since]


def check_feature(watch: ServiceWatch, feature: Feature) -> None:
    """Raise `FeatureOff`, with the names of the processes that lack the feature, if there are any."""
    older = held_back_by(watch, feature)
    if not older:
        return
    named = ", ".join(map(_told, older[:NAMED]))
    more = f" and {len(older) - NAMED} more" if len(older) > NAMED else ""
    raise FeatureOff(
        f"{feature.what} once all processes have service version {feature.since}: {named}{more}; see "
        "GET /v1/services"
    )


def _told(seen: SeenLease) -> str:
    what = f"the agent of host {seen.lease.host}" if seen.lease.kind == SESSION else seen.lease.name
    where = "" if seen.cell is None else f" of cell {seen.cell}"
    return f"{what}{where} has {seen.lease.service_version}"
