"""Host aggregates over HTTP: made, changed and deleted by Nova's rules, and what is wrong is said."""

import asyncio
from typing import Any

import pytest

from roost.model.node import NodeReport
from roost.state.api_database import open_cells
from roost.storage import DatabaseUnavailable
from support.conducting import request
from support.conductor_api import ADMIN, TOKEN, api, detail
from support.waiting import patience

ALL = "/v1/aggregates"
AZ1, AZ2 = {"availability_zone": "az1"}, {"availability_zone": "az2"}


async def made(client: Any, name: str, metadata: dict[str, str] | None = None, *members: str) -> str:
    """The path of a new aggregate with these members."""
    answer = await client.post(ALL, json={"name": name, "metadata": metadata or {}}, headers=ADMIN)
    assert answer.status_code == 201, answer.text
    path = f"{ALL}/{answer.json()['uuid']}"
    if members:
        answer = await client.post(f"{path}/members", json={"add": members}, headers=ADMIN)
        assert answer.status_code == 200, answer.text
    return path


def test_made_listed_changed_and_deleted(tmp_path) -> None:
    async def run() -> None:
        async with api(tmp_path) as (_, client):
            client.headers.update(ADMIN)
            path = await made(client, "rack one", AZ1, "a", "node-b")
            shown = (await client.get(path)).json()
            assert shown == {
                "uuid": path.removeprefix(f"{ALL}/"),
                "name": "rack one",
                "availability_zone": "az1",
                "metadata": AZ1,
                "generation": 2,
                "member_count": 2,
                "members": [
                    {"node": "node-a", "host": "a", "nodename": "a"},
                    {"node": "node-b", "host": "b", "nodename": "b"},
                ],
            }
            del shown["members"]
            second = await made(client, "ssd", {"ssd": "true"})
            listed = (await client.get(ALL)).json()
            assert len(listed["aggregates"]) == 2
            assert shown in listed["aggregates"]
            page = (await client.get(ALL, params={"limit": 1})).json()
            rest = (await client.get(ALL, params={"limit": 1, "marker": page["next"]})).json()
            assert page["aggregates"] + rest["aggregates"] == listed["aggregates"]
            assert rest["next"] is None
            assert (await client.get(ALL, params={"name": "rack one"})).json()["aggregates"] == [shown]

            body = {"name": "rack 1", "metadata": {"rack": "1"}, "generation": 2}
            replaced = (await client.put(path, json=body)).json()
            assert (replaced["name"], replaced["generation"]) == ("rack 1", 3)
            assert (replaced["availability_zone"], replaced["metadata"]) == (None, {"rack": "1"})
            stale = await client.put(path, json=body)
            assert (stale.status_code, "at generation 3, not 2" in detail(stale)) == (409, True)

            swapped = await client.post(f"{path}/members", json={"add": ["c", "a"], "remove": ["b", "d"]})
            assert [each["host"] for each in swapped.json()["members"]] == ["a", "c"]
            assert (await client.delete(path)).status_code == 409
            await client.post(f"{path}/members", json={"remove": ["node-a", "node-c"]})
            assert (await client.delete(path)).status_code == 204
            for answer in (await client.get(path), await client.delete(path)):
                assert (answer.status_code, path.removeprefix(f"{ALL}/") in detail(answer)) == (404, True)
            assert (await client.delete(second)).status_code == 204

    asyncio.run(run())


BAD_BODIES: list[tuple[str, Any, str]] = [
    ("", {}, "name"),
    ("", {"name": ""}, "name"),
    ("", {"name": "x" * 256}, "name"),
    ("", {"name": " x"}, "' x' begins or ends with a space"),
    ("", {"name": "x\0"}, "'x\\x00' cannot be stored"),
    ("", {"name": "x", "metadata": {"k": 1}}, "metadata"),
    ("", {"name": "x", "metadata": {"": "v"}}, "metadata"),
    ("", {"name": "x", "metadata": {"k": "v" * 256}}, "metadata"),
    ("", {"name": "x", "metadata": {"k": "\0"}}, "cannot be stored"),
    ("", {"name": "x", "metadata": {"availability_zone": ""}}, "availability_zone ''"),
    ("", {"name": "x", "metadata": {"availability_zone": "az:host"}}, "'az:host'"),
    ("", {"name": "x", "zone": "az1"}, "zone"),
    ("/members", {"add": "a"}, "add"),
    ("/members", {"add": [""]}, "add"),
    ("/members", {"add": ["a", "nobody"]}, "'nobody'"),
    ("/members", {"remove": ["nobody"]}, "'nobody'"),
    ("/members", {"add": ["a"], "remove": ["node-a"]}, "node-a"),
    ("/members", {"add": ["twins"]}, "2 compute nodes are called 'twins'"),
]


def test_bad_request_names_what_is_wrong_and_changes_nothing(tmp_path) -> None:
    async def run() -> None:
        async with api(tmp_path) as (now, client):
            client.headers.update(ADMIN)
            twins = [
                NodeReport(host="twins", nodename=name, node=name, cell="cell1") for name in ("left", "right")
            ]
            await now.cells["cell1"].heartbeat(twins)
            path = await made(client, "old")
            before = (await client.get(ALL)).json()
            for suffix, body, words in BAD_BODIES:
                refused = await client.post(f"{path}{suffix}" if suffix else ALL, json=body)
                assert refused.status_code == 400, (body, refused.text)
                assert words in detail(refused), (body, detail(refused))
            for body, words in (({"name": "x"}, "metadata"), ({"name": "x", "metadata": {}}, "generation")):
                refused = await client.put(path, json=body)
                assert (refused.status_code, words in detail(refused)) == (400, True)
            taken = await client.post(ALL, json={"name": "old"})
            assert (taken.status_code, "'old'" in detail(taken)) == (409, True)
            assert (await client.get(ALL, params={"limit": 0})).status_code == 400
            assert (await client.post(f"{ALL}/x/members", json={"add": ["a"]})).status_code == 404
            assert (await client.get(ALL)).json() == before

    asyncio.run(run())


def test_aggregates_are_for_administrators(tmp_path) -> None:
    async def run() -> None:
        async with api(tmp_path) as (_, client):
            path = await made(client, "old")
            for method, at in (("GET", ALL), ("POST", ALL), ("GET", path), ("DELETE", path)):
                refused = await client.request(method, at, headers=TOKEN)
                assert refused.status_code == 403, (method, at)

    asyncio.run(run())


def test_node_is_in_one_zone_and_keeps_it_while_it_has_instances(tmp_path) -> None:
    async def run() -> None:
        async with api(tmp_path) as (now, client):
            client.headers.update(ADMIN)
            one, two = await made(client, "one", AZ1, "a", "b"), await made(client, "two", AZ2)
            twice = await client.post(f"{two}/members", json={"add": ["b"]})
            assert (twice.status_code, "node-b is in availability zone 'az1'" in detail(twice)) == (409, True)

            await now.run(request(1, requested_destination=None, force_hosts=("b",)))
            await now.settle()
            refusals = [
                await client.put(one, json={"name": "one", "metadata": AZ2, "generation": 2}),
                await client.put(one, json={"name": "one", "metadata": {}, "generation": 2}),
                await client.post(f"{one}/members", json={"remove": ["b"]}),
            ]
            for refused in refusals:
                assert refused.status_code == 409
                assert "zone of node node-b would change from 'az1' to" in detail(refused)
                assert "1 instances" in detail(refused)
            # What leaves the zone of the node as it is, is allowed.
            more = {"name": "uno", "metadata": {**AZ1, "ssd": "true"}, "generation": 2}
            assert (await client.put(one, json=more)).status_code == 200
            assert (await client.post(f"{one}/members", json={"remove": ["a"]})).status_code == 200
            same = await made(client, "same", AZ1, "b")
            assert (await client.post(f"{one}/members", json={"remove": ["b"]})).status_code == 200

            await now.super.delete(["i0"])
            await now.settle()
            assert (await client.post(f"{same}/members", json={"remove": ["b"]})).status_code == 200

    asyncio.run(run())


def test_member_whose_node_is_gone_is_shown_and_removed_by_its_uuid(tmp_path) -> None:
    async def run() -> None:
        async with api(tmp_path) as (now, client):
            client.headers.update(ADMIN)
            path = await made(client, "one", AZ1, "d")
            await now.cells["cell2"].remove_nodes(["node-d"])
            shown = (await client.get(path)).json()
            assert shown["members"] == [{"node": "node-d", "host": None, "nodename": None}]
            removed = await client.post(f"{path}/members", json={"remove": ["node-d"]})
            assert removed.json()["members"] == []

    asyncio.run(run())


@pytest.mark.parametrize("stands_still", [False, True])
def test_no_cell_that_is_away_holds_up_what_concerns_nodes_of_others(
    tmp_path, monkeypatch, stands_still: bool
) -> None:
    async def away(work: object) -> None:
        if stands_still:
            await asyncio.Event().wait()
        raise DatabaseUnavailable("away")

    async def run() -> None:
        async with api(tmp_path) as (now, client):
            client.headers.update(ADMIN)
            mixed = await made(client, "mixed", {}, "a", "d")
            monkeypatch.setattr(open_cells, "CELL_SECONDS", patience(0.1))  # the other cell answers
            monkeypatch.setattr(now.cells["cell2"], "read", away)
            isolated = {"name": "mixed", "metadata": {"filter_tenant_id": "p"}, "generation": 2}
            told = await client.put(mixed, json=isolated)
            assert told.status_code == 200, "what is changed is not answered with an error"
            assert [each["node"] for each in told.json()["members"]] == ["node-a", "node-d"]
            assert told.json()["members"][1]["host"] is None
            zone = await made(client, "zone", AZ1, "a", "node-b")
            assert (await client.post(f"{zone}/members", json={"remove": ["b"]})).status_code == 200
            if not stands_still:
                refused = await client.post(f"{zone}/members", json={"add": ["c", "e"]})
                assert refused.status_code == 503
                unknown = await client.put(mixed, json={**isolated, "metadata": AZ1, "generation": 3})
                assert unknown.status_code == 503, "nobody knows whether the node has instances"
            assert [each["node"] for each in (await client.get(zone)).json()["members"]] == ["node-a"]

    asyncio.run(run())
