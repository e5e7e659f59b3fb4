"""Faults that are put in on purpose: what conductors send is changed, so that a rule is missing."""

from collections.abc import Callable
from typing import Any

import msgspec
import sqlalchemy as sa

from roost.agent.protocol.questions import Confirm, Poll
from roost.conductor.agent_endpoint.transactions import ConfirmBuild, StorePoll
from roost.model.instance import OFFLOADED, POWERING_OFF, POWERING_ON, REBUILDS, SHELVING, UNSHELVING
from roost.model.move import DeathProof
from roost.model.move_states import CANCELLING, CLEANING, FREEING, OFF, RECEIVING, RUNS, SWITCHING
from roost.state.api_database.build_requests import (
    FinishRequest,
    MapInstances,
    retake_request,
    take_over_mappings,
)
from roost.state.api_database.tables import build_requests, instance_mappings
from roost.state.cell_database.arrivals import AddInstances
from roost.state.cell_database.deletions import DeleteInstances
from roost.state.cell_database.move_changes import stamp_of
from roost.state.cell_database.move_ends import fail_targets
from roost.state.cell_database.move_work import is_owned, take_target
from roost.state.cell_database.moves import begin_move
from roost.state.cell_database.rebuilds import rebuild_instance
from roost.state.cell_database.shelves import assign_unshelved, shelve_instance, unshelve_instance
from roost.state.cell_database.tables import fences, instances, moves
from support.simulation.process import ServiceCall
from support.simulation.world import Faults
from support.works import is_of


class WithoutFences(msgspec.Struct, frozen=True):
    """A work before which the fences are lost."""

    work: Any

    def __call__(self, connection: sa.Connection) -> Any:
        connection.execute(sa.delete(fences))
        return self.work(connection)


def _no_fence(_: str, work: Any) -> Any:
    return WithoutFences(work) if isinstance(work, AddInstances) else work


def _no_tombstone(_: str, work: Any) -> Any:
    if isinstance(work, DeleteInstances):
        return WithoutTombstone(work)
    return work


class WithoutTombstone(msgspec.Struct, frozen=True):
    """A deletion that leaves nothing behind."""

    work: DeleteInstances

    def __call__(self, connection: sa.Connection) -> Any:
        deleted = self.work(connection)
        connection.execute(sa.delete(fences).where(fences.c.instance_uuid.in_(self.work.uuids)))
        return deleted


class WithoutOwners(msgspec.Struct, frozen=True):
    """A write for a request that nobody owns alone: whoever writes is its owner."""

    work: Any

    def __call__(self, connection: sa.Connection) -> Any:
        request_id, owner, epoch = _key_of(self.work)
        mine = {"owner": owner, "owner_epoch": epoch}
        mapped = sa.update(instance_mappings).where(instance_mappings.c.request_id == request_id)
        connection.execute(
            sa.update(build_requests).where(build_requests.c.request_id == request_id).values(mine)
        )
        connection.execute(mapped.values(epoch=sa.func.min(instance_mappings.c.epoch, epoch - 1)))
        return self.work(connection)


_OWNED = (MapInstances, take_over_mappings, FinishRequest, retake_request)


def _key_of(work: Any) -> tuple[str, str, int]:
    """The request of a work of `_OWNED`, its owner and the owner's epoch."""
    if is_of(work, MapInstances):
        return work.request_id, work.owner, work.epoch
    if is_of(work, FinishRequest):
        return work.key
    return work.arguments[0] if is_of(work, retake_request) else work.arguments


def _no_owner(_: str, work: Any) -> Any:
    return WithoutOwners(work) if any(is_of(work, kind) for kind in _OWNED) else work


def _no_count(_: str, question: Any) -> Any:
    if isinstance(question, Poll | Confirm):
        return msgspec.structs.replace(question, counted=0)
    return question


class WithoutMoveOwners(msgspec.Struct, frozen=True):
    """A write for a move that nobody owns alone: whoever writes is its owner, in whatever state it is."""

    work: Any

    def __call__(self, connection: sa.Connection) -> Any:
        move = self.work.options["move"]
        mine = {"owner": move.owner, "owner_epoch": move.owner_epoch, "state": move.state}
        connection.execute(sa.update(moves).where(moves.c.uuid == move.uuid).values(mine))
        return self.work(connection)


def _no_move_owner(_: str, work: Any) -> Any:
    return WithoutMoveOwners(work) if is_of(work, take_target) else work


def _no_migration(_: str, question: Any) -> Any:
    """Have a claim replace what an instance holds, so that nobody holds the source's room."""
    if getattr(question, "method", None) != "select_destinations" or not question.arguments[0].handed:
        return question
    request = question.arguments[0]
    generations = {uuid: each.generation for uuid, each in request.handed.items()}
    replaced = msgspec.structs.replace(request, handed={}, generations=generations)
    return question._replace(arguments=(replaced,))


class FreedTooEarly(msgspec.Struct, frozen=True):
    """A poll after which the moves are freed whose source has still to destroy its guest."""

    work: Any

    def __call__(self, connection: sa.Connection) -> Any:
        done = self.work(connection)
        connection.execute(sa.update(moves).where(moves.c.state == CLEANING).values(state=FREEING))
        return done


def _freed_too_early(_: str, work: Any) -> Any:
    return FreedTooEarly(work) if isinstance(work, StorePoll) else work


def _no_fence_of_moves(_: str, question: Any) -> Any:
    """Leave a write out that gives an instance what it holds anyway."""
    if getattr(question, "method", None) != "write_allocations" or len(question.arguments[0]) != 1:
        return question
    [write] = question.arguments[0]
    return question._replace(arguments=((),)) if write.allocations else question


NO_FENCE_OF_MOVES = Faults(question=_no_fence_of_moves)


def _no_stamp(_: str, work: Any) -> Any:
    return WithoutStamps(work) if isinstance(work, ConfirmBuild) else work


class WithoutStamps(msgspec.Struct, frozen=True):
    """A confirmation for which no host has shown a sign of life."""

    work: Any

    def __call__(self, connection: sa.Connection) -> Any:
        for uuid, proof, host in connection.execute(
            sa.select(moves.c.uuid, moves.c.proof, moves.c.source_host)
        ):
            if proof is not None:
                known = msgspec.structs.replace(
                    msgspec.json.decode(proof, type=DeathProof), stamp=stamp_of(connection, host)
                )
                text = msgspec.json.encode(known).decode()
                connection.execute(sa.update(moves).where(moves.c.uuid == uuid).values(proof=text))
        return self.work(connection)


NO_STAMP = Faults(work=_no_stamp)


class AlwaysOwned(msgspec.Struct, frozen=True):
    """Whoever asks owns the move."""

    def __call__(self, connection: sa.Connection) -> bool:
        return True


def _no_look_at_owners(_: str, work: Any) -> Any:
    return AlwaysOwned() if is_of(work, is_owned) else work


class AnyPower(msgspec.Struct, frozen=True):
    """A poll whose results of stops and starts count for whatever is waited for."""

    work: StorePoll

    def __call__(self, connection: sa.Connection) -> Any:
        powered = []
        for each in self.work.powered:
            of_it = sa.select(instances.c.state).where(instances.c.uuid == each.instance)
            state = connection.execute(of_it).scalar()
            runs = {POWERING_ON: True, POWERING_OFF: False}.get(state, each.runs)
            powered.append(msgspec.structs.replace(each, runs=runs))
        return msgspec.structs.replace(self.work, powered=tuple(powered))(connection)


def _any_power(_: str, work: Any) -> Any:
    return AnyPower(work) if isinstance(work, StorePoll) else work


class ForgottenPower(msgspec.Struct, frozen=True):
    """A beginning of a move that takes a stopped instance for one that runs."""

    work: Any

    def __call__(self, connection: sa.Connection) -> Any:
        done = self.work(connection)
        connection.execute(sa.update(moves).where(moves.c.at_source == OFF).values(at_source=RUNS))
        return done


def _forgotten_power(_: str, work: Any) -> Any:
    return ForgottenPower(work) if is_of(work, begin_move) else work


class SameAttempt(msgspec.Struct, frozen=True):
    """A rebuild that draws no further attempt."""

    work: Any

    def __call__(self, connection: sa.Connection) -> Any:
        done = self.work(connection)
        anew = instances.c.state.in_(REBUILDS)
        connection.execute(sa.update(instances).where(anew).values(attempt=instances.c.attempt - 1))
        return done


def _same_attempt(_: str, work: Any) -> Any:
    return SameAttempt(work) if is_of(work, rebuild_instance) else work


SAME_ATTEMPT = Faults(work=_same_attempt)
ANY_POWER = Faults(work=_any_power)
FORGOTTEN_POWER = Faults(work=_forgotten_power)


class LimitEndsSwitching(msgspec.Struct, frozen=True):
    """A time limit that takes guests which go over for such as wait for their target."""

    work: Any

    def __call__(self, connection: sa.Connection) -> Any:
        going = sa.update(moves).where(moves.c.state.in_((SWITCHING, CANCELLING)))
        connection.execute(going.values(state=RECEIVING))
        return self.work(connection)


def _limit_ends_switching(_: str, work: Any) -> Any:
    return LimitEndsSwitching(work) if is_of(work, fail_targets) else work


class OffloadedTooEarly(msgspec.Struct, frozen=True):
    """A word to shelve an instance after which nobody waits for its host."""

    work: Any

    def __call__(self, connection: sa.Connection) -> Any:
        done = self.work(connection)
        shelving = sa.update(instances).where(instances.c.state == SHELVING)
        connection.execute(shelving.values(state=OFFLOADED))
        return done


class SameConsumer(msgspec.Struct, frozen=True):
    """A word to unshelve an instance that draws no consumer."""

    work: Any

    def __call__(self, connection: sa.Connection) -> Any:
        done = self.work(connection)
        connection.execute(sa.update(instances).values(consumer=None))
        return done


class WithoutShelfOwners(msgspec.Struct, frozen=True):
    """A write for an unshelving that nobody owns alone: whoever writes is its owner, in whatever state."""

    work: Any

    def __call__(self, connection: sa.Connection) -> Any:
        mine = self.work.options["unshelved"]
        values = {
            "owner": mine.owner,
            "owner_epoch": mine.owner_epoch,
            "state": UNSHELVING,
            "attempt": mine.attempt,
        }
        connection.execute(sa.update(instances).where(instances.c.uuid == mine.uuid).values(values))
        return self.work(connection)


def _with(kind: Callable[..., Any], around: Callable[[Any], Any]) -> Callable[[str, Any], Any]:
    return lambda _, work: around(work) if is_of(work, kind) else work


OFFLOADED_TOO_EARLY = Faults(work=_with(shelve_instance, OffloadedTooEarly))
SAME_CONSUMER = Faults(work=_with(unshelve_instance, SameConsumer))
NO_SHELF_OWNER = Faults(work=_with(assign_unshelved, WithoutShelfOwners))
LIMIT_ENDS_SWITCHING = Faults(work=_limit_ends_switching)
NO_TOKEN = Faults(tokens=False)
NO_LOOK_AT_OWNERS = Faults(work=_no_look_at_owners)
NO_MOVE_OWNER = Faults(work=_no_move_owner)
NO_MIGRATION = Faults(question=_no_migration)
FREED_TOO_EARLY = Faults(work=_freed_too_early)
NO_FENCE = Faults(work=_no_fence)
NO_TOMBSTONE = Faults(work=_no_tombstone)
NO_OWNER = Faults(work=_no_owner)
NO_GENERATION = Faults(generations=False)
NO_CONFIRMATION = Faults(confirms=False)
NO_COUNT = Faults(question=_no_count)


def _destroying(ports: Callable[[str], str]) -> Callable[[str, Any], Any]:
    def changed(_: str, question: Any) -> Any:
        if isinstance(question, ServiceCall) and question.method == "destroy":
            uuid, released, *attempt = question.arguments
            return question._replace(arguments=(uuid, ports(released), *attempt))
        return question

    return changed


def _nothing_over(_: str, question: Any) -> Any:
    if isinstance(question, ServiceCall) and question.method == "start_again":
        return question._replace(arguments=(question.arguments[0], 0))
    return question


PORTS_RELEASED_BY_EACH_GUEST = Faults(question=_destroying(lambda _: "host"))
"""Each end of a guest releases the ports that are bound to its host."""

PORTS_OF_OTHERS_LEFT = Faults(question=_destroying(lambda each: "host" if each == "all" else each))
"""The end of an instance releases the ports of its host alone."""

PORTS_NOT_TAKEN_BACK = Faults(question=_nothing_over)
"""A guest that is started again leaves its ports to attempts after it."""
