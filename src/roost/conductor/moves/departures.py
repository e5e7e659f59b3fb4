"""Instances that are to leave their hosts are asked to move, and asked again after a failure.

Drains ask (`roost.conductor.words.departures`), and proofs that a host is dead
(`roost.conductor.evacuation.dead_hosts`). Several super conductors may ask at the same time. The uuid of a
move is made of what asks, the instance and the number of its tries, so that they ask for the same move, which
begins once. An instance whose move has failed is asked again, after pauses that grow. They are measured by
this process's own clock, and begin anew with it.
"""

import uuid
from typing import NamedTuple

from roost.conductor.backoff import Backoff
from roost.model.departure import Departure
from roost.model.instance import Requester
from roost.model.move import DeathProof, Move, MoveKind, MoveRefused
from roost.process.context import Context
from roost.state.cell_database.dead_hosts import end_waiting_for
from roost.state.cell_database.moves import begin_move

RETRIES = Backoff(first_seconds=10.0, longest_seconds=900.0)
"""The pauses before an instance whose move has failed is asked to move again."""

EARLY = Backoff(first_seconds=5.0, longest_seconds=30.0)
"""The pauses before an instance is asked again that was asked too early: what keeps it ends by itself."""


class Asker(NamedTuple):
    """A drain, or a proof that a host is dead, for which instances are asked to move.

    ``user``: who asks, in records. ``namespace``: of the uuids of its moves. ``name``: its own name there.
    """

    user: str
    namespace: uuid.UUID
    name: str

    @property
    def requester(self) -> Requester:
        """The requester of its moves; all have the same id of a request."""
        return Requester(self.user, "", f"req-{uuid.uuid5(self.namespace, self.name)}")

    def move_uuid(self, departure: Departure) -> str:
        """Return the uuid of the next move of an instance."""
        of_try = f"{self.name}/{departure.instance}/{departure.attempt}/{departure.tries}"
        return str(uuid.uuid5(self.namespace, of_try))


class _Failed(NamedTuple):
    """An instance that has not moved: its failed moves, requests that were refused, and when it is due.

    ``early``: requests in a row that came too early.
    """

    tries: int
    refusals: int
    due: float
    early: int = 0


class RetryTimes:
    """The times at which instances whose moves have failed are asked again, by a monotonic clock."""

    def __init__(self) -> None:
        self._failed: dict[str, _Failed] = {}

    def is_due(self, departure: Departure, now: float, *, planned: bool = False) -> bool:
        """Return whether an instance may be asked at ``now``. A failure counts from when it is seen first.

        ``planned``: the first move asked for a target of a plan, so that the next follows without a pause.
        """
        known = self._failed.get(departure.instance)
        if known is None or known.tries != departure.tries:
            if departure.tries <= planned:
                return True
            known = self._note(departure, 0 if known is None else known.refusals, now)
        return now >= known.due

    def refuse(self, departure: Departure, now: float, refused: MoveRefused) -> None:
        """Note that the cell has refused to move an instance.

        A request that came too early is no failure, after which the pauses grow up to 15 minutes.
        """
        known = self._failed.get(departure.instance, _Failed(departure.tries, 0, now))
        if refused.is_early:
            early = known.early + 1
            due = now + EARLY.pause(early)
            self._failed[departure.instance] = _Failed(departure.tries, known.refusals, due, early)
        else:
            self._note(departure, known.refusals + 1, now)

    def clear(self) -> None:
        """Forget all failures."""
        self._failed.clear()

    def _note(self, departure: Departure, refusals: int, now: float) -> _Failed:
        pause = RETRIES.pause(departure.tries + refusals)
        failed = self._failed[departure.instance] = _Failed(departure.tries, refusals, now + pause)
        return failed


async def ask_to_leave(
    context: Context,
    database: str,
    departure: Departure,
    times: RetryTimes,
    asker: Asker,
    kinds: tuple[MoveKind, ...],
    *,
    attached: bool,
    across: bool = False,
    to_host: str | None = None,
    proof: DeathProof | None = None,
) -> Move | MoveRefused | None:
    """Ask a cell for the move of an instance, of the first of some kinds that is not refused.

    A refusal of all is noted in ``times``. The further arguments are those of
    `roost.state.cell_database.moves.begin_move`.

    Raises: `StorageError`.
    """
    asked: Move | MoveRefused | None = None
    for kind in kinds:
        begin = begin_move(
            uuid=asker.move_uuid(departure),
            instance=departure.instance,
            kind=kind,
            by=asker.requester,
            at=context.clock(),
            to_host=to_host,
            proof=proof,
            attached=attached,
            across=across,
        )
        asked = await context.write(database, begin)
        if not isinstance(asked, MoveRefused):
            return asked
    if isinstance(asked, MoveRefused):
        times.refuse(departure, context.monotonic(), asked)
    return asked


async def go_on_without_host(context: Context, cell: str, host: str, proof: DeathProof) -> frozenset[str]:
    """Let builds and moves go on without a host that is dead.

    Returns the instances whose attempts there have ended with that. A proof that does not hold changes
    nothing. Raises: `StorageError`.
    """
    end = end_waiting_for(host=host, proof=proof, at=context.clock(), cell=cell)
    ended = await context.write(f"cell/{cell}", end)
    if isinstance(ended, MoveRefused):
        return frozenset()
    context.record((), tuple(ended))
    return frozenset(each.instance for each in ended)
