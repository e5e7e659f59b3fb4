"""Lists of instances by what is known of them, while cells are down, and an operator's word."""

import asyncio

from roost.conductor.agent_endpoint.sessions import free_all_sessions
from roost.model.instance import AttemptKey
from roost.state.cell_database.building import ConfirmAttempt
from roost.state.cell_database.guests import GuestsReported
from roost.storage import DatabaseUnavailable
from support.conductor_api import ADMIN, OPERATOR, TOKEN, api, asked_for, detail, listed


async def two_in_each_cell(now, client) -> dict[str, list[str]]:
    """Instances by cell."""
    await asked_for(client, 10)
    await now.arrive()
    await now.build()
    by_cell: dict[str, list[str]] = {"cell1": [], "cell2": []}
    for name, uuids in by_cell.items():
        uuids += sorted(each.uuid for each in await now.cells[name].every())
    assert all(by_cell.values())
    return by_cell


def test_filters_find_what_they_name(tmp_path) -> None:
    async def run() -> None:
        async with api(tmp_path) as (now, client):
            by_cell = await two_in_each_cell(now, client)
            every = sorted([*by_cell["cell1"], *by_cell["cell2"]])
            assert await listed(client, state="active") == every
            assert await listed(client, state="error") == []
            assert await listed(client, OPERATOR, cell="cell2") == by_cell["cell2"]
            one = (await now.instances())[every[0]]
            on_host = sorted(each.uuid for each in (await now.instances()).values() if each.host == one.host)
            assert await listed(client, OPERATOR, host=one.host, state="active") == on_host
            shown = (await client.get(f"/v1/instances/{one.uuid}", headers=OPERATOR)).json()
            assert shown["claim"] == {one.node: {"VCPU": 1}}
            assert (shown["run"], shown["node"]) == (one.run, one.node)
            assert await listed(client, changed_since=str(shown["changed_at"])) == every
            assert await listed(client, changed_since=str(shown["changed_at"] + 1)) == []
            found, query = [], {"state": "active", "limit": "3"}
            while True:
                page = (await client.get("/v1/instances", params=query)).json()
                found += [each["uuid"] for each in page["instances"]]
                if page["next"] is None:
                    break
                query["marker"] = page["next"]
            assert found == every
            refused = await client.get("/v1/instances", params={"state": "happy"})
            assert (refused.status_code, "happy" in detail(refused)) == (400, True)

    asyncio.run(run())


def test_cell_that_is_down_is_named_and_hides_its_own_instances_alone(tmp_path, monkeypatch) -> None:
    async def run() -> None:
        async with api(tmp_path) as (now, client):
            by_cell = await two_in_each_cell(now, client)

            async def down(work, **_):
                raise DatabaseUnavailable("it is stopped")

            monkeypatch.setattr(now.cells["cell2"], "read", down)
            monkeypatch.setattr(now.cells["cell2"].database, "read", down)
            page = (await client.get("/v1/instances", headers=OPERATOR)).json()
            assert page["cells_down"] == ["cell2"]
            states = {each["uuid"]: each["state"] for each in page["instances"]}
            assert {uuid for uuid, state in states.items() if state == "unknown"} == set(by_cell["cell2"])
            assert {uuid for uuid, state in states.items() if state == "active"} == set(by_cell["cell1"])
            assert await listed(client, state="unknown") == by_cell["cell2"]
            query = {"state": "active"}
            active = (await client.get("/v1/instances", params=query, headers=OPERATOR)).json()
            assert [each["uuid"] for each in active["instances"]] == by_cell["cell1"]
            assert active["cells_down"] == ["cell2"]
            await now.super.watch.look()
            hosts = (await client.get("/v1/hosts", headers=ADMIN)).json()
            assert hosts["cells_down"] == ["cell2"]
            assert (await client.get("/v1/services", headers=ADMIN)).json()["cells_down"] == ["cell2"]
            cells = (await client.get("/v1/cells", headers=ADMIN)).json()["cells"]
            assert {each["name"]: each["state"] for each in cells} == {
                "cell0": "up", "cell1": "no_conductor", "cell2": "down"
            }  # fmt: skip

    asyncio.run(run())


def test_operator_gives_up_what_started_on_a_host_that_is_gone(tmp_path) -> None:
    async def run() -> None:
        async with api(tmp_path) as (now, client):
            [one] = await asked_for(client, 1)
            await now.arrive()
            before = (await now.instances())[one]
            cell = await now.cell_of(one)
            path, word = f"/v1/instances/{one}/give-up", {"evidence": "the rack burned"}
            assert (await client.post(path, json=word, headers=TOKEN)).status_code == 403
            early = await client.post(path, json=word, headers=ADMIN)
            assert (early.status_code, "is assigned" in detail(early)) == (409, True)
            await cell.write(ConfirmAttempt(AttemptKey(one, 1), before.host, 1001.0))
            await now.super.watch.look()
            up = await client.post(path, json=word, headers=ADMIN)
            assert (up.status_code, "signs of life" in detail(up)) == (409, True)
            await cell.write(free_all_sessions())
            await now.super.watch.look()
            assert (await client.post(path, json={"evidence": ""}, headers=ADMIN)).status_code == 400
            assert (await client.post(path, json=word, headers=ADMIN)).status_code == 202
            await now.settle()
            shown = (await client.get(f"/v1/instances/{one}", headers=OPERATOR)).json()
            assert (shown["state"], shown["attempt"]) == ("active", 2)
            assert shown["host"] != before.host
            [attempt] = shown["attempts"]
            assert (attempt["host"], attempt["code"]) == (before.host, "HostGone")
            assert "the rack burned" in attempt["reason"] and "admin says" in attempt["reason"]
            # Should the host come back, it destroys the guest before it gets others.
            assert (await client.get(f"/v1/hosts/{before.host}", headers=ADMIN)).json()["orders"] == 1

    asyncio.run(run())


def test_operator_gives_up_a_lost_guest(tmp_path) -> None:
    async def run() -> None:
        async with api(tmp_path) as (now, client):
            [one] = await asked_for(client, 1)
            await now.arrive()
            await now.build()
            there = (await now.instances())[one]
            await (await now.cell_of(one)).write(GuestsReported(there.host, {}, 1002.0))
            word = {"evidence": "its disk is gone"}
            given = await client.post(f"/v1/instances/{one}/give-up", json=word, headers=ADMIN)
            assert given.status_code == 202, given.text
            await now.step()
            shown = (await client.get(f"/v1/instances/{one}", headers=OPERATOR)).json()
            assert (shown["state"], "its disk is gone" in shown["reason"]) == ("error", True)
            assert await now.used() == 0
            assert (await client.delete(f"/v1/instances/{one}")).status_code == 202

    asyncio.run(run())
