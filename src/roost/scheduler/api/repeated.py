"""Requests for hosts that are sent again, because the response to the first was lost.

A client without a response cannot tell if its request has claimed anything. So it names the run, and sends
the same request again; a process that knows the run gives the response of the first request. A process knows
its own runs that ended last, and those under way, which a lost connection does not end. Another process finds
the run in the records. An unknown run is decided under a new id: if the first run has claimed something, that
is a conflict of consumers, and the client has to free the claims first.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Coroutine
from typing import Any

import structlog

from roost.model.spec import Destination
from roost.records import RecordsError, Search, SearchableRecords
from roost.records.records import Records
from roost.scheduler import NoValidHost

MOST_KEPT = 1_000
"""Most runs whose response a process keeps. Beyond, the runs that were requested first are dropped."""

Found = tuple[Destination, ...]

_log = structlog.get_logger()


class Repeats:
    """The runs of this process with an id from the client, under way or ended."""

    def __init__(self, most: int = MOST_KEPT) -> None:
        self._most = most
        self._runs: OrderedDict[str, asyncio.Task[Found]] = OrderedDict()

    async def once(self, run: str, decide: Callable[[], Coroutine[Any, Any, Found]]) -> Found:
        """Return the outcome of a run; ``decide`` is called only if this process does not know the run.

        Raises: as ``decide``. A run that decided nothing is not kept.
        """
        task = self._runs.get(run)
        if task is None:
            task = self._runs[run] = asyncio.create_task(decide())
            task.add_done_callback(lambda ended: self._ended(run, ended))
            while len(self._runs) > self._most:
                self._runs.popitem(last=False)
        return await asyncio.shield(task)

    def _ended(self, run: str, task: "asyncio.Task[Found]") -> None:
        decided = not task.cancelled() and isinstance(task.exception(), NoValidHost | None)
        if not decided and self._runs.get(run) is task:
            del self._runs[run]


async def recorded(records: Records, run: str, instances: tuple[str, ...]) -> Found | None:
    """Return the outcome of a run by the records; None if they do not have it, or it decided nothing.

    Raises: `NoValidHost` if the run was refused.
    """
    if not isinstance(records, SearchableRecords):
        return None
    try:
        found = await records.find(Search(run=run), 1)
    except RecordsError as error:
        _log.warning("whether a run is recorded cannot be read", run=run, error=str(error))
        return None
    if not found or found[0].run.instances != instances:
        return None
    known = found[0].run
    if known.destinations:
        return known.destinations
    if known.refusal is None or not known.steps:
        return None
    reason = known.refusal if known.reasons is None else known.reasons.sentence
    raise NoValidHost(known.id, reason, known.steps, (), known.reasons)
