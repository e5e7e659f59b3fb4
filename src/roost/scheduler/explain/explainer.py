"""Explains the refusals of one process, one after another, beside the claims of others.

A state to explain them on is found by `roost.scheduler.explain.ledger_copy` where the ledger is in the
process, by `roost.scheduler.gateways.http_explanation` where placement is reached over HTTP. Both explain in
a forked process, which owns its memory and may be killed.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple

import msgspec

from roost.ledger import LedgerError
from roost.model.reasons import Reasons
from roost.placement.queries.forked import ForkedError
from roost.process.logs.outages import OutageLines
from roost.process.metrics import catalogue as metrics
from roost.scheduler.request.scheduling_request import SchedulingRequest
from roost.storage import StorageError

SECONDS: Final = 10.0
"""Timeout of one explanation in seconds, catch-up included."""
SECONDS_TRYING: Final = 2.0
"""Seconds after which no further changes of one request are tried."""
MORE_BYTES: Final = 512 * 2**20
"""Memory in bytes that a process may take in addition to what it shares."""
SHARE: Final = 0.03
"""Share of the event loop's time that forks may take while claims arrive.

Copying pages after a fork costs the writer some time as well.
"""

_encode = msgspec.msgpack.Encoder().encode
_reasons: msgspec.msgpack.Decoder[Reasons | None] = msgspec.msgpack.Decoder(Reasons | None)
decode_reasons = _reasons.decode


class Job(NamedTuple):
    """A refused request to explain.

    ``placed``: so many of its first instances hold their hosts. ``newest``: explain it on the newest version
    that any writer has made. ``moves``: so many instances may move to make room for it; 0: none.
    """

    request: SchedulingRequest
    placed: int
    newest: bool = False
    moves: int = 0

    def same(self) -> bytes:
        """Return a key that is equal for refusals with equal reasons."""
        request = self.request
        number, least = len(request.instances), request.min_count
        # In a server group an instance that moves counts apart from others.
        moves = request.holders or request.beside or request.generations
        own = (request.instances, request.holders) if moves else None
        return _encode(
            (request.spec, request.queries, number, least, self.placed, self.newest, self.moves, own)
        )


Find = Callable[[Job], Awaitable[Reasons | None]]
"""Finds out why a request is refused; None if it cannot."""


class Explainer:
    """Explains the refusals of one scheduler by ``find``. For use from one event loop.

    ``most_waiting``: refusals that wait for their reasons; further ones are not explained.
    """

    def __init__(self, find: Find, most_waiting: int) -> None:
        self._find = find
        self._most_waiting = most_waiting
        self._waiting: dict[bytes, list[tuple[Job, asyncio.Future[Reasons | None]]]] = {}
        self._number = 0
        self._working: asyncio.Task[None] | None = None
        self._away = OutageLines(
            __name__, "a refusal is not explained", "refusals are explained again", level="warning"
        )

    async def explain(self, job: Job) -> Reasons | None:
        """Return why a request is refused; None if too many wait, or if it cannot be found out.

        Raises: `SchedulerError` if the request cannot be judged.
        """
        if self._number >= self._most_waiting:
            metrics.EXPLANATIONS.labels("dropped").inc()
            return None
        answer: asyncio.Future[Reasons | None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(job.same(), []).append((job, answer))
        self._number += 1
        if self._working is None:
            self._working = asyncio.create_task(self._work())
        return await answer

    async def _work(self) -> None:
        try:
            while self._waiting:
                same = self._waiting.pop(next(iter(self._waiting)))
                self._number -= len(same)
                found = await self._found(same[0][0])
                for _, answer in same:
                    explained = isinstance(found, Reasons)
                    metrics.EXPLANATIONS.labels("explained" if explained else "failed").inc()
                    if answer.done():
                        continue
                    if isinstance(found, Exception):
                        answer.set_exception(found)
                    else:
                        answer.set_result(found)
        finally:
            self._working = None

    async def _found(self, job: Job) -> Reasons | Exception | None:
        try:
            found = await self._find(job)
            self._away.succeeded()
            return found
        except ForkedError as error:
            self._away.failed(error=str(error))
        except (StorageError, LedgerError) as error:
            self._away.failed(error=f"the ledger cannot be read: {error}")
        except Exception as error:
            return error
        return None
