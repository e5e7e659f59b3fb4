"""The open databases of all cells that a conductor process knows, and reads of several cells at once.

One slow cell must not hold up lists and pages of all.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

import structlog
from sqlalchemy.engine import Connection

from roost.model.errors import OperatorError
from roost.model.record import RecordSink
from roost.model.text import error_text
from roost.process.logs.outages import OutageLines
from roost.process.option_source import Source
from roost.state.api_database.cell_mappings import CellMapping, mapped_cells, url_of
from roost.state.cell_database import Cell
from roost.storage import ANSWER_SECONDS, Database, StorageError

EVERY_SECONDS = 2.0
"""Seconds between two reads of the cells' mappings."""

CELL_SECONDS = 3.0
"""Seconds that a cell has to answer; then it counts as down."""

T = TypeVar("T")
_log = structlog.get_logger()


class OpenCells(Mapping[str, Cell]):
    """The cells by name. They follow the mappings while `run` runs, so views of the keys and values do too.

    A database that is down is opened at the first operation that finds it up. A cell whose database the
    configuration does not name is left out, with a log line, until the configuration names it.

    Args:
        api: the API database.
        source: of the configuration with the cells' sections.
        records: where ends of attempts are recorded.
        without: names of cells that are left out.
    """

    def __init__(
        self,
        api: Database,
        source: Source | None,
        records: RecordSink | None = None,
        *,
        without: frozenset[str] = frozenset(),
        answer_seconds: float = ANSWER_SECONDS,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._api = api
        self._source = source
        self._records = records
        self._without = without
        self._answer_seconds = answer_seconds
        self._clock = clock
        self._cells: dict[str, Cell] = {}
        self._mappings: dict[str, CellMapping] = {}
        self._unopened: dict[str, str] = {}
        self._refreshing = asyncio.Lock()

    def __getitem__(self, name: str) -> Cell:
        return self._cells[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._cells)

    def __len__(self) -> int:
        return len(self._cells)

    async def refresh(self) -> None:
        """Open the databases of new cells, and close those of cells that have moved or are gone.

        Raises: `StorageError` of the API database.
        """
        # One call after the other: a call that began earlier may have read older mappings.
        async with self._refreshing:
            mapped = await self._api.read(mapped_cells)
            wanted = {name: mapping for name, mapping in mapped.items() if name not in self._without}
            gone = [name for name, mapping in self._mappings.items() if wanted.get(name) != mapping]
            closing = [self._cells.pop(name) for name in gone]
            for name in gone:
                del self._mappings[name]
            self._unopened = {name: why for name, why in self._unopened.items() if name in wanted}
            for name, mapping in wanted.items():
                if name not in self._cells:
                    self._open(mapping)
            for cell in closing:
                await cell.database.close()

    async def run(self) -> None:
        """Follow the mappings until cancelled."""
        while True:
            await asyncio.sleep(EVERY_SECONDS)
            try:
                await self.refresh()
            except StorageError as error:
                _log.debug("the mappings of cells cannot be read", error=str(error))

    async def close(self) -> None:
        """Close all databases."""
        closing = list(self._cells.values())
        self._cells.clear()
        self._mappings.clear()
        for cell in closing:
            await cell.database.close()

    def open(self, mapping: CellMapping) -> Cell:
        """Open a cell on a connection of its own, which the caller closes. Raises `OperatorError`."""
        url = url_of(mapping, self._source)
        database = Database(url, answer_seconds=self._answer_seconds, deferred=True)
        return Cell(mapping.name, database, self._clock, self._records)

    def _open(self, mapping: CellMapping) -> None:
        try:
            self._cells[mapping.name] = self.open(mapping)
        except OperatorError as error:
            if self._unopened.get(mapping.name) != str(error):
                _log.error("a cell has no database here", cell=mapping.name, error=str(error))
            self._unopened[mapping.name] = str(error)
        else:
            self._mappings[mapping.name] = mapping
            self._unopened.pop(mapping.name, None)


async def ask_cell(cell: Cell | None, work: Callable[[Connection], T]) -> T | None:
    """Return the answer of a cell; None if it cannot be asked, or is not open in this process."""
    if cell is None:
        return None
    try:
        async with asyncio.timeout(CELL_SECONDS):
            found = await cell.read(work)
    except (StorageError, TimeoutError) as error:
        _away.failed(cell.name, cell=cell.name, error=error_text(error))
        return None
    _away.succeeded(cell.name, cell=cell.name)
    return found


async def ask_until(
    cells: Iterable[Cell], work: Callable[[Connection], T], complete: Callable[[Sequence[T]], bool]
) -> list[T]:
    """Return the answers of the cells that answer in `CELL_SECONDS`.

    Once the answers are ``complete``, because no other cell can add anything, the others are not waited for.
    """
    answers: list[T] = []
    waiting = {asyncio.ensure_future(ask_cell(cell, work)) for cell in cells}
    try:
        while waiting and not complete(answers):
            done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            answers += [answer for task in done if (answer := task.result()) is not None]
        return answers
    finally:
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)


async def ask_for_all(
    cells: Iterable[Cell],
    work: Callable[[Connection], T],
    enough: Callable[[Sequence[T]], bool],
    complete: Callable[[Sequence[T]], bool] = lambda _: False,
) -> list[T]:
    """Return the answers of the cells.

    A cell that does not answer is left out if the answers of the others are ``enough``. Once the answers are
    ``complete``, because no other cell can add anything, no other is waited for at all.

    Raises `StorageError`: a cell whose answer is needed does not answer.
    """
    loop = asyncio.get_running_loop()
    end = loop.time() + CELL_SECONDS
    tasks = [asyncio.ensure_future(cell.read(work)) for cell in cells]

    def answers() -> list[T]:
        return [task.result() for task in tasks if task.done() and not _away_now(task)]

    try:
        waiting = set(tasks)
        while waiting and not complete(found := answers()):
            left = end - loop.time()
            if left <= 0 and enough(found):
                break
            _, waiting = await asyncio.wait(
                waiting, timeout=left if left > 0 else None, return_when=asyncio.FIRST_COMPLETED
            )
        return found if enough(found := answers()) else list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _away_now(task: asyncio.Future[T]) -> bool:
    """Return whether a cell did not answer. Raises other errors."""
    return isinstance(task.exception(), StorageError)


_away = OutageLines(__name__, "a cell cannot be asked", "a cell can be asked again", level="warning")
