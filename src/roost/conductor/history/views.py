"""Reads histories of instances: from the API database, from their cells, and from the records."""

import asyncio
from collections.abc import Mapping, Sequence

import msgspec
from sqlalchemy.engine import Connection

from roost.conductor.history.timeline import actions_of
from roost.conductor.history.types import InstanceHistory
from roost.conductor.instances.types import SCHEDULING, UNKNOWN
from roost.model.instance import DELETING, GONE
from roost.process.logs.outages import OutageLines
from roost.records import RecordQueue, RecordsError, RunWithAttempts, Search, SearchableRecords
from roost.state.api_database.open_cells import CELL_SECONDS, ask_cell
from roost.state.api_database.past import KnownInstance, find_known
from roost.state.cell_database import Cell
from roost.state.cell_database.history import StoredHistory, read_history
from roost.storage import Database, transaction

DELETED = "deleted"
"""State of an instance of which nothing is left."""

MOST_RUNS = 20
"""Runs of one instance in its history at most, the last ones. Each retry of a request makes one."""

RECORDS = "records"
"""Entry of ``missing`` of a history: the records cannot be read."""

EVENTS = "events"
"""Entry of ``missing`` of a history: transitions were left out, or cannot be read."""


class KnownHistory(msgspec.Struct, frozen=True):
    """The facts of an instance from all sources of its history.

    ``silent``: its cell cannot be asked. ``missing``: see `InstanceHistory`.
    """

    known: KnownInstance
    stored: StoredHistory | None
    silent: bool
    runs: list[RunWithAttempts]
    missing: list[str]

    @property
    def project_id(self) -> str:
        """The project of the instance; empty if only its cell knows it and cannot be asked."""
        return self.known.project_id or ("" if self.stored is None else self.stored.project_id)

    def told(self, runs: Sequence[RunWithAttempts]) -> InstanceHistory:
        """Return the history, with the runs as the viewer may see them."""
        known, stored = self.known, self.stored
        return InstanceHistory(
            uuid=known.uuid,
            request_id=known.request_id or ("" if stored is None else stored.request_id),
            project_id=self.project_id,
            user_id=known.user_id or ("" if stored is None else stored.user_id),
            flavor=None if stored is None else stored.flavor,
            state=self._state,
            cell=known.cell,
            actions=actions_of(known, stored, runs, silent=self.silent),
            missing=self.missing,
        )

    @property
    def _state(self) -> str:
        known, stored = self.known, self.stored
        if known.ended_at is not None:
            return DELETED
        if stored is not None:
            return DELETING if stored.state == GONE else stored.state
        if self.silent:
            return UNKNOWN
        return SCHEDULING if known.deletion is None else DELETING


class Histories:
    """Finds histories. ``records``: None if this process has none."""

    def __init__(self, api: Database, cells: Mapping[str, Cell], records: RecordQueue | None) -> None:
        self._api = api
        self._cells = cells
        self._records = records
        self._away = OutageLines(
            __name__, "the records cannot be asked", "the records can be asked again", level="warning"
        )

    async def find(self, uuid: str) -> KnownHistory | None:
        """Return all facts of an instance; None if it is unknown, or forgotten.

        Raises: `StorageError` of the API database.
        """
        known = await self._api.read(find_known(uuid))
        if known is None:
            return None
        missing: list[str] = []
        stored, silent = None, False
        if known.cell is not None:
            asked = await ask_cell(self._cells.get(known.cell), _read_history(uuid))
            if asked is None:
                silent = True
                missing.append(f"cell {known.cell}")
            else:
                stored = asked.found
        if stored is not None and not stored.complete:
            missing.append(EVENTS)
        runs = await self._runs(uuid, missing)
        placed_by = "" if stored is None else stored.run
        if placed_by and RECORDS not in missing and placed_by not in {each.run.id for each in runs}:
            missing.append(f"run {placed_by}")
        return KnownHistory(known, stored, silent, runs, missing)

    async def _runs(self, uuid: str, missing: list[str]) -> list[RunWithAttempts]:
        backend = None if self._records is None else self._records.backend
        if isinstance(backend, SearchableRecords):
            try:
                async with asyncio.timeout(CELL_SECONDS):
                    found = await backend.find(Search(instance=uuid), MOST_RUNS)
                self._away.succeeded()
                return found
            except (RecordsError, TimeoutError) as error:
                self._away.failed(error=str(error))
        missing.append(RECORDS)
        return []


class _Found(msgspec.Struct, frozen=True):
    """The answer of a cell. ``found`` is None if the cell does not know the instance."""

    found: StoredHistory | None


@transaction
def _read_history(connection: Connection, uuid: str) -> _Found:
    return _Found(read_history(uuid)(connection))
