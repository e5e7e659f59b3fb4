"""Which processes and hosts are up, as this process sees it: leases whose counters move."""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Mapping
from itertools import islice

import msgspec
import structlog

from roost.conductor.events.cell_outages import NoteOutages, SeenOutage
from roost.conductor.events.observed import LeaseLook, transitions
from roost.model.service_version import SERVICE_VERSION
from roost.model.text import error_text
from roost.state.api_database.audit import LEASE as AUDIT
from roost.state.api_database.events import MarkedEvent, ObserveEvents
from roost.state.api_database.liveness import Liveness
from roost.state.cell_database import Cell
from roost.state.cell_database.overdue_work import SESSION
from roost.state.leases import Lease, LeaseTimes, ReadAllLeases
from roost.storage import Database, StorageError

UP = "up"
DOWN = "down"
NO_CONDUCTOR = "no_conductor"
NO_HOST_UP = "no_host_up"
"""The states of a cell whose database answers, and in which nothing is built."""

UNKNOWN = "unknown"
"""The state of a process whose database cannot be read."""

ON_REQUEST = (SESSION, AUDIT)
"""Kinds of leases that are listed only if they are asked for: those of hosts, which may be thousands, and
that of a task of one of the processes."""

EVENTS_AT_ONCE = 500
"""Observed events that one transaction writes at most."""

MOST_UNWRITTEN = 20_000
"""Observed events that wait for the API database at most. The earliest are left out of what are more."""

_log = structlog.get_logger()


class Seen(msgspec.Struct, frozen=True):
    """A lease and its state. ``cell``: in whose database it is, None for the API database."""

    lease: Lease
    state: str
    cell: str | None


class _Place:
    """What is seen in one database."""

    def __init__(self, times: LeaseTimes, down_seconds: float) -> None:
        self.processes = Liveness(times.lease)
        self.hosts = Liveness(down_seconds)
        self.leases: list[Lease] = []
        self.behind: list[Lease] = []
        self.answers = True
        self.look: LeaseLook | None = None
        # When its first failed look in a row began, and whether it was told as away; None: nothing was told.
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

    A process is down when its lease is vacant or was seen to stand still for as long as others take to take
    over its work, a host after ``down_seconds``. A process that died before this one began is seen as up for
    that long. ``monotonic``: the clock of the observation; ``clock``: seconds since the epoch.

    What changes between two looks is written as events. What has changed before the first look is not told,
    but that the database of a cell is away, or answers again.
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
    ) -> None:
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
                # A defect must not leave what was seen as it is for ever without a word.
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
        await self._write_events()

    def services(self, kinds: frozenset[str] | None = None) -> list[Seen]:
        """The leases of some kinds that were seen last, by default of all but `ON_REQUEST`, in order of cells
        and names."""
        return [
            Seen(lease, place.state_of(lease), cell)
            for cell, place in self._in_order()
            for lease in place.leases
            if (lease.kind not in ON_REQUEST if kinds is None else lease.kind in kinds)
        ]

    def behind(self) -> list[Seen]:
        """The leases of processes and hosts of earlier service versions than this process's that were seen
        last, in the same order, without those that are down."""
        return [
            Seen(lease, state, cell)
            for cell, place in self._in_order()
            for lease in place.behind
            if (state := place.state_of(lease)) != DOWN
        ]

    def state_of(self, cell: str, session: Lease | None) -> str:
        """The state of the host of a session in a cell."""
        place = self._places.get(cell)
        if place is None:
            return UNKNOWN
        return DOWN if session is None else place.state_of(session)

    def answers(self, cell: str) -> bool:
        """Whether the last look at a cell's database succeeded."""
        place = self._places.get(cell)
        return place is not None and place.answers

    def silent(self) -> list[str]:
        """The names of the cells whose databases could not be read at the last look."""
        return sorted(name for name, place in self._places.items() if name is not None and not place.answers)

    def _in_order(self) -> list[tuple[str | None, _Place]]:
        return sorted(self._places.items(), key=lambda each: each[0] or "")

    async def _look_at(self, name: str | None, database: Database) -> None:
        place = self._places.setdefault(name, _Place(self._times, self._down_seconds))
        began = self._monotonic()
        try:
            leases = await database.read(ReadAllLeases())
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
        # A host that owes an order gets no new instances, and is alive: what it has may not be given up.
        hosts = {each.host: each.stamp for each in held if each.kind == SESSION}
        place.hosts.look(hosts, frozenset(), began, ended)
        self._observe(name, place)

    def _failed(self, name: str | None, place: _Place, began: float, error: StorageError) -> None:
        """Note that a look has failed. A cell is away after as long as a process may be silent."""
        if place.failing_since is None:
            place.failing_since = began
        if name is None:
            return
        self._outages.pop(name, None)
        if place.told_away is not True and self._monotonic() - place.failing_since >= self._times.lease:
            self._outages[name] = SeenOutage(name, True, self._clock(), error_text(error))

    def _observe(self, name: str | None, place: _Place) -> None:
        """Keep what has changed since the look before, to be written as events."""
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
                    await self._api.write(NoteOutages(outages))
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
                    await self._api.write(ObserveEvents(some))
                except StorageError as error:
                    # They are written after the next look. A second time they change nothing.
                    _log.warning("events are written later", events=len(self._unwritten), error=str(error))
                    return
                written = {each.mark for each in some}
                while self._unwritten and self._unwritten[0].mark in written:
                    self._unwritten.popleft()
