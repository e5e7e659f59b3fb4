"""Guests move between hosts that find their disks, and those of a deleted instance are removed with it."""

import asyncio
from typing import Any

import httpx
import pytest

from roost.conductor.agent_endpoint.sessions import free_all_sessions
from roost.model.instance import ACTIVE, AttemptKey, DestroyOrder
from roost.model.node import KEEPS_DISKS, YES, NodeReport
from roost.state.cell_database.deletions import end_deletions
from roost.state.cell_database.host_work import give_orders
from roost.state.cell_database.move_orders import work_by_moves
from support.agents import Hosts, hosts, until
from support.cells import NOW, instance
from support.conducting import HOSTS, Conductors
from support.conductor_api import ADMIN, api, asked_for, detail
from support.drivers import HeldDriver

ONE, OTHER = "0" * 32, "f" * 32
EVIDENCE = {"evidence": "it burns"}


class Cloud:
    """A cloud with an instance that is active on the host ``source``; ``free`` are the others of its cell."""

    def __init__(self, now: Conductors, client: httpx.AsyncClient, instance: str, source: str) -> None:
        self.now, self.client, self.instance, self.source = now, client, instance, source
        self.free = [host for host, cell in HOSTS.items() if cell == HOSTS[source] and host != source]

    async def report(self, stores: dict[str, str | None]) -> None:
        """Have hosts report the stores of their disks."""
        cell = await self.now.cell_of(self.instance)
        for host, store in stores.items():
            stats = {} if store is None else {KEEPS_DISKS: store}
            report = NodeReport(host=host, node=f"node-{host}", cell=HOSTS[host], stats=stats)
            await cell.heartbeat([report])
        await self.now.feed.refresh()

    async def ask(self, verb: str, body: dict[str, Any]) -> httpx.Response:
        path = f"/v1/instances/{self.instance}/{verb}"
        return await self.client.post(path, json=body, headers=ADMIN)

    async def move(self, verb: str, body: dict[str, Any]) -> dict[str, Any]:
        """Begin a move, have its target claimed, and return it."""
        answer = await self.ask(verb, body)
        assert answer.status_code == 202, answer.text
        await self.now.step()
        found = (await self.client.get(f"/v1/moves/{answer.json()['uuid']}", headers=ADMIN)).json()
        assert isinstance(found, dict)
        return found

    async def ordered(self, host: str) -> list[bool]:
        """Whether each build that a host is told of finds its disks."""
        work = await (await self.now.cell_of(self.instance)).read(lambda c: work_by_moves(c, [host]))
        return [part.instance.finds_disks for part in work.get(host, ()) if part.kind == "build"]


def playing(directory, play: Any) -> None:
    async def run() -> None:
        async with api(directory) as (now, client):
            [uuid] = await asked_for(client, 1)
            # In the cell with three hosts.
            while True:
                await now.settle()
                source = (await now.instances())[uuid].host or ""
                if HOSTS[source] == "cell1":
                    break
                [uuid] = await asked_for(client, 1)
            await play(Cloud(now, client, uuid, source))

    asyncio.run(run())


def test_a_guest_goes_to_a_host_of_the_same_folder_though_others_have_room(tmp_path) -> None:
    async def play(cloud: Cloud) -> None:
        same, another = cloud.free
        await cloud.report({cloud.source: ONE, same: ONE, another: OTHER})
        found = await cloud.move("migrate", {})
        assert (found["state"], found["target_host"]) == ("preparing", same)
        assert await cloud.ordered(same) == [True]

    playing(tmp_path, play)


@pytest.mark.parametrize("store", [OTHER, YES, None])
def test_a_guest_goes_nowhere_if_no_host_has_its_folder(tmp_path, store: str | None) -> None:
    async def play(cloud: Cloud) -> None:
        await cloud.report({cloud.source: ONE} | dict.fromkeys(cloud.free, store))
        assert (await cloud.move("migrate", {}))["state"] == "returning"

    playing(tmp_path, play)


def test_a_guest_whose_disks_are_on_its_host_does_not_move(tmp_path) -> None:
    async def play(cloud: Cloud) -> None:
        await cloud.report({cloud.source: None})
        answer = await cloud.ask("migrate", {})
        text = f"the driver of host {cloud.source} does not keep the disks of guests that move"
        assert (answer.status_code, detail(answer)) == (409, text)

    playing(tmp_path, play)


@pytest.mark.parametrize(("store", "finds"), [(ONE, True), (None, False)])
def test_an_evacuated_guest_finds_its_disk_if_it_was_in_a_shared_folder(
    tmp_path, store: str | None, finds: bool
) -> None:
    async def play(cloud: Cloud) -> None:
        same, another = cloud.free
        await cloud.report({cloud.source: store, same: ONE, another: OTHER if finds else None})
        await (await cloud.now.cell_of(cloud.instance)).write(free_all_sessions())
        found = await cloud.move("evacuate", EVIDENCE)
        if finds:
            assert found["target_host"] == same
        assert await cloud.ordered(found["target_host"]) == [finds]

    playing(tmp_path, play)


class SharedHeldDriver(HeldDriver):
    """A driver whose disks are in a store that hosts share."""

    @property
    def disk_store(self) -> str | None:
        return ONE

    async def remove_disks(self, uuid: str) -> None:
        self.calls.append(f"remove disks {uuid}")


def on_hosts(directory, play: Any) -> None:
    async def run() -> None:
        async with hosts(directory) as there:
            there.a = SharedHeldDriver()
            await there.cell.add([instance("i", "a")])
            async with there.running():
                await there.reaches(ACTIVE)
                await play(there)

    asyncio.run(run())


def test_disks_are_removed_by_the_host_of_a_deleted_instance(tmp_path) -> None:
    async def play(there: Hosts) -> None:
        await there.cell.delete(["i"])
        await there.reaches("destroyed")
        assert there.a.calls[-2:] == ["destroy i", "remove disks i"]

    on_hosts(tmp_path, play)


def test_disks_stay_where_an_attempt_ends_and_the_instance_lives(tmp_path) -> None:
    async def play(there: Hosts) -> None:
        await there.cell.write(give_orders([DestroyOrder("i", 1, "a")], NOW))
        await until(lambda: "destroy i" in there.a.calls)
        await there.cell.add([instance("j", "a")])
        await there.reaches(ACTIVE, "j")
        assert not any(call.startswith("remove disks") for call in there.a.calls)

    on_hosts(tmp_path, play)


def test_disks_are_removed_by_a_host_that_is_back_after_the_deletion_went_on_without_it(tmp_path) -> None:
    async def run() -> None:
        async with hosts(tmp_path) as there:
            there.a = SharedHeldDriver()
            await there.cell.add([instance("i", "a")])
            async with there.running():
                await there.reaches(ACTIVE)
            await there.cell.delete(["i"])
            await there.cell.write(end_deletions((AttemptKey("i", 1),), NOW))
            await there.cell.forget(["i"])
            assert await there.state() is None
            async with there.running():
                await until(lambda: "remove disks i" in there.a.calls)

    asyncio.run(run())
