"""Works that are performed together find and leave what they would find and leave one after the other."""

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any

import msgspec
import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from roost.agent.protocol.types import SessionKey
from roost.conductor.agent_endpoint.sessions import OpenSession
from roost.conductor.agent_endpoint.transactions import ConfirmBuild, StorePoll
from roost.model.fence import Fence
from roost.model.instance import AttemptKey, BuildRequest, BuildResult, DestroyOrder
from roost.model.node import NodeReport
from roost.process.context import Work
from roost.state.api_database.build_requests import (
    AcceptRequest,
    FinishRequest,
    MapInstances,
    RequestKey,
    retake_request,
)
from roost.state.api_database.mappings import DeleteMapped
from roost.state.api_database.tables import metadata as api_tables
from roost.state.cell_database.arrivals import AddInstances
from roost.state.cell_database.conductor_work import reassign_instance
from roost.state.cell_database.deletions import DeleteInstances
from roost.state.cell_database.host_work import SESSION, session_name
from roost.state.cell_database.tables import metadata as cell_tables
from roost.state.cell_database.tables import state_changes
from roost.state.leases import AcquireLease
from roost.storage.batches import perform
from support.cells import NOW, instance, selection
from support.conducting import request

Batch = list[Work[Any]]
Draw = Callable[[random.Random], Batch]

HOSTS = ("a", "b", "c")
UUIDS = tuple("ijklmn")


def host_works(draw: random.Random) -> Batch:
    """Works of one kind that agents ask for, about few hosts and instances, so that they meet."""
    kinds = (_arrivals, _confirmations, _polls, _polls, _openings, _deletions, _moves)
    return draw.choice(kinds)(draw)


def _arrivals(draw: random.Random) -> Batch:
    return [
        AddInstances(
            tuple(
                instance(uuid, draw.choice(HOSTS), epoch=draw.randint(0, 2), selection=selection("a"))
                for uuid in draw.sample(UUIDS, draw.randint(1, 2))
            ),
            NOW,
        )
        for _ in range(draw.randint(1, 4))
    ]


def _session(draw: random.Random, host: str) -> SessionKey:
    return SessionKey(host, draw.choice(("nonce", "nonce", "nonce", "other")), 1)


def _openings(draw: random.Random) -> Batch:
    """Few are by the agent that has the session, so that polls meet sessions that are theirs."""
    return [
        OpenSession(
            host=host,
            nonce=draw.choice(("nonce", "nonce", "other")),
            previous=draw.choice(((), (), (), ("nonce", "other"))),
            service_version=1,
            at=NOW,
            is_held=draw.random() < 0.3,
            fence=draw.choice((None, Fence(60.0, 20.0, guarded=True))),
        )
        for host in draw.sample((*HOSTS, "d"), draw.randint(1, 4))
    ]


def _confirmations(draw: random.Random) -> Batch:
    return [
        ConfirmBuild(
            _session(draw, draw.choice(HOSTS)), AttemptKey(draw.choice(UUIDS), draw.randint(1, 2)), NOW
        )
        for _ in range(draw.randint(1, 6))
    ]


def _polls(draw: random.Random) -> Batch:
    return [_poll(draw, draw.choice(HOSTS)) for _ in range(draw.randint(1, 6))]


def _poll(draw: random.Random, host: str) -> StorePoll:
    def attempts() -> Iterator[tuple[str, int]]:
        return ((draw.choice(UUIDS), draw.randint(1, 2)) for _ in range(draw.randint(0, 2)))

    failures = (None, None, "no IP")
    return StorePoll(
        session=_session(draw, host),
        counter=draw.randint(1, 40),
        results=tuple(
            BuildResult(uuid, host, attempt, draw.choice(failures), retryable=draw.random() < 0.5)
            for uuid, attempt in attempts()
        ),
        destroyed=tuple(DestroyOrder(uuid, attempt, host) for uuid, attempt in attempts()),
        reports=tuple(
            NodeReport(host=host, node=f"node-{draw.choice(HOSTS)}", cell="cell1", num_instances=number)
            for number in range(draw.randint(0, 1))
        ),
        guests=draw.choice((None, None, dict(attempts()))),
        fenced=draw.choice(({}, {}, dict(attempts()))),
        at=NOW,
        cell="cell1",
        wants_orders=draw.random() < 0.5,
        is_sign=draw.random() < 0.5,
    )


def _deletions(draw: random.Random) -> Batch:
    return [
        DeleteInstances(tuple(draw.sample(UUIDS, draw.randint(1, 2))), NOW, "cell1")
        for _ in range(draw.randint(1, 2))
    ]


def _moves(draw: random.Random) -> Batch:
    host, key = draw.choice(HOSTS), AttemptKey(draw.choice(UUIDS), 1)
    return [reassign_instance(key=key, selection=selection(host), alternates=(), at=NOW)]


def request_works(draw: random.Random) -> Batch:
    """Works of one kind that conductors ask for, about few requests."""
    numbers = [draw.randint(1, 4) for _ in range(draw.randint(1, 6))]
    owner, epoch, new = draw.choice("AAB"), draw.randint(1, 2), draw.randint(10, 10**9)
    kinds: tuple[Callable[[int], Work[Any]], ...] = (
        # A number that is new, and twice the same one.
        lambda number: AcceptRequest(_request(new + number), NOW, "A"),
        lambda number: MapInstances(
            f"req-{number}", owner, epoch, dict.fromkeys(_request(number).instances, f"cell{number % 2}")
        ),
        lambda number: FinishRequest(RequestKey(f"req-{number}", owner, epoch)),
        lambda number: DeleteMapped(_request(number).instances[:1], NOW, "A"),
        lambda number: retake_request(RequestKey(f"req-{number}", "A", epoch)),
    )
    weights = (3, 3, 1, 1, 1)
    [kind] = draw.choices(kinds, weights)
    return [kind(number) for number in numbers]


def _request(number: int) -> BuildRequest:
    made = request(2, policy="affinity" if number == 1 else None)
    uuids = (f"i{number}", f"j{number}")
    return msgspec.structs.replace(made, request_id=f"req-{number}", instances=uuids)


def begun(metadata: sa.MetaData, stack: ExitStack) -> Connection:
    """Tables in memory, of a database with an identity."""
    connection = stack.enter_context(sa.create_engine("sqlite://").connect())
    metadata.create_all(connection)
    connection.execute(
        sa.insert(metadata.tables["database_identity"]), {"id": 1, "uuid": "u", "incarnation": 1}
    )
    return connection


def contents(connection: Connection, metadata: sa.MetaData) -> dict[str, list[tuple[Any, ...]]]:
    """All rows of all tables. Of the changes of several instances in one transaction the order is open."""
    found = {
        table.name: sorted((tuple(row) for row in connection.execute(sa.select(table))), key=repr)
        for table in metadata.sorted_tables
    }
    if state_changes.name in found:
        columns = [each for each in state_changes.columns if each.name != "id"]
        by_instance = sa.select(*columns).order_by(state_changes.c.instance_uuid, state_changes.c.id)
        found[state_changes.name] = [tuple(row) for row in connection.execute(by_instance)]
    return found


def compare(seed: int, metadata: sa.MetaData, works: Draw, first: Sequence[Work[Any]], batches: int) -> None:
    """Perform the same batches together and one after the other."""
    draw = random.Random(seed)
    with ExitStack() as stack:
        together, alone = begun(metadata, stack), begun(metadata, stack)
        for connection in (together, alone):
            for work in first:
                work(connection)
        for _ in range(batches):
            batch = works(draw)
            assert perform(together, batch) == [work(alone) for work in batch], batch
            assert contents(together, metadata) == contents(alone, metadata), batch


SESSIONS = [
    AcquireLease(name=session_name(host), kind=SESSION, holder="nonce", host=host, service_version=1, now=NOW)
    for host in HOSTS
]
ACCEPTED = [AcceptRequest(_request(number), NOW, "A") for number in range(1, 5)]


@pytest.mark.parametrize("seed", [*range(20), 373, 390, 670])
def test_works_of_hosts(seed: int) -> None:
    compare(seed, cell_tables, host_works, SESSIONS, 12)


@pytest.mark.parametrize("seed", range(10))
def test_works_of_conductors(seed: int) -> None:
    compare(seed, api_tables, request_works, ACCEPTED, 12)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(100, 2100))
def test_works_at_length(seed: int) -> None:
    compare(seed, cell_tables, host_works, SESSIONS, 25)
    compare(seed, api_tables, request_works, ACCEPTED, 25)
