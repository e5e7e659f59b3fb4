"""Hosts over HTTP: added, disabled, moved and removed while all runs; what is refused changes nothing."""

import asyncio

from roost.conductor.agent_endpoint.sessions import OpenSession, free_all_sessions
from roost.model.instance import DestroyOrder
from roost.model.node import NodeReport
from roost.model.service_version import SERVICE_VERSION
from roost.model.token import token_digest
from roost.placement.commands.allocations import ConsumerWrite
from roost.state.api_database.host_mappings import cells_of_hosts
from roost.state.cell_database.host_admission import read_host_tokens, use_token
from roost.state.cell_database.host_work import give_orders
from roost.state.cell_database.hosts import note_providers
from roost.storage import DatabaseUnavailable
from support.conductor_api import ADMIN, TOKEN, api, asked_for, detail

CELL1 = {"cell": "cell1", "hosts": ["new-1", "new-2"]}


async def tokens_of(cell) -> set[str]:
    return {each.host for each in (await cell.read(read_host_tokens())).values()}


async def stop_agents(now) -> None:
    """All agents end, and the conductor sees it."""
    for cell in now.cells.values():
        await cell.write(free_all_sessions())
    await now.super.watch.look()


def test_hosts_are_added_and_their_tokens_are_shown_once(tmp_path) -> None:
    async def run() -> None:
        async with api(tmp_path) as (now, client):
            assert (await client.post("/v1/hosts", json=CELL1)).status_code == 403
            added = await client.post("/v1/hosts", json=CELL1, headers=ADMIN)
            assert added.status_code == 201, added.text
            tokens = {each["host"]: each["token"] for each in added.json()["hosts"]}
            kept = await now.cells["cell1"].read(read_host_tokens())
            assert {kept[token_digest(token)].host for token in tokens.values()} == {"new-1", "new-2"}
            shown = (await client.get("/v1/hosts/new-1", headers=ADMIN)).json()
            assert (shown["cell"], shown["enabled"], shown["state"], shown["nodes"]) == (
                "cell1", True, "unknown", 0
            )  # fmt: skip
            await now.super.watch.look()
            assert (await client.get("/v1/hosts/new-1", headers=ADMIN)).json()["state"] == "down"
            renewed = (await client.post("/v1/hosts/new-1/token", headers=ADMIN)).json()
            assert renewed["token"] not in tokens.values()

    asyncio.run(run())


def test_new_token_ends_the_others_at_once_if_one_may_be_known_to_others(tmp_path) -> None:
    async def run() -> None:
        async with api(tmp_path) as (now, client):
            await client.post("/v1/hosts", json=CELL1, headers=ADMIN)
            cell = now.cells["cell1"]

            async def digests() -> set[str]:
                return {
                    each.digest
                    for each in (await cell.read(read_host_tokens())).values()
                    if each.host == "new-1"
                }

            [first] = await digests()
            await cell.write(use_token(first))
            path = "/v1/hosts/new-1/token"
            second = (await client.post(path, headers=ADMIN)).json()["token"]
            assert await digests() == {first, token_digest(second)}
            answer = await client.post(path, params={"revoke": "true"}, headers=ADMIN)
            assert await digests() == {token_digest(answer.json()["token"])}
            assert await tokens_of(cell) == {"new-1", "new-2"}

    asyncio.run(run())


def test_one_name_is_in_one_cell(tmp_path) -> None:
    async def run() -> None:
        async with api(tmp_path) as (now, client):
            await client.post("/v1/hosts", json=CELL1, headers=ADMIN)
            for body, words in (
                ({"cell": "cell2", "hosts": ["other", "new-2"]}, "'new-2' is in cell cell1"),
                ({"cell": "cell1", "hosts": ["other", "new-1"]}, "'new-1' is in cell cell1 already"),
                # Nobody added it, but its agent reports it there.
                ({"cell": "cell2", "hosts": ["other", "a"]}, "'a' is in cell cell1"),
            ):
                refused = await client.post("/v1/hosts", json=body, headers=ADMIN)
                assert (refused.status_code, words in detail(refused)) == (409, True), refused.text
            assert (await client.get("/v1/hosts/other", headers=ADMIN)).status_code == 404
            assert await now.requests.database.read(cells_of_hosts(("other", "new-2"))) == {"new-2": "cell1"}
            assert "other" not in await tokens_of(now.cells["cell1"]) | await tokens_of(now.cells["cell2"])
            for body, status in (
                ({"cell": "cell9", "hosts": ["x"]}, 404),
                ({"cell": "cell0", "hosts": ["x"]}, 409),
                ({"cell": "cell1", "hosts": ["x", "x"]}, 400),
                *(({"cell": "cell1", "hosts": [name]}, 400) for name in ("a/b", ".", "..", "c\nd", "\u200b")),
                ({"cell": "cell1", "hosts": []}, 400),
            ):
                assert (await client.post("/v1/hosts", json=body, headers=ADMIN)).status_code == status

    asyncio.run(run())


def test_pages_of_hosts_have_each_once(tmp_path) -> None:
    async def run() -> None:
        async with api(tmp_path) as (_, client):
            await client.post("/v1/hosts", json=CELL1, headers=ADMIN)
            found, marker = [], None
            while True:
                query = {"limit": 2, **({"marker": marker} if marker else {})}
                page = (await client.get("/v1/hosts", params=query, headers=ADMIN)).json()
                found += [(each["host"], each["cell"]) for each in page["hosts"]]
                marker = page["next"]
                if marker is None:
                    break
            in_cell1 = [(host, "cell1") for host in ("a", "b", "c")]
            new = [(host, "cell1") for host in ("new-1", "new-2")]
            assert found == [*in_cell1, ("d", "cell2"), ("e", "cell2"), *new]
            one = (await client.get("/v1/hosts", params={"cell": "cell2"}, headers=ADMIN)).json()
            assert [each["host"] for each in one["hosts"]] == ["d", "e"]

    asyncio.run(run())


def test_disabled_host_gets_no_new_instances(tmp_path) -> None:
    async def run() -> None:
        async with api(tmp_path) as (now, client):
            for host in ("a", "b", "c", "d"):
                body = {"enabled": False, "reason": "fan 3"}
                changed = await client.put(f"/v1/hosts/{host}", json=body, headers=ADMIN)
                assert (changed.json()["enabled"], changed.json()["reason"]) == (False, "fan 3")
            await now.feed.refresh()
            await asked_for(client, 3)
            await now.arrive()
            assert {each.host for each in (await now.instances()).values()} == {"e"}
            # The agent, which knows nothing of it, reports again.
            await now.cells["cell1"].heartbeat([NodeReport(host="a", node="node-a", cell="cell1")])
            await now.feed.refresh()
            await client.put("/v1/hosts/e", json={"enabled": False}, headers=ADMIN)
            await client.put("/v1/hosts/b", json={"enabled": True}, headers=ADMIN)
            await now.feed.refresh()
            await asked_for(client, 1)
            await now.arrive()
            assert {each.host for each in (await now.instances()).values()} == {"e", "b"}

    asyncio.run(run())


def test_disabled_cell_or_node_gets_no_new_instances(tmp_path) -> None:
    async def run() -> None:
        async with api(tmp_path) as (now, client):
            word = {"enabled": False, "reason": "new switches"}
            changed = await client.put("/v1/cells/cell1", json=word, headers=ADMIN)
            assert changed.status_code == 200, changed.text
            assert (changed.json()["enabled"], changed.json()["reason"]) == (False, "new switches")
            [listed] = [
                each
                for each in (await client.get("/v1/cells", headers=ADMIN)).json()["cells"]
                if each["enabled"] is False
            ]
            assert listed["name"] == "cell1"
            # A host that comes now, and one of which an operator says more.
            await now.cells["cell1"].heartbeat([NodeReport(host="late", node="node-late", cell="cell1")])
            await client.put("/v1/hosts/b", json={"enabled": True}, headers=ADMIN)
            node = "/v1/hosts/d/nodes/node-d"
            changed = await client.put(node, json={"enabled": False, "reason": "fan"}, headers=ADMIN)
            assert (changed.json()["enabled"], changed.json()["disabled"]) == (False, True)
            await now.feed.refresh()
            await asked_for(client, 2)
            await now.arrive()
            assert {each.host for each in (await now.instances()).values()} == {"e"}
            # The agent of a disabled node reports it again: the word stays.
            await now.cells["cell2"].heartbeat([NodeReport(host="d", node="node-d", cell="cell2")])
            [shown] = (await client.get("/v1/hosts/d/nodes", headers=ADMIN)).json()["nodes"]
            assert (shown["disabled"], shown["reason"]) == (True, "fan")
            await client.put("/v1/cells/cell1", json={"enabled": True}, headers=ADMIN)
            await client.put("/v1/cells/cell2", json={"enabled": False}, headers=ADMIN)
            await client.put("/v1/hosts/a", json={"enabled": False}, headers=ADMIN)
            await client.put("/v1/hosts/c", json={"enabled": False}, headers=ADMIN)
            await now.feed.refresh()
            await asked_for(client, 1)
            await now.arrive()
            assert {each.host for each in (await now.instances()).values()} == {"e", "b"}
            await client.put("/v1/cells/cell2", json={"enabled": True}, headers=ADMIN)
            changed = await client.put(node, json={"enabled": True}, headers=ADMIN)
            assert (changed.json()["enabled"], changed.json()["reason"]) == (True, None)
            await now.feed.refresh()
            await client.put("/v1/hosts/e", json={"enabled": False}, headers=ADMIN)
            await client.put("/v1/cells/cell1", json={"enabled": False}, headers=ADMIN)
            await now.feed.refresh()
            await asked_for(client, 1)
            await now.arrive()
            assert {each.host for each in (await now.instances()).values()} == {"e", "b", "d"}

    asyncio.run(run())


def test_what_is_not_there_is_not_disabled(tmp_path) -> None:
    async def run() -> None:
        async with api(tmp_path) as (_, client):
            word = {"enabled": False}
            for path, status in (
                ("/v1/cells/cell9", 404),
                ("/v1/cells/cell0", 409),
                ("/v1/hosts/a/nodes/node-d", 404),
                ("/v1/hosts/nobody/nodes/node-d", 404),
            ):
                refused = await client.put(path, json=word, headers=ADMIN)
                assert refused.status_code == status, refused.text
                assert (await client.put(path, json=word, headers=TOKEN)).status_code == 403
            assert (await client.put("/v1/cells/cell1", json={}, headers=ADMIN)).status_code == 400

    asyncio.run(run())


def test_word_about_a_node_ends_with_it(tmp_path) -> None:
    async def run() -> None:
        async with api(tmp_path) as (now, client):
            await client.put("/v1/hosts/d/nodes/node-d", json={"enabled": False}, headers=ADMIN)
            await stop_agents(now)
            removed = await client.delete("/v1/hosts/d", headers=ADMIN)
            assert removed.status_code == 200, removed.text
            await now.cells["cell2"].heartbeat([NodeReport(host="d", node="node-d", cell="cell2")])
            [shown] = (await client.get("/v1/hosts/d/nodes", headers=ADMIN)).json()["nodes"]
            assert (shown["enabled"], shown["disabled"]) == (True, False)

    asyncio.run(run())


def test_hosts_are_chosen_by_state_and_by_what_operators_say(tmp_path) -> None:
    async def run() -> None:
        async with api(tmp_path) as (now, client):
            await client.put("/v1/hosts/b", json={"enabled": False}, headers=ADMIN)
            await stop_agents(now)
            for host in ("a", "b", "d"):
                cell = now.cells["cell2" if host == "d" else "cell1"]
                await cell.write(OpenSession(host=host, nonce=host, previous=(), service_version=3, at=1.0))
            await now.super.watch.look()

            async def names(**query) -> list[str]:
                found, marker = [], None
                while True:
                    asked = {**query, **({"marker": marker} if marker else {})}
                    answer = await client.get("/v1/hosts", params=asked, headers=ADMIN)
                    assert answer.status_code == 200, answer.text
                    page = answer.json()
                    assert len(page["hosts"]) <= int(query.get("limit", 100))
                    found += [each["host"] for each in page["hosts"]]
                    marker = page["next"]
                    if marker is None:
                        return found

            for limit in (1, 2, 100):
                assert await names(state="up", limit=limit) == ["a", "b", "d"]
                assert await names(state="down", limit=limit) == ["c", "e"]
                assert await names(state="up,down", limit=limit) == ["a", "b", "c", "d", "e"]
                assert await names(state="unknown", limit=limit) == []
                assert await names(state="up", enabled="true", limit=limit) == ["a", "d"]
                assert await names(enabled="false", limit=limit) == ["b"]
                assert await names(state="up", cell="cell2", limit=limit) == ["d"]
            for wrong in ({"state": "lost"}, {"state": "up,"}, {"state": ""}, {"enabled": "perhaps"}):
                refused = await client.get("/v1/hosts", params=wrong, headers=ADMIN)
                assert refused.status_code == 400, wrong

    asyncio.run(run())


def test_removed_host_leaves_nothing_of_its_own_and_all_of_others(tmp_path) -> None:
    async def run() -> None:
        async with api(tmp_path) as (now, client):
            for uuid, name, parent in (
                ("numa", "a_numa0", "node-a"),
                ("pf", "a_pf", "numa"),
                ("agent", "a:OVS agent", "node-a"),
                ("bridge", "a:br0", "agent"),
            ):
                await now.placement.ensure_provider(uuid, name, parent)
            await now.cells["cell1"].write(note_providers("node-a", ("numa", "pf")))
            [one] = await asked_for(client, 1)
            await now.arrive()
            host = (await now.instances())[one].host
            early = await client.delete(f"/v1/hosts/{host}", headers=ADMIN)
            assert (early.status_code, "not seen" in detail(early)) == (409, True)
            await stop_agents(now)
            refused = await client.delete(f"/v1/hosts/{host}", headers=ADMIN)
            assert (refused.status_code, "1 assigned" in detail(refused)) == (409, True)
            assert (await client.get(f"/v1/hosts/{host}", headers=ADMIN)).json()["enabled"] is True
            gone = "a" if host != "a" else "b"
            await client.put(f"/v1/hosts/{gone}", json={"enabled": True}, headers=ADMIN)
            removed = await client.delete(f"/v1/hosts/{gone}", headers=ADMIN)
            assert removed.status_code == 200, removed.text
            kept = {each["uuid"] for each in removed.json()["kept_providers"]}
            assert kept == ({"node-a", "agent", "bridge"} if gone == "a" else set())
            left = {each.uuid for each in await now.placement.tree(f"node-{gone}")}
            assert left == kept
            assert (await client.get(f"/v1/hosts/{gone}", headers=ADMIN)).status_code == 404
            await now.feed.refresh()
            assert f"node-{gone}" not in now.scheduler.table.nodes_of_cell("cell1")
            added = await client.post("/v1/hosts", json={"cell": "cell2", "hosts": [gone]}, headers=ADMIN)
            assert added.status_code == 201

    asyncio.run(run())


def test_claim_of_others_keeps_a_host(tmp_path) -> None:
    async def run() -> None:
        async with api(tmp_path) as (now, client):
            write = ConsumerWrite(
                consumer="foreign", allocations={"node-d": {"VCPU": 1}}, project_id="p", user_id="u"
            )
            await now.placement.write_allocations([write])
            await stop_agents(now)
            refused = await client.delete("/v1/hosts/d", headers=ADMIN)
            assert (refused.status_code, "node-d" in detail(refused)) == (409, True)
            assert (await client.get("/v1/hosts/d", headers=ADMIN)).json()["enabled"] is False
            assert await now.placement.provider("node-d") is not None

    asyncio.run(run())


def test_host_whose_agent_is_up_is_neither_removed_nor_moved(tmp_path) -> None:
    async def run() -> None:
        async with api(tmp_path) as (now, client):
            await client.post("/v1/hosts", json=CELL1, headers=ADMIN)
            opening = OpenSession(host="new-1", nonce="n", previous=(), service_version=3, at=1.0)
            await now.cells["cell1"].write(opening)
            await now.super.watch.look()
            shown = (await client.get("/v1/hosts/new-1", headers=ADMIN)).json()
            assert (shown["state"], shown["service_version"]) == ("up", 3)
            for refused in (
                await client.delete("/v1/hosts/new-1", headers=ADMIN),
                await client.post("/v1/hosts/new-1/move", json={"cell": "cell2"}, headers=ADMIN),
            ):
                assert (refused.status_code, "signs of life" in detail(refused)) == (409, True)
            moved = await client.post("/v1/hosts/new-2/move", json={"cell": "cell2"}, headers=ADMIN)
            assert (moved.status_code, moved.json()["cell"]) == (200, "cell2"), moved.text
            assert await tokens_of(now.cells["cell2"]) == {"new-2"}
            assert await tokens_of(now.cells["cell1"]) == {"new-1"}
            listed = (await client.get("/v1/services", params={"kind": "host"}, headers=ADMIN)).json()
            seen = {(each["host"], each["cell"], each["state"]) for each in listed["services"]}
            assert ("new-1", "cell1", "up") in seen
            ours = (await client.get("/v1/services", headers=ADMIN)).json()["services"]
            assert [
                (each["kind"], each["cell"], each["state"], each["service_version"]) for each in ours
            ] == [("conductor", None, "up", SERVICE_VERSION)]
            assert (await client.get("/v1/services", headers=TOKEN)).status_code == 403

    asyncio.run(run())


def test_live_host_that_owes_a_destruction_is_up_for_operators(tmp_path) -> None:
    """No new instances come to it, but what runs there runs: neither it nor its instances are given up."""

    async def run() -> None:
        async with api(tmp_path) as (now, client):
            [uuid] = await asked_for(client, 1)
            await now.arrive()
            await now.build()
            host = (await now.instances())[uuid].host
            cell = now.cells["cell1"] if host in ("a", "b", "c") else now.cells["cell2"]
            owed = [DestroyOrder("former", 1, host)]
            await cell.database.write(give_orders(owed, 1.0))
            await now.super.watch.look()
            assert (await client.get(f"/v1/hosts/{host}", headers=ADMIN)).json()["state"] == "up"
            word = {"force": "true", "evidence": "burned"}
            refused = await client.delete(f"/v1/hosts/{host}", params=word, headers=ADMIN)
            assert (refused.status_code, "signs of life" in detail(refused)) == (409, True)
            assert (await now.instances())[uuid].state == "active"

    asyncio.run(run())


def test_host_that_burned_is_removed_by_an_operators_word(tmp_path) -> None:
    async def run() -> None:
        async with api(tmp_path) as (now, client):
            uuids = await asked_for(client, 5)
            await now.arrive()
            await now.build()
            host = (await now.instances())[uuids[0]].host
            there = {each.uuid for each in (await now.instances()).values() if each.host == host}
            await stop_agents(now)
            path = f"/v1/hosts/{host}"
            assert (await client.delete(path, params={"force": True}, headers=ADMIN)).status_code == 400
            word = {"force": "true", "evidence": "burned"}
            ending = await client.delete(path, params=word, headers=ADMIN)
            assert (ending.status_code, "repeat" in detail(ending)) == (409, True)
            await now.step()
            removed = await client.delete(path, params=word, headers=ADMIN)
            assert removed.status_code == 200, removed.text
            found = await now.instances()
            assert {uuid for uuid, each in found.items() if each.state == "error"} == there
            assert all("burned" in (found[uuid].reason or "") for uuid in there)
            assert "admin says" in (found[uuids[0]].reason or "")
            assert await now.placement.provider(f"node-{host}") is None
            for uuid in there:
                assert await now.placement.allocations_of(uuid) is None

    asyncio.run(run())


def test_refusal_for_a_cell_that_does_not_answer_names_it(tmp_path, monkeypatch) -> None:
    async def run() -> None:
        async with api(tmp_path) as (now, client):

            async def down(work):
                raise DatabaseUnavailable("it is stopped")

            monkeypatch.setattr(now.cells["cell2"].database, "write", down)
            body = {"cell": "cell2", "hosts": ["new"]}
            refused = await client.post("/v1/hosts", json=body, headers=ADMIN)
            assert (refused.status_code, detail(refused)) == (
                503, "Cell cell2: The database cannot be reached or is busy; try again."
            )  # fmt: skip

    asyncio.run(run())
