"""Reads from several cells for lists and pages, which one slow cell must not hold up."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from sqlalchemy.engine import Connection

from roost.model.text import error_text
from roost.process.logs.outages import OutageLines
from roost.state.cell_database import Cell
from roost.storage import StorageError

CELL_SECONDS = 3.0
"""Seconds that a cell has to answer; then it counts as down."""

T = TypeVar("T")

_away = OutageLines(__name__, "a cell cannot be asked", "a cell can be asked again", level="warning")


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
