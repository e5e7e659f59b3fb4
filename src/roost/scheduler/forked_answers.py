"""Answers about the head of a ledger that take seconds, computed in forked processes beside its writer."""

from collections.abc import Callable
from functools import partial
from typing import TypeVar

import msgspec
import structlog

from roost.fleet import Fleet
from roost.ledger import Ledger
from roost.placement.queries.forked import ForkedError
from roost.placement.queries.forked_turns import ForkedTurns
from roost.scheduler.errors import BadRequestSpec, SchedulerError, SchedulerFault

T = TypeVar("T")

_log = structlog.get_logger()


class _Refused(msgspec.Struct, frozen=True, tag=True):
    """A question that cannot be answered. ``bad``: because of the request."""

    text: str
    bad: bool


class _Found(msgspec.Struct, frozen=True, tag=True):
    """``answer``: as MessagePack."""

    answer: bytes


_encode = msgspec.msgpack.Encoder().encode
_decoder: msgspec.msgpack.Decoder[_Refused | _Found] = msgspec.msgpack.Decoder(_Refused | _Found)


class ForkedAnswers:
    """Answers the questions of one kind. ``unanswered``: the line of the log for one that has no answer."""

    def __init__(self, ledger: Ledger, turns: ForkedTurns, unanswered: str) -> None:
        self._ledger = ledger
        self._turns = turns
        self._unanswered = unanswered

    async def answer(self, compute: Callable[[Fleet], T], of: type[T]) -> T | None:
        """Return what a function finds on the fleet; None if too many wait, or if it cannot be found out.

        ``compute`` runs in a process that has the fleet for itself. ``of``: the type of its result.

        Raises: `BadRequestSpec`, `SchedulerFault`, `StorageError`, `LedgerError`.
        """
        if self._turns.full:
            return None
        async with self._turns.turn():
            fleet = await self._ledger.current()
            try:
                found = await self._turns.run(partial(_computed, compute, fleet))
            except ForkedError as error:
                _log.warning(self._unanswered, error=str(error))
                return None
        answer = _decoder.decode(found)
        if isinstance(answer, _Refused):
            raise (BadRequestSpec if answer.bad else SchedulerFault)(answer.text)
        return msgspec.msgpack.decode(answer.answer, type=of)


def _computed(compute: Callable[[Fleet], object], fleet: Fleet) -> bytes:
    """Return the answer, encoded. For a forked process."""
    try:
        return _encode(_Found(_encode(compute(fleet))))
    except SchedulerError as error:
        return _encode(_Refused(str(error), isinstance(error, BadRequestSpec)))
