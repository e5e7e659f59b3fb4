"""A cell: what each report, order and deletion does to an instance in each state."""

import asyncio

import msgspec
import pytest

from roost.model.instance import (
    ABANDONED,
    ACTIVE,
    ASSIGNED,
    DELETING,
    DESTROYED,
    ERROR,
    FAILED,
    Fault,
    Requester,
)
from roost.model.node import NodeReport
from roost.model.spec import Flavor, RequestSpec
from roost.state.cell_database.cell import GONE, changed
from roost.state.cell_database.conductor_work import work_topic
from roost.state.cell_database.disabled import Word, enable_node, read_words_of_nodes
from roost.state.cell_database.host_work import orders_topic
from roost.state.cell_database.move_ends import abort_move
from roost.state.cell_database.moves import begin_move
from roost.state.cell_database.nodes import read_signs
from support.cells import NOW, built, failed, instance, opened_cell, selection
from support.clouds import spec
from support.driven_cell import DrivenCell
from support.waiting import patience

STATES = (ASSIGNED, ACTIVE, FAILED, ABANDONED, ERROR, DELETING, DESTROYED)


async def bring_to(cell: DrivenCell, state: str) -> None:
    """Put instance i into a state, by the ways that lead there."""
    await cell.add([instance(alternates="b")])
    if state in (ACTIVE, DELETING, DESTROYED):
        await cell.report([built()])
    if state in (FAILED, ABANDONED, ERROR):
        await cell.report([failed()])
    if state in (ABANDONED, ERROR):
        await cell.abandon("i", 1, "tried enough")
    if state == ERROR:
        await cell.give_up(["i"])
    if state in (DELETING, DESTROYED):
        await cell.delete(["i"])
    if state == DESTROYED:
        await cell.destroyed([instance()])


async def state_of(cell: DrivenCell) -> str:
    found = await cell.find(["i"])
    return found["i"].state if found else GONE


EVENTS = {
    "added again": lambda cell: cell.add([instance()]),
    "built": lambda cell: cell.report([built()]),
    "failed": lambda cell: cell.report([failed()]),
    "reassigned": lambda cell: cell.reassign("i", 1, selection("b"), ()),
    "reassigned by a late conductor": lambda cell: cell.reassign("i", 2, selection("b"), ()),
    "abandoned": lambda cell: cell.abandon("i", 1, "enough"),
    "abandoned by a late conductor": lambda cell: cell.abandon("i", 2, "enough"),
    "given up": lambda cell: cell.give_up(["i"]),
    "deleted": lambda cell: cell.delete(["i"]),
    "destroyed": lambda cell: cell.destroyed([instance()]),
    "forgotten": lambda cell: cell.forget(["i"]),
}
# Every transition that there is; in every other state the event changes nothing.
TRANSITIONS = {
    ("built", ASSIGNED): ACTIVE,
    ("failed", ASSIGNED): FAILED,
    ("reassigned", FAILED): ASSIGNED,
    ("abandoned", FAILED): ABANDONED,
    ("given up", ABANDONED): ERROR,
    ("deleted", ASSIGNED): DELETING,
    ("deleted", ACTIVE): DELETING,
    ("deleted", FAILED): DELETING,
    ("deleted", ABANDONED): DELETING,
    ("deleted", ERROR): DELETING,
    ("destroyed", DELETING): DESTROYED,
    ("forgotten", DESTROYED): GONE,
}


@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.parametrize("state", STATES)
def test_transition(tmp_path, event, state) -> None:
    async def run() -> None:
        async with opened_cell(tmp_path) as cell:
            await bring_to(cell, state)
            before = await cell.find(["i"]), await cell.faults_of("i")
            await EVENTS[event](cell)
            after = await cell.find(["i"]), await cell.faults_of("i")
            assert await state_of(cell) == TRANSITIONS.get((event, state), state)
            if (event, state) not in TRANSITIONS:
                assert after == before, "an event that does not apply has changed something"

    asyncio.run(run())


def test_instance_comes_back_as_it_went_in(tmp_path) -> None:
    async def run() -> None:
        async with opened_cell(tmp_path) as cell:
            spec = RequestSpec(project_id="p", user_id="u", flavor=Flavor("small", 1, 512))
            taken = instance(
                alternates="bc", reason="none yet", attempt=3, spec=spec, selection=selection("a")
            )
            await cell.add([taken])
            assert await cell.find(["i", "unknown"]) == {"i": taken}

    asyncio.run(run())


def test_reassigned_instance_is_the_next_attempt_and_keeps_its_faults(tmp_path) -> None:
    async def run() -> None:
        async with opened_cell(tmp_path) as cell:
            await cell.add([instance(alternates="bc")])
            await cell.report([failed(reason="no IP")])
            await cell.reassign("i", 1, selection("b"), [selection("c")])
            [found] = (await cell.find(["i"])).values()
            assert found == instance(host="b", attempt=2, alternates="c", selection=selection("b"))
            await cell.report([failed(host="b", attempt=2, reason="no disk")])
            assert await cell.faults_of("i") == [
                Fault("i", 1, "a", "no IP", NOW),
                Fault("i", 2, "b", "no disk", NOW),
            ]

    asyncio.run(run())


@pytest.mark.parametrize(
    "report",
    [failed(attempt=1), built(attempt=1), failed(attempt=2, host="a"), failed(attempt=3, host="b")],
    ids=["failed before", "built before", "on another host", "in the future"],
)
def test_stale_report_counts_nothing(tmp_path, report) -> None:
    async def run() -> None:
        async with opened_cell(tmp_path) as cell:
            await cell.add([instance(alternates="b")])
            await cell.report([failed()])
            await cell.reassign("i", 1, selection("b"), ())
            before = await cell.find(["i"]), await cell.faults_of("i")
            await cell.report([report])
            assert (await cell.find(["i"]), await cell.faults_of("i")) == before

    asyncio.run(run())


def test_report_on_an_instance_that_is_gone_leaves_no_fault(tmp_path) -> None:
    async def run() -> None:
        async with opened_cell(tmp_path) as cell:
            await cell.report([failed()])
            assert await cell.faults_of("i") == []

    asyncio.run(run())


def test_first_of_two_results_for_an_attempt_counts(tmp_path) -> None:
    async def run() -> None:
        async with opened_cell(tmp_path) as cell:
            await cell.add([instance("i"), instance("j")])
            await cell.report([built("i"), failed("i"), failed("j")])
            found = await cell.find(["i", "j"])
            assert [found[uuid].state for uuid in "ij"] == [ACTIVE, FAILED]
            assert await cell.faults_of("i") == []

    asyncio.run(run())


def test_instance_without_a_host_is_destroyed_as_soon_as_it_is_deleted(tmp_path) -> None:
    async def run() -> None:
        async with opened_cell(tmp_path) as cell:
            refused = instance(host=None, state=ERROR, attempt=0, reason="No valid host")
            await cell.add([refused], [Fault("i", 0, None, "No valid host", NOW)])
            await cell.add([refused], [Fault("i", 0, None, "No valid host", NOW)])
            assert len(await cell.faults_of("i")) == 1
            await cell.delete(["i"])
            assert await state_of(cell) == DESTROYED
            await cell.forget(["i"])
            assert await cell.faults_of("i") == []

    asyncio.run(run())


def test_many_at_once(tmp_path) -> None:
    async def run() -> None:
        async with opened_cell(tmp_path) as cell:
            names = [f"i{number}" for number in range(1201)]
            await cell.add([instance(name, request_id=f"req-{name[-1]}") for name in names])
            assert await cell.unsettled() == 1201
            await cell.report([built(name) for name in names])
            assert await cell.unsettled() == 0
            assert {outcome.instance for outcome in await cell.outcomes(names)} == set(names)
            assert len(await cell.every("req-0")) == 121
            await cell.delete(names)
            await cell.destroyed([instance(name) for name in names])
            await cell.forget(names)
            assert await cell.every() == []

    asyncio.run(run())


def test_in_state_is_of_one_host_if_it_is_named(tmp_path) -> None:
    async def run() -> None:
        async with opened_cell(tmp_path) as cell:
            await cell.add([instance("i", "a"), instance("j", "b"), instance("k", "b", state=ACTIVE)])
            assert {found.uuid for found in await cell.in_state(ASSIGNED)} == {"i", "j"}
            assert [found.uuid for found in await cell.in_state(ASSIGNED, ACTIVE, host="a")] == ["i"]

    asyncio.run(run())


def test_listeners_hear_of_their_states_only(tmp_path) -> None:
    async def run() -> None:
        async with opened_cell(tmp_path) as cell:
            events = {state: cell.listen(state) for state in (*STATES, GONE)}
            assert all(event.is_set() for event in events.values()), "there may be work from before"

            async def heard(write) -> set[str]:
                for event in events.values():
                    event.clear()
                await write
                return {state for state, event in events.items() if event.is_set()}

            assert await heard(cell.add([instance()])) == {ASSIGNED}
            assert await heard(cell.report([failed()])) == {FAILED}
            assert await heard(cell.reassign("i", 1, selection("b"), ())) == {ASSIGNED}
            assert await heard(cell.report([built(host="b", attempt=2)])) == {ACTIVE}
            assert DELETING in await heard(cell.delete(["i"]))
            assert await heard(cell.destroyed([instance()])) == {DESTROYED}
            assert await heard(cell.forget(["i"])) == {GONE}
            assert await heard(cell.heartbeat([])) == set()
            silent = events.pop(ASSIGNED)
            cell.unlisten(silent)
            silent.clear()
            await cell.add([instance("j")])
            assert not silent.is_set()

    asyncio.run(run())


def test_waiting_for_a_change_ends_with_it_or_with_time() -> None:
    async def run() -> None:
        event = asyncio.Event()
        await changed(event, 0.01)
        event.set()
        await changed(event, 60)
        assert not event.is_set()

    asyncio.run(run())


def test_cancellation_that_comes_with_the_event_is_not_lost() -> None:
    async def forever(event: asyncio.Event) -> None:
        while True:
            await changed(event, 60)

    async def run() -> None:
        event = asyncio.Event()
        for turns in range(6):
            task = asyncio.create_task(forever(event))
            await asyncio.sleep(0.01)
            event.set()
            for _ in range(turns):
                await asyncio.sleep(0)
            task.cancel()
            done, _ = await asyncio.wait([task], timeout=patience(60))
            assert done, "the task goes on as if nobody had cancelled it"

    asyncio.run(run())


def test_hosts_are_as_last_reported(tmp_path) -> None:
    async def run() -> None:
        async with opened_cell(tmp_path) as cell:
            first = NodeReport(
                host="a",
                node="node-a",
                cell="cell1",
                metrics={"heat": 1.5},
            )
            await cell.heartbeat([first, NodeReport(host="b", node="node-b", cell="cell1")])
            later = msgspec.structs.replace(first, enabled=False, failed_builds=2)
            await cell.heartbeat([later])
            assert [report.host for report in await cell.nodes()] == ["a", "b"]
            assert (await cell.nodes())[0] == later
            assert (await cell.read(read_signs())).revisions == {"node-a": 2, "node-b": 1}
            await cell.heartbeat([later])
            signs = await cell.read(read_signs())
            assert signs.revisions == {"node-a": 2, "node-b": 1}, "nothing has changed"
            assert {host: stamp[2] for host, stamp in signs.sessions.items()} == {"a": 2, "b": 0}

    asyncio.run(run())


def test_service_reports_many_nodes_and_one_that_is_made_anew_replaces_the_old(tmp_path) -> None:
    async def run() -> None:
        async with opened_cell(tmp_path) as cell:

            def blade(number: int, node: str = "") -> NodeReport:
                name = f"blade-{number}"
                return NodeReport(host="ironic", nodename=name, node=node or name, cell="cell1", num_io_ops=1)

            await cell.heartbeat([blade(number) for number in range(3)])
            assert await cell.nodes() == [blade(number) for number in range(3)]
            assert await cell.write(enable_node("ironic", "blade-1", False, "fan", NOW))
            await cell.heartbeat([blade(1, "anew")])
            assert await cell.node_uuids() == {"blade-0", "anew", "blade-2"}
            words = read_words_of_nodes("ironic")
            assert await cell.read(words) == {"anew": Word("fan")}, "what replaces it is disabled too"
            assert await cell.write(enable_node("ironic", "anew", True, None, NOW))
            assert await cell.write(enable_node("ironic", "blade-2", False, "disk", NOW))
            # Two nodes change their names with each other.
            await cell.heartbeat([blade(0, "blade-2"), blade(2, "blade-0")])
            assert await cell.nodes() == [blade(0, "blade-2"), blade(1, "anew"), blade(2, "blade-0")]
            assert await cell.read(words) == {"blade-2": Word("disk")}, "the word is on the node"
            await cell.remove_nodes(["blade-0", "unknown"])
            assert (await cell.count_nodes(), await cell.node_uuids()) == (2, {"blade-2", "anew"})
            assert await cell.read(words) == {"blade-2": Word("disk")}
            await cell.remove_nodes(["blade-2"])
            await cell.heartbeat([blade(0, "blade-2")])
            assert await cell.read(words) == {}, "nothing was said of the one that comes anew"

    asyncio.run(run())


def test_what_concerns_a_move_wakes_conductors_and_hosts(tmp_path) -> None:
    by = Requester("operator", "admin", "req")

    async def run() -> None:
        async with opened_cell(tmp_path) as cell:
            held = msgspec.structs.replace(selection("a"), generation=1)
            await cell.add([instance(state=ACTIVE, selection=held, spec=spec(1))])
            before = [cell.wakes.count(topic(cell.name)) for topic in (work_topic, orders_topic)]
            for work in (
                begin_move(uuid="m", instance="i", kind="migrate", by=by, at=NOW),
                abort_move("m", "somebody aborted the move", NOW),
            ):
                assert await cell.write(work) is not None
                woken = [cell.wakes.count(topic(cell.name)) for topic in (work_topic, orders_topic)]
                assert woken == [each + 1 for each in before]
                before = woken

    asyncio.run(run())
