"""Answers what-ifs in forked processes, one at a time, beside the ledger's writer."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final

import msgspec
import structlog

from roost.fleet import Fleet
from roost.ledger import Ledger
from roost.model.what_if import WhatIf
from roost.placement.queries.forked import (
    ForkedFailed,
    ForkedTooLarge,
    ForkedTooLong,
    ForkedUnavailable,
    run_forked,
)
from roost.placement.queries.query_pace import QueryPace
from roost.scheduler.errors import BadRequestSpec, SchedulerError, SchedulerFault
from roost.scheduler.explain.capacity import what_if
from roost.scheduler.explain.explainer import MORE_BYTES, SHARE
from roost.scheduler.explain.supposition import Supposition
from roost.scheduler.nodes.table import NodeTable
from roost.scheduler.selection.selection import Plugins

MOST_WAITING: Final = 8
"""What-ifs that wait for their turn. Further ones are not answered."""
SECONDS: Final = 20.0
"""Seconds after which no further instance is placed."""
SECONDS_MORE: Final = 10.0
"""Further seconds for which a process may run, to explain why the next instance does not fit."""

_log = structlog.get_logger()


class _Refused(msgspec.Struct, frozen=True, tag=True):
    """A what-if that cannot be answered. ``bad``: because of the request."""

    text: str
    bad: bool


class _Found(msgspec.Struct, frozen=True, tag=True):
    found: WhatIf


_encode = msgspec.msgpack.Encoder().encode
_decoder: msgspec.msgpack.Decoder[_Refused | _Found] = msgspec.msgpack.Decoder(_Refused | _Found)


class Suppositions:
    """Answers the what-ifs of one process. ``current`` returns the fleet at the head. For use from one event
    loop."""

    def __init__(self, current: Callable[[], Awaitable[Fleet]]) -> None:
        self._current = current
        self._turn = asyncio.Lock()
        self._waiting = 0
        self._pacing = QueryPace()

    @classmethod
    def of_ledger(cls, ledger: Ledger) -> "Suppositions":
        """Return an object that answers about the head of a ledger."""
        return cls(ledger.current)

    async def what_if(self, supposed: Supposition, table: NodeTable, plugins: Plugins) -> WhatIf | None:
        """Return how many more instances fit; None if too many what-ifs wait, or if it cannot be found out.

        Raises: `BadRequestSpec`, `SchedulerFault`, `StorageError`, `LedgerError`.
        """
        if self._waiting >= MOST_WAITING:
            return None
        self._waiting += 1
        try:
            async with self._turn:
                await asyncio.sleep(self._pacing.wait(time.monotonic(), SHARE))
                answer = await self._answer(supposed, table, plugins)
        finally:
            self._waiting -= 1
        if isinstance(answer, _Refused):
            raise (BadRequestSpec if answer.bad else SchedulerFault)(answer.text)
        return None if answer is None else answer.found

    async def _answer(
        self, supposed: Supposition, table: NodeTable, plugins: Plugins
    ) -> _Refused | _Found | None:
        fleet = await self._current()
        try:
            answered = partial(_answered, fleet, table, plugins, supposed)
            found = await run_forked(answered, SECONDS + SECONDS_MORE, MORE_BYTES, self._forked)
        except (ForkedFailed, ForkedTooLarge, ForkedTooLong, ForkedUnavailable) as error:
            _log.warning("a what-if question is not answered", error=str(error))
            return None
        return _decoder.decode(found)

    def _forked(self, seconds: float) -> None:
        self._pacing = self._pacing.spent(time.monotonic(), seconds, SHARE)


def _answered(fleet: Fleet, table: NodeTable, plugins: Plugins, supposed: Supposition) -> bytes:
    """Return the answer, encoded. For a forked process."""
    try:
        return _encode(_Found(what_if(fleet, table, plugins, supposed, seconds=SECONDS)))
    except SchedulerError as error:
        return _encode(_Refused(str(error), isinstance(error, BadRequestSpec)))
