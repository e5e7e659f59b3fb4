"""The agents of a cell: each attempt is built once, nothing stays where it does not belong."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from roost.cells import Cell
from roost.cells.node_reports import ReadSigns
from roost.compute.agent import Agent
from roost.compute.errors import BuildFailed, ProvidersRefused
from roost.compute.service import ComputeService
from roost.conductor.agents.endpoint import AgentEndpoint
from roost.model.instance import ACTIVE, ASSIGNED, DELETING, DESTROYED, FAILED
from roost.placement.service import PlacementService
from roost.storage import DatabaseUnavailable
from support.cells import instance, opened_cell, selection
from support.drivers import HeldDriver
from support.ledgers import opened


class Host:
    """Hosts a and b of a cell, and the service that runs their agents."""

    def __init__(self, cell: Cell, placement, **options: float) -> None:
        self.cell = cell
        self.drivers = {name: HeldDriver() for name in "ab"}
        agents = [Agent(name, cell.name, driver) for name, driver in self.drivers.items()]
        self.service = ComputeService(cell, AgentEndpoint(placement), agents, **options)
        self.a, self.b = self.drivers.values()

    async def work(self, times: int = 3) -> None:
        """Let the service do what there is to be done."""
        for _ in range(times):
            await self.service.step()
            await asyncio.sleep(0)
            await asyncio.sleep(0)

    async def state(self, uuid: str = "i") -> str:
        [outcome] = await self.cell.outcomes([uuid])
        return outcome.state


@asynccontextmanager
async def hosts(directory, **options: float):
    async with opened(directory / "api.db") as [ledger], opened_cell(directory) as cell:
        yield Host(cell, PlacementService(ledger), **options)


@asynccontextmanager
async def running(host: Host):
    task = asyncio.create_task(host.service.run())
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait([task])


async def until(condition, seconds: float = 5.0) -> None:
    async with asyncio.timeout(seconds):
        while not await condition():
            await asyncio.sleep(0.01)


def test_assigned_instance_is_built_and_reported(tmp_path) -> None:
    async def run() -> None:
        async with hosts(tmp_path) as host:
            await host.service.start()
            await host.cell.add([instance("i"), instance("j", "b"), instance("k", "not ours")])
            await host.work()
            assert [await host.state(uuid) for uuid in "ijk"] == [ACTIVE, ACTIVE, ASSIGNED]
            assert (host.a.there, host.b.there) == ({"i": 1}, {"j": 1})

    asyncio.run(run())


def test_failed_build_is_reported_with_its_reason(tmp_path) -> None:
    async def run() -> None:
        async with hosts(tmp_path) as host:
            host.a.failure = BuildFailed("no disk")
            await host.cell.add([instance()])
            await host.work()
            assert await host.state() == FAILED
            [fault] = await host.cell.faults_of("i")
            assert (fault.host, fault.reason) == ("a", "no disk")

    asyncio.run(run())


def test_no_instance_is_built_twice_for_one_attempt(tmp_path) -> None:
    async def run() -> None:
        async with hosts(tmp_path) as host:
            host.a.go.clear()
            await host.cell.add([instance()])
            await host.work(5)
            host.a.go.set()
            await host.work(5)
            assert host.a.calls == ["build i 1", "built i"]
            assert await host.state() == ACTIVE

    asyncio.run(run())


def test_next_attempt_on_the_same_host_is_built_again(tmp_path) -> None:
    async def run() -> None:
        async with hosts(tmp_path) as host:
            host.a.failure = BuildFailed("no disk")
            await host.cell.add([instance()])
            await host.work()
            host.a.failure = None
            await host.cell.reassign("i", 1, selection("a"), ())
            await host.work()
            assert host.a.calls == ["build i 1", "build i 2", "built i"]

    asyncio.run(run())


def test_what_is_deleted_while_it_is_built_is_destroyed_afterwards(tmp_path) -> None:
    async def run() -> None:
        async with hosts(tmp_path) as host:
            host.a.go.clear()
            await host.cell.add([instance()])
            await host.work(1)
            await host.cell.delete(["i"])
            await host.work()
            assert await host.state() == DELETING, "a half-built guest would be left behind"
            host.a.go.set()
            await host.work()
            assert host.a.calls == ["build i 1", "built i", "destroy i"]
            assert (await host.state(), host.a.there) == (DESTROYED, {})

    asyncio.run(run())


def test_destruction_that_fails_is_tried_again(tmp_path) -> None:
    async def run() -> None:
        async with hosts(tmp_path) as host:
            await host.cell.add([instance()])
            await host.work()
            host.a.destroy_failures = 1
            await host.cell.delete(["i"])
            await host.work()
            assert await host.state() == DESTROYED
            assert host.a.calls[-2:] == ["destroy i", "destroy i"]

    asyncio.run(run())


def test_guest_that_is_not_assigned_to_its_host_is_destroyed_there(tmp_path) -> None:
    async def run() -> None:
        async with hosts(tmp_path) as host:
            await host.cell.add([instance("i", "a"), instance("failed", "a")])
            await host.work()
            host.a.there["unknown"] = 1
            host.b.there["i"] = 1
            await host.service.reconcile()
            assert set(host.a.there) == {"i", "failed"}
            assert host.b.there == {}
            host.a.destroy_failures = 1
            host.a.there["unknown"] = 1
            await host.service.reconcile()
            await host.service.reconcile()
            assert set(host.a.there) == {"i", "failed"}

    asyncio.run(run())


def test_guest_that_comes_while_reconcile_reads_is_left_alone(tmp_path, monkeypatch) -> None:
    async def run() -> None:
        async with hosts(tmp_path) as host:
            guests = host.cell.guests

            async def read_and_build() -> dict[str, set[str]]:
                found = await guests()
                await host.cell.add([instance()])
                await host.work()
                return found

            monkeypatch.setattr(host.cell, "guests", read_and_build)
            await host.service.reconcile()
            assert host.a.there == {"i": 1}

    asyncio.run(run())


def test_start_takes_up_what_runs_and_tells_of_every_host(tmp_path) -> None:
    async def run() -> None:
        async with hosts(tmp_path) as host:
            await host.cell.add([instance("i", state=ACTIVE), instance("j", "b", state=DELETING)])
            host.a.there["stray"] = 1
            await host.service.start()
            assert host.a.calls == ["recover i", "destroy stray"]
            assert host.b.calls == ["recover j"]
            assert [report.host for report in await host.cell.nodes()] == ["a", "b"]
            assert (await host.cell.read(ReadSigns())).sessions.keys() == {"a", "b"}

    asyncio.run(run())


def test_host_that_placement_refuses_keeps_no_other_from_starting(tmp_path) -> None:
    async def run() -> None:
        async with opened(tmp_path / "api.db") as [ledger], opened_cell(tmp_path) as cell:
            service = PlacementService(ledger)
            await service.ensure_provider("somebody-else", "a")
            host = Host(cell, service, heartbeat_seconds=0.01)
            with pytest.raises(ProvidersRefused, match="name: a already exists"):
                await Agent("a", "cell1", HeldDriver()).register(AgentEndpoint(service))
            await host.service.start()
            assert await service.provider(Agent("b", "cell1", HeldDriver()).node) is not None
            await service.delete_provider("somebody-else")

            async def is_registered() -> bool:
                return await service.provider(Agent("a", "cell1", HeldDriver()).node) is not None

            async with running(host):
                await until(is_registered)

    asyncio.run(run())


def test_outage_of_the_cell_is_survived_and_nothing_is_built_again(tmp_path, monkeypatch) -> None:
    async def run() -> None:
        async with hosts(tmp_path, poll_seconds=0.01, heartbeat_seconds=0.01) as host:
            host.a.go.clear()
            await host.cell.add([instance()])
            out = False
            for name in ("read", "write"):
                call = getattr(host.cell.database, name)

                async def perhaps(work, call=call):
                    if out:
                        raise DatabaseUnavailable("gone")
                    return await call(work)

                monkeypatch.setattr(host.cell.database, name, perhaps)

            async def is_building() -> bool:
                return bool(host.a.calls)

            async def is_active() -> bool:
                return await host.state() == ACTIVE

            async with running(host) as task:
                await until(is_building)
                out = True
                host.a.go.set()
                await asyncio.sleep(0.1)
                assert not task.done()
                out = False
                await until(is_active)
                assert host.a.calls == ["build i 1", "built i"]

    asyncio.run(run())


def test_service_whose_heartbeats_have_died_ends_with_the_error(tmp_path, monkeypatch) -> None:
    async def die() -> None:
        raise ZeroDivisionError("a defect")

    async def run() -> None:
        async with hosts(tmp_path, heartbeat_seconds=0.01) as host:
            monkeypatch.setattr(host.service, "beat", die)
            with pytest.raises(ExceptionGroup) as raised:
                await asyncio.wait_for(host.service.run(), 60)
            assert raised.group_contains(ZeroDivisionError)

    asyncio.run(run())
