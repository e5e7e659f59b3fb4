"""Placement knows an instance that was unshelved by another consumer: whoever goes from one to the other."""

import asyncio
from pathlib import Path

import msgspec
import pytest

from roost.conductor.audit.audit_reads import look
from roost.conductor.comparison import LEAKED_CLAIM, MISSING_CLAIM, ApiState, CellState, judge
from roost.ledger import Held
from roost.model.allocation import Consumer
from roost.model.instance import ACTIVE, OFFLOADED, SHELVED, UNSHELVING, Instance, Shelf
from roost.model.node import NodeInstance, NodeReport
from roost.model.record import Attempt, Run
from roost.model.spec import Destination
from roost.placement.commands.allocations import ConsumerWrite
from roost.scheduler.run_records import as_claimed, renamed
from roost.state.api_database.build_requests import AcceptRequest
from roost.state.api_database.consumers import add_consumer, find_consumers
from roost.state.api_database.mappings import forget_instances
from roost.state.api_database.past import find_noted
from roost.state.cell_database.consumers import by_consumers
from support.cells import instance, selection
from support.conducting import NOW, conducting, request

DRAWN = "drawn"


def _row(state: str, **more: object) -> Instance:
    there = {"host": "a", "node": "node-a"} if state in (ACTIVE, OFFLOADED) else {"host": None, "node": None}
    shelf = None if state == ACTIVE else Shelf(host="a", node="node-a", attempt=1)
    return msgspec.structs.replace(instance("i"), state=state, consumer=DRAWN, shelf=shelf, **there, **more)


def _judged(row: Instance, *claims: str) -> list[tuple[str, str]]:
    held = {each: Held(Consumer(each, "p", "u", 1, "INSTANCE"), {"node-a": {"VCPU": 1}}) for each in claims}
    api = ApiState(
        claims=held,
        roots={"node-a": "node-a"},
        sharing=frozenset(),
        waiting=frozenset(),
        mappings={"i": "cell1"},
        deleted=frozenset(),
        cells={"cell1": "sqlite:///x"},  # type: ignore[dict-item]
    )
    cells = {"cell1": CellState([row], {"a": {"node-a"}})}
    return [(each.kind, each.subject) for each in judge(api, cells)]


@pytest.mark.parametrize(
    ("state", "claims", "findings"),
    [
        (ACTIVE, [DRAWN], []),
        (ACTIVE, [], [(MISSING_CLAIM, "instance i")]),
        (ACTIVE, ["i"], [(MISSING_CLAIM, "instance i"), (LEAKED_CLAIM, "consumer i")]),
        (ACTIVE, [DRAWN, "i"], [(LEAKED_CLAIM, "consumer i")]),
        (ACTIVE, [DRAWN, "earlier"], [(LEAKED_CLAIM, "instance earlier")]),
        (SHELVED, [], []),
        (SHELVED, [DRAWN], [(LEAKED_CLAIM, "instance i")]),
        (OFFLOADED, [DRAWN], []),
        (OFFLOADED, [], []),
        (UNSHELVING, [DRAWN], []),
        (UNSHELVING, [], []),
    ],
)
def test_an_instance_is_judged_by_its_present_consumer(state, claims, findings):
    assert _judged(_row(state), *claims) == findings


def test_reports_of_nodes_name_consumers_for_schedulers_to_count(tmp_path: Path) -> None:
    async def run() -> None:
        async with conducting(tmp_path) as now:
            cell = now.cells["cell1"]
            await cell.add([_row(ACTIVE), instance("other")])
            guests = {each: NodeInstance("small", "p") for each in ("i", "other", "strange")}
            report = NodeReport(host="a", node="node-a", cell="cell1", instances=guests)
            [told] = await cell.read(lambda connection: by_consumers(connection, (report,)))
            assert told.instances.keys() == {DRAWN, "other", "strange"}
            assert await cell.read(lambda connection: by_consumers(connection, ())) == ()

    asyncio.run(run())


def test_consumers_are_known_until_nothing_of_their_instance_is_left(tmp_path: Path) -> None:
    async def run() -> None:
        async with conducting(tmp_path) as now:
            database = now.requests.database
            await database.write(AcceptRequest(request(1), NOW))
            for _ in range(2):
                await database.write(add_consumer(DRAWN, "i0"))
            await database.write(add_consumer("second", "i0"))
            for named in (("i0",), (DRAWN,), ("second", "x")):
                assert await database.read(find_consumers(named)) == {DRAWN: "i0", "second": "i0"}
            assert await database.read(find_consumers(("x",))) == {}
            await database.write(forget_instances(("i0",), NOW))
            assert await database.read(find_consumers(("i0", DRAWN))) == {}
            # A conductor that was stopped may still claim for one of them.
            assert await database.read(find_noted(frozenset((DRAWN, "second", "x")))) == {DRAWN, "second"}

    asyncio.run(run())


def test_the_audit_finds_what_a_former_consumer_holds_and_frees_that_alone(tmp_path: Path) -> None:
    async def run() -> None:
        async with conducting(tmp_path) as now:
            await now.run(request(1))
            await now.build()
            [row] = (await now.instances()).values()
            await now.requests.database.write(add_consumer(DRAWN, "i0"))
            late = ConsumerWrite(
                consumer=DRAWN,
                allocations={row.node or "": {"VCPU": 1}},
                project_id="project",
                user_id="user",
                consumer_type="INSTANCE",
            )
            await now.placement.write_allocations((late,))
            roots = {each: each for each in (row.node or "",)}
            context = now.super.context
            seen = await look(context, ["i0", DRAWN], roots)
            assert [(each.kind, each.instance) for each in seen.observed] == [(LEAKED_CLAIM, DRAWN)]
            [observed] = seen.observed
            assert observed.held is not None and observed.held.consumer.uuid == DRAWN
            assert observed.is_own and observed.action == "free-claim"

    asyncio.run(run())


def test_a_run_is_recorded_by_the_instance_and_decided_again_by_the_consumer() -> None:
    run = Run(
        id="run",
        request_id="req",
        project_id="p",
        user_id="u",
        instances=(DRAWN,),
        spec={},
        started_at=0.0,
        finished_at=0.0,
        version=None,
        destinations=(Destination("run", DRAWN, selection("a")),),
        of_instances={DRAWN: "i"},
    )
    attempt = Attempt(
        run="run", request_id="req", instance=DRAWN, at=0.0, host="a", cell="c", weight=0.0, result="built"
    )
    recorded, attempts = renamed(run, [attempt], run.of_instances)
    assert (recorded.instances, attempts[0].instance) == (("i",), "i")
    assert recorded.destinations[0].instance == "i"
    assert as_claimed(recorded, attempts) == (run, [attempt])
