"""Simulated guests go to other simulated hosts while they run: in time, or not, or not at all."""

import asyncio
from pathlib import Path

import msgspec
import pytest

from roost.agent.driver_calls import DriverService
from roost.agent.drivers.simulated import GuestFiles, Script, SimulatedDriver, SimulatedHost
from roost.agent.drivers.simulated_migrations import LiveScript, SimulatedNetwork
from roost.agent.errors import BuildFailed, NotMigrated
from roost.model.instance import Instance
from support.cells import instance


def at(host: str, attempt: int) -> Instance:
    return msgspec.structs.replace(instance("i", host), attempt=attempt)


class Pair:
    """Hosts ``a`` and ``b``; the guest runs on ``a``."""

    def __init__(self, folder: Path, script: LiveScript) -> None:
        network = SimulatedNetwork()
        self.a, self.b = (
            SimulatedDriver(SimulatedHost(name, {}), Script(live=script), GuestFiles(folder / name), network)
            for name in "ab"
        )

    async def build(self) -> None:
        await self.a.prepare(at("a", 1))
        await self.a.start(at("a", 1))

    @property
    def running(self) -> tuple[dict[str, int], dict[str, int]]:
        return dict(self.a.guests()), dict(self.b.guests())


def test_a_guest_runs_on_the_other_host_and_is_stopped_on_its_own_also_after_a_restart(tmp_path) -> None:
    async def run() -> None:
        pair = Pair(tmp_path, LiveScript())
        await pair.build()
        await pair.b.receive(at("b", 2))
        await pair.b.receive(at("b", 2))
        assert pair.running == ({"i": 1}, {})
        await pair.a.migrate("i", at("b", 2))
        assert pair.running == ({}, {"i": 2})
        await pair.b.receive(at("b", 2))
        await pair.a.migrate("i", at("b", 2))
        assert pair.running == ({}, {"i": 2})
        assert Pair(tmp_path, LiveScript()).running == ({}, {"i": 2})
        await pair.a.destroy("i")
        assert pair.running == ({}, {"i": 2})

    asyncio.run(run())


@pytest.mark.parametrize("ready", [None, 3])
def test_a_host_gets_no_guest_for_whose_attempt_it_is_not_ready(tmp_path, ready: int | None) -> None:
    async def run() -> None:
        pair = Pair(tmp_path, LiveScript())
        await pair.build()
        if ready is not None:
            await pair.b.receive(at("b", ready))
        with pytest.raises(NotMigrated, match="host b is not ready to receive attempt 2"):
            await pair.a.migrate("i", at("b", 2))
        with pytest.raises(NotMigrated, match="host c is not one"):
            await pair.a.migrate("i", at("c", 2))
        assert pair.running == ({"i": 1}, {})

    asyncio.run(run())


def test_a_migration_that_fails_leaves_the_guest_and_one_that_breaks_loses_it(tmp_path) -> None:
    async def run() -> None:
        failing = Pair(tmp_path / "failing", LiveScript(failure_rate=1.0))
        await failing.build()
        await failing.b.receive(at("b", 2))
        with pytest.raises(NotMigrated, match="the connection to host b broke"):
            await failing.a.migrate("i", at("b", 2))
        assert failing.running == ({"i": 1}, {})
        losing = Pair(tmp_path / "losing", LiveScript(loss_rate=1.0))
        await losing.build()
        await losing.b.receive(at("b", 2))
        await losing.a.migrate("i", at("b", 2))
        assert losing.running == ({}, {})
        # Its definition is on its host.
        await losing.a.start_again(at("a", 1))
        assert losing.running == ({"i": 1}, {})

    asyncio.run(run())


def test_a_migration_outlasts_the_call_that_began_it_and_can_be_ended(tmp_path) -> None:
    async def run() -> None:
        pair = Pair(tmp_path, LiveScript(seconds=600.0))
        await pair.build()
        await pair.b.receive(at("b", 2))
        first = asyncio.create_task(pair.a.migrate("i", at("b", 2)))
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        again = asyncio.create_task(pair.a.migrate("i", at("b", 2)))
        await asyncio.sleep(0)
        assert not again.done()
        await pair.a.end_migration("i")
        with pytest.raises(NotMigrated, match="the migration was ended"):
            await again
        await pair.a.end_migration("i")
        assert pair.running == ({"i": 1}, {})

    asyncio.run(run())


def test_a_host_without_others_says_that_its_guests_do_not_move_so(tmp_path) -> None:
    async def run() -> None:
        alone = DriverService(SimulatedDriver(SimulatedHost("a", {}), Script()))
        assert not await alone.moves_live()
        assert await DriverService(Pair(tmp_path, LiveScript()).a).moves_live()

    asyncio.run(run())


def test_a_driver_that_cannot_receive_fails_the_attempt() -> None:
    class Plain:
        """A driver without live moves."""

    async def run() -> None:
        service = DriverService(Plain())  # type: ignore[arg-type]
        assert not await service.moves_live()
        with pytest.raises(BuildFailed, match="Plain do not move while they run"):
            await service.receive(at("b", 2))
        with pytest.raises(NotMigrated, match="Plain do not move while they run"):
            await service.migrate("i", at("b", 2))

    asyncio.run(run())
