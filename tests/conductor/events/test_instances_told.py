"""State changes of instances, from the cells' databases, among the events of ``/v1/events``."""

import asyncio
import base64
from collections.abc import Iterator
from typing import Any

import httpx
import msgspec
import pytest

from roost.conductor.events import reader
from roost.storage import Database, DatabaseUnavailable
from support.conducting import Conductors
from support.conductor_api import ADMIN, FLAVOR, OPERATOR, OTHER, READER, TOKEN, api, asked_for

EVENTS = "/v1/events"


def kinds(page: dict[str, Any], instance: str | None = None) -> list[str]:
    return [each["kind"] for each in page["events"] if instance in (None, each["instance"])]


async def page_of(client: httpx.AsyncClient, **query: Any) -> dict[str, Any]:
    answer = await client.get(EVENTS, params=query, headers=ADMIN)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def all_of(client: httpx.AsyncClient, **query: Any) -> list[dict[str, Any]]:
    """The events of all pages."""
    found: list[dict[str, Any]] = []
    for _ in range(200):
        page = await page_of(client, **query)
        found += page["events"]
        query["marker"] = page["next"]
        if not page["more"]:
            return found
    raise AssertionError("the pages do not end")


class Away:
    """Cells whose databases do not answer."""

    def __init__(self, now: Conductors, monkeypatch: pytest.MonkeyPatch) -> None:
        self.names: set[str] = set()
        files = {str(cell.database.url): name for name, cell in now.cells.items()}
        for name in ("read", "write"):
            monkeypatch.setattr(Database, name, self._failing(getattr(Database, name), files))

    def _failing(self, do: Any, files: dict[str, str]) -> Any:
        async def perhaps(database: Database, *works: Any, **named: Any) -> Any:
            if files.get(str(database.url)) in self.names:
                raise DatabaseUnavailable("away")
            return await do(database, *works, **named)

        return perhaps


@pytest.fixture(params=["small", "whole"])
def limit(request: pytest.FixtureRequest) -> Iterator[int]:
    yield {"small": 2, "whole": 1000}[request.param]


def test_the_life_of_an_instance_is_told_with_who_ended_it(tmp_path, limit: int) -> None:
    async def run() -> None:
        async with api(tmp_path) as (now, client):
            [uuid] = await asked_for(client, 1)
            await now.arrive()
            await now.build("a", "no IP")
            await now.settle()
            assert (await client.delete(f"/v1/instances/{uuid}", headers=OPERATOR)).is_success
            await now.settle()
            await now.settle()
            found = await all_of(client, instance=uuid, limit=limit)
            told = [each["kind"].removeprefix("instance_") for each in found]
            begin = ["assigned", "failed", "assigned"] if len(told) > 5 else ["assigned"]
            assert told == [*begin, "active", "deleting", "destroyed", "gone"]
            assert {each["cell"] for each in found} <= {"cell1", "cell2"}
            assert all(each["host"] and each["node"] for each in found)
            [deleting] = [each for each in found if each["kind"] == "instance_deleting"]
            assert deleting["by"]["user_id"] == "olga"
            only = await all_of(client, kind="instance_active", limit=limit)
            assert [(each["instance"], each["by"]) for each in only] == [(uuid, None)]
            [event] = only
            assert (
                await all_of(client, kind="instance_active", host=event["host"], cell=event["cell"]) == only
            )
            assert await all_of(client, kind="instance_active", host="nobody") == []

    asyncio.run(run())


def test_a_failed_build_and_an_instance_that_nobody_can_take(tmp_path) -> None:
    async def run() -> None:
        async with api(tmp_path) as (now, client):
            [uuid] = await asked_for(client, 1)
            await now.arrive()
            await now.build("abcde", "no IP, password=hunter2")
            await now.settle()
            found = (await page_of(client, instance=uuid))["events"]
            [failed, *_] = [each for each in found if each["kind"] == "instance_failed"]
            assert "no IP" in failed["detail"]
            assert "hunter2" not in repr(found)
            again = [each["detail"] for each in found if each["kind"] == "instance_assigned"]
            assert again == [None, "attempt 2"]
            huge = await client.post("/v1/instances", json={"flavor": {**FLAVOR, "vcpus": 100}})
            [buried] = huge.json()["instances"]
            await now.settle()
            [error] = (await page_of(client, instance=buried))["events"]
            assert (error["kind"], error["cell"]) == ("instance_error", "cell0")

    asyncio.run(run())


def test_pages_have_every_event_once_in_order_of_time(tmp_path, limit: int, monkeypatch) -> None:
    monkeypatch.setattr(reader, "LEAST_OF_A_LOG", 1)

    async def run() -> None:
        async with api(tmp_path) as (now, client):
            uuids = []
            for number in range(3):
                uuids += await asked_for(client, 2)
                await now.settle()
                body = {"enabled": False, "reason": str(number)}
                await client.put("/v1/hosts/a", json=body, headers=ADMIN)
            found = await all_of(client, limit=limit)
            changes = [(each["kind"], each["instance"]) for each in found if each["instance"]]
            assert sorted(changes) == sorted(
                (kind, uuid) for uuid in uuids for kind in ("instance_assigned", "instance_active")
            )
            said = [each["detail"] for each in found if each["kind"] == "host_disabled"]
            assert said == ["0", "1", "2"]
            assert {each["cell"] for each in found} == {"cell1", "cell2"}

    asyncio.run(run())


def test_a_cell_that_is_away_stops_no_events_and_is_told_when_it_is_back(
    tmp_path, monkeypatch, limit
) -> None:
    async def run() -> None:
        async with api(tmp_path) as (now, client):
            away = Away(now, monkeypatch)
            await asked_for(client, 6)
            await now.settle()
            every = await all_of(client, limit=1000)
            away.names.add("cell2")
            first = await page_of(client, limit=limit)
            assert first["cells_down"] == ["cell2"]
            early = first["events"] + await all_of(client, limit=limit, marker=first["next"])
            assert {each["cell"] for each in early} == {"cell1"}
            await client.put("/v1/hosts/a", json={"enabled": False}, headers=ADMIN)
            page = await page_of(client, limit=limit, marker=first["next"])
            assert page["cells_down"] == ["cell2"]
            away.names.clear()
            seen, query = list(first["events"]), {"limit": limit, "marker": first["next"]}
            seen += await all_of(client, **query)
            key = msgspec.json.Encoder(order="sorted").encode
            told = [each for each in seen if each["kind"] != "host_disabled"]
            assert sorted(map(key, told)) == sorted(map(key, every)), "each once"
            for cell in ("cell1", "cell2"):
                mine = [each for each in told if each["cell"] == cell]
                assert mine == [each for each in every if each["cell"] == cell], "in its order"

    asyncio.run(run())


def test_a_cell_that_hangs_is_not_waited_for_at_each_page(tmp_path, monkeypatch) -> None:
    asked: list[str] = []

    async def run() -> None:
        async with api(tmp_path) as (now, client):
            away = Away(now, monkeypatch)
            away.names.add("cell1")
            await now.super.watch.look()
            ask = reader.ask_cell

            async def counted(cell: Any, work: Any) -> Any:
                asked.append(cell.name)
                return await ask(cell, work)

            monkeypatch.setattr(reader, "ask_cell", counted)
            page = await page_of(client)
            assert page["cells_down"] == ["cell1"]
            assert sorted(asked) == ["cell0", "cell2"]

    asyncio.run(run())


def test_a_marker_of_an_earlier_version_goes_on_with_what_instances_did_later(tmp_path) -> None:
    async def run() -> None:
        async with api(tmp_path) as (now, client):
            await client.put("/v1/hosts/a", json={"enabled": False}, headers=ADMIN)
            await asked_for(client, 1)
            await now.settle()
            old = base64.urlsafe_b64encode(b'{"api":1}').decode().rstrip("=")
            page = await page_of(client, marker=old)
            told = [each for each in kinds(page) if each.startswith("instance_")]
            assert told == ["instance_assigned", "instance_active"]
            assert (await page_of(client, marker=page["next"]))["events"] == []
            [uuid] = await asked_for(client, 1)
            await now.settle()
            assert set(kinds(await page_of(client, marker=page["next"]), uuid)) == {
                "instance_assigned",
                "instance_active",
            }

    asyncio.run(run())


def test_events_of_kinds_of_the_api_database_ask_no_cell(tmp_path, monkeypatch) -> None:
    async def run() -> None:
        async with api(tmp_path) as (now, client):
            away = Away(now, monkeypatch)
            await client.put("/v1/hosts/a", json={"enabled": False}, headers=ADMIN)
            away.names.update(now.cells)
            page = await page_of(client, kind="host_disabled")
            assert (kinds(page), page["cells_down"]) == (["host_disabled"], [])
            assert (await page_of(client, cell="cell1"))["cells_down"] == ["cell1"]

    asyncio.run(run())


@pytest.mark.parametrize("role", [TOKEN, READER, OTHER])
def test_no_project_reads_what_its_instances_did_on_which_host(tmp_path, role: dict[str, str]) -> None:
    async def run() -> None:
        async with api(tmp_path) as (now, client):
            [uuid] = await asked_for(client, 1)
            await now.settle()
            answer = await client.get(EVENTS, params={"instance": uuid}, headers=role)
            assert answer.status_code == 403
            assert "cell" not in answer.text

    asyncio.run(run())
