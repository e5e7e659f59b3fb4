"""Moves that make room, through a whole system: found for a refusal, carried out, and the request fits."""

import asyncio
import uuid
from pathlib import Path

import msgspec
import pytest
from sqlalchemy.engine import Connection

from roost.agent.drivers.simulated import SimulatedHost
from roost.conductor.moves.requests import request_move
from roost.model.instance import ACTIVE, BuildRequest, Requester
from roost.model.inventory import Inventory
from roost.model.move import Move
from roost.model.move_states import ENDED
from roost.model.reasons import Reasons
from roost.model.spec import Flavor, RequestSpec
from roost.model.visibility import seen
from roost.scheduler import HostRequest, NoValidHost, Scheduler, SchedulerOptions
from roost.scheduler.explain.resident_reader import ResidentReader
from roost.server.all_in_one.layout import LayoutHost, SystemLayout
from roost.server.all_in_one.system import System
from roost.state.cell_database.moves import find_moves
from roost.state.cell_database.tables import instances
from roost.storage import DatabaseUnavailable
from support.systems import differences, opened_system

LAYOUT = SystemLayout(
    {
        "cell1": tuple(LayoutHost(SimulatedHost(name, {"VCPU": Inventory(4)})) for name in ("a", "b")),
        "cell2": (LayoutHost(SimulatedHost("c", {"VCPU": Inventory(3)})),),
    }
)
OPTIONS = SchedulerOptions(explain_moves=2, explain_seconds=120.0)
BY = Requester("admin", "admin", "req-test")


def asked(vcpus: int, *, host: str | None = None) -> RequestSpec:
    flavor = Flavor(f"v{vcpus}", vcpus, 0)
    return RequestSpec(
        project_id="project", user_id="user", flavor=flavor, force_hosts=() if host is None else (host,)
    )


async def built(system: System, spec: RequestSpec) -> str:
    instance = str(uuid.uuid4())
    await system.super_conductor.accept(
        BuildRequest(request_id=f"req-{instance}", spec=spec, instances=(instance,), min_count=1)
    )
    await system.settle()
    found = [each for cell in system.cells.values() for each in await cell.outcomes([instance])]
    assert [each.state for each in found] == [ACTIVE], found
    return instance


async def refused(system: System, spec: RequestSpec) -> Reasons:
    assert isinstance(system.scheduler, Scheduler)
    with pytest.raises(NoValidHost) as raised:
        await system.scheduler.select_destinations(HostRequest.new(spec))
    assert raised.value.reasons is not None
    return raised.value.reasons


async def moved(system: System, instance: str, target: str) -> None:
    name = str(uuid.uuid4())
    begun = await request_move(
        system.super_conductor.context,
        uuid=name,
        instance=instance,
        kind="migrate",
        by=BY,
        to_host=target,
    )
    assert isinstance(begun, Move), begun
    async with asyncio.timeout(120):
        while (move := (await system.cells["cell1"].read(find_moves((name,))))[name]).state not in ENDED:
            await asyncio.sleep(0.1)
    assert move.state == "done", move


def test_moves_of_a_refusal_make_the_request_fit(tmp_path: Path) -> None:
    async def run() -> None:
        async with opened_system(tmp_path, LAYOUT, scheduler=OPTIONS) as system:
            first, second = await built(system, asked(2, host="a")), await built(system, asked(2, host="b"))
            elsewhere = await built(system, asked(2, host="c"))
            spec = asked(4)
            reasons = await refused(system, spec)
            search = reasons.move_search
            assert search is not None and search.complete
            assert (search.most, search.hosts, search.instances, search.fixed) == (2, 3, 3, 0)
            # Nothing leaves its cell, though host c has no room for it anyway.
            [move] = search.moves
            assert (move.instance, move.source, move.target) in [(first, "a", "b"), (second, "b", "a")]
            assert (move.cell, move.project_id, move.flavor) == ("cell1", "project", "v2")
            assert search.host == move.source
            assert f"; it fits after moving 1 instance: {move.instance} from " in reasons.sentence

            # Its project learns nothing of it.
            shown = seen(reasons)
            assert shown.move_search is None
            text = msgspec.json.encode(shown).decode()
            assert not any(each in text for each in (first, second, elsewhere, "moving"))
            assert "moving" not in reasons.public

            # What is locked by a move of its own is not proposed.
            await moved(system, move.instance, move.target)
            assert isinstance(system.scheduler, Scheduler)
            [placed] = await system.scheduler.select_destinations(HostRequest.new(spec))
            assert placed.selected.host == search.host

            # An explanation that nobody asked to look for moves has none.
            other = await system.scheduler.explain(asked(4), 1)
            assert other is not None and other.move_search is None
            none = await system.scheduler.explain(asked(4), 1, 3)
            assert none is not None and none.move_search is not None
            assert (none.move_search.moves, none.move_search.complete) == ((), True)
            await system.placement.delete_allocations([placed.instance])
            fits = await system.scheduler.explain(asked(4), 1, 3)
            assert fits is not None and fits.move_search is None and fits.weighed
        assert await differences(tmp_path) == []

    asyncio.run(run())


def test_what_may_not_move_is_counted_and_not_proposed(tmp_path: Path) -> None:
    async def run() -> None:
        async with opened_system(tmp_path, LAYOUT, scheduler=OPTIONS) as system:
            first = await built(system, asked(2, host="a"))
            second = await built(system, asked(3, host="b"))
            for instance in (first, second):

                def lock(connection: Connection, instance: str = instance) -> None:
                    connection.execute(
                        instances.update().where(instances.c.uuid == instance).values(move=str(uuid.uuid4()))
                    )

                await system.cells["cell1"].write(lock)
            reasons = await refused(system, asked(4))
            search = reasons.move_search
            assert search is not None
            assert (search.moves, search.instances, search.fixed) == ((), 0, 2)
            assert "moving" not in reasons.sentence

    asyncio.run(run())


def test_reasons_stand_without_moves_while_the_instances_cannot_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        async with opened_system(tmp_path, LAYOUT, scheduler=OPTIONS) as system:
            await built(system, asked(2, host="a"))
            await built(system, asked(2, host="b"))

            async def away(*_: object) -> None:
                raise DatabaseUnavailable("the database is away")

            monkeypatch.setattr(ResidentReader, "_held", away)
            reasons = await refused(system, asked(4))
            assert reasons.move_search is None and reasons.stages
            monkeypatch.undo()
            monkeypatch.setattr(system.cells["cell1"], "read", away)
            reasons = await refused(system, asked(4))
            search = reasons.move_search
            assert search is not None
            assert (search.moves, search.complete) == ((), False)

    asyncio.run(run())
