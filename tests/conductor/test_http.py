"""Instances over HTTP: what is asked for is durable, what is wrong is said, and then nothing is changed."""

import asyncio
from typing import Any

from roost.storage import DatabaseUnavailable
from support.conductor_api import ADMIN, FLAVOR, OPERATOR, OTHER, TOKEN, api, asked_for, detail, hold


def test_asked_for_looked_at_and_deleted(tmp_path) -> None:
    async def run() -> None:
        async with api(tmp_path) as (now, client):
            asked = await client.post("/v1/instances", json={"flavor": FLAVOR, "count": 3})
            assert asked.status_code == 202
            assert len(set(asked.json()["instances"])) == 3
            await now.settle()
            listed = (await client.get("/v1/instances")).json()["instances"]
            assert {each["uuid"] for each in listed} == set(asked.json()["instances"])
            one = asked.json()["instances"][0]
            shown = (await client.get(f"/v1/instances/{one}")).json()
            assert shown == next(each for each in listed if each["uuid"] == one)
            assert (shown["state"], shown["project_id"], shown["user_id"]) == ("active", "project", "user")
            of_request = await client.get("/v1/instances", params={"request_id": asked.json()["request_id"]})
            assert len(of_request.json()["instances"]) == 3
            both = f"another,{asked.json()['request_id']}"
            found = (await client.get("/v1/instances", params={"request_id": both})).json()["instances"]
            assert found == of_request.json()["instances"]
            active = await client.get("/v1/instances", params={"request_id": both, "state": "active"})
            assert active.json()["instances"] == found
            other = await client.get("/v1/instances", params={"request_id": "another"})
            assert other.json() == {"instances": [], "next": None, "cells_down": []}
            assert (await client.delete(f"/v1/instances/{one}")).status_code == 202
            await now.settle()
            assert (await client.get(f"/v1/instances/{one}")).status_code == 404
            assert (await client.delete(f"/v1/instances/{one}")).status_code == 404
            assert await now.used() == 2

    asyncio.run(run())


def test_failed_instance_shows_why(tmp_path) -> None:
    async def run() -> None:
        async with api(tmp_path) as (now, client):
            body = {"flavor": {**FLAVOR, "vcpus": 100}, "count": 1}
            [one] = (await client.post("/v1/instances", json=body)).json()["instances"]
            await now.settle()
            shown = (await client.get(f"/v1/instances/{one}", headers=OPERATOR)).json()
            assert (shown["state"], shown["cell"]) == ("error", "cell0")
            assert shown["reason"] == shown["attempts"][0]["reason"] != ""

    asyncio.run(run())


def test_on_its_way_it_is_shown_and_can_be_deleted(tmp_path, monkeypatch) -> None:
    async def run() -> None:
        async with api(tmp_path) as (now, client):
            go = hold(now, monkeypatch)
            asked = await client.post("/v1/instances", json={"flavor": FLAVOR, "count": 2})
            one, two = asked.json()["instances"]
            assert (await client.get(f"/v1/instances/{one}")).json()["state"] == "scheduling"
            listed = (await client.get("/v1/instances")).json()["instances"]
            assert [each["state"] for each in listed] == ["scheduling", "scheduling"]
            assert (await client.delete(f"/v1/instances/{one}")).status_code == 202
            assert (await client.get(f"/v1/instances/{one}")).json()["state"] == "deleting"
            go.set()
            await now.settle()
            assert (await client.get(f"/v1/instances/{one}")).status_code == 404
            assert (await client.get(f"/v1/instances/{two}")).json()["state"] == "active"
            assert set(await now.instances()) == {two}
            assert await now.used() == 1
            await now.check()

    asyncio.run(run())


def test_what_reaches_its_cell_between_two_looks_is_never_unknown(tmp_path, monkeypatch) -> None:
    async def run() -> None:
        async with api(tmp_path) as (now, client):
            waiting_among = now.requests.waiting_among

            async def wait_for_the_cell(request_ids):
                go.set()
                await now.arrive()
                return await waiting_among(request_ids)

            for path in ("/{}", "?request_id={}"):
                go = hold(now, monkeypatch)
                asked = (await client.post("/v1/instances", json={"flavor": FLAVOR})).json()
                monkeypatch.setattr(now.requests, "waiting_among", wait_for_the_cell)
                name = asked["instances"][0] if path == "/{}" else asked["request_id"]
                shown = (await client.get(f"/v1/instances{path.format(name)}")).json()
                [one] = [shown] if path == "/{}" else shown["instances"]
                assert one["state"] == "assigned"
                monkeypatch.undo()

    asyncio.run(run())


BAD_REQUESTS: list[tuple[Any, str]] = [
    (b"", "The body is empty; send JSON."),
    (b"{", "it ends before its value does"),
    (b"[]", "the body is a list, not an object"),
    (b"\xff", "malformed"),
    (b"{}", "flavor"),
    ({"flavor": {"vcpus": 1}}, "memory_mb"),
    ({"flavor": {**FLAVOR, "vcpus": -1}}, "flavor.vcpus"),
    ({"flavor": {**FLAVOR, "vcpus": 2**31}}, "flavor.vcpus"),
    ({"flavor": {**FLAVOR, "vcpus": "4"}}, "flavor.vcpus"),
    ({"flavor": {**FLAVOR, "name": ""}}, "flavor.name is empty"),
    ({"flavor": {**FLAVOR, "ram": 4}}, "ram"),
    ({"flavor": FLAVOR, "count": 0}, "count: "),
    ({"flavor": FLAVOR, "count": 1001}, "count: "),
    ({"flavor": FLAVOR, "count": 2, "min_count": 3}, "min_count 3 is more than count 2"),
    (
        {"flavor": FLAVOR, "group": {"uuid": "g", "policy": "legacy"}},
        "group.policy: 'legacy' is none of 'affinity'",
    ),
    ({"flavor": FLAVOR, "group": {"uuid": "g"}}, "policy"),
    ({"flavor": FLAVOR, "colour": "red"}, "colour"),
]


def test_bad_request_names_what_is_wrong_and_changes_nothing(tmp_path) -> None:
    async def run() -> None:
        async with api(tmp_path) as (now, client):
            for body, words in BAD_REQUESTS:
                sent = {"content": body} if isinstance(body, bytes) else {"json": body}
                refused = await client.post("/v1/instances", **sent)
                assert refused.status_code == 400, body
                assert words in detail(refused), body
            assert [each async for each in now.requests.waiting()] == []
            assert await now.instances() == {}

    asyncio.run(run())


def test_without_a_token_nobody_is_served(tmp_path) -> None:
    async def run() -> None:
        async with api(tmp_path) as (_, client):
            del client.headers["X-Auth-Token"]
            for method, path in (("GET", ""), ("POST", ""), ("GET", "/x"), ("DELETE", "/x")):
                refused = await client.request(method, f"/v1/instances{path}")
                assert refused.status_code == 401, (method, path)
                assert "X-Auth-Token" in detail(refused)

    asyncio.run(run())


def test_names_of_users_have_a_limit(tmp_path) -> None:
    async def run() -> None:
        async with api(tmp_path) as (now, client):
            refused = await client.post(
                "/v1/instances", json={"flavor": FLAVOR}, headers={"X-Auth-Token": "u" * 256}
            )
            assert (refused.status_code, "255" in detail(refused)) == (400, True)
            assert [each async for each in now.requests.waiting()] == []

    asyncio.run(run())


def test_outage_of_the_database_is_said(tmp_path, monkeypatch) -> None:
    async def run() -> None:
        async with api(tmp_path) as (now, client):

            async def fail(work) -> None:
                raise DatabaseUnavailable("database x: disk I/O error")

            with monkeypatch.context() as broken:
                broken.setattr(now.ledger.database, "write", fail)
                refused = await client.post("/v1/instances", json={"flavor": FLAVOR})
            assert refused.status_code == 503
            assert refused.headers["Retry-After"] == "1"
            assert "try again" in detail(refused)
            await now.arrive()
            assert await now.instances() == {}

    asyncio.run(run())


NONSENSE = [
    {"resources:CUSTOM_NOWHERE": "1"},
    {"resources:NOT A CLASS": "1"},
    {"resources:VCPU": "many"},
    {"resources:VCPU": "9" * 30},
    {"resources:VCPU": "0"},
    {"resources_1:VCPU": "1", "group_policy": "both"},
    {"trait:CUSTOM_NOWHERE": "required"},
    {"trait:not a trait": "required"},
    {"trait:CUSTOM_NOWHERE": "perhaps"},
    {"trait_1:CUSTOM_X": "required"},
]


def test_flavor_that_makes_no_sense_is_refused_and_breaks_nothing(tmp_path) -> None:
    async def run() -> None:
        async with api(tmp_path) as (now, client):
            for extra_specs in NONSENSE:
                body = {"flavor": {**FLAVOR, "extra_specs": extra_specs}}
                answer = await client.post("/v1/instances", json=body)
                assert answer.status_code == 400, extra_specs
                assert detail(answer), extra_specs
            assert now.super.failure is None
            assert await now.instances() == {}

    asyncio.run(run())


def test_body_has_a_limit(tmp_path) -> None:
    async def run() -> None:
        async with api(tmp_path) as (now, client):

            async def parts():
                for _ in range(200):
                    yield b" " * 2**16

            for content in (b" " * 2 * 2**20, parts()):
                refused = await client.post("/v1/instances", content=content)
                assert refused.status_code == 413
                assert "1048576 bytes" in detail(refused)
            assert [each async for each in now.requests.waiting()] == []

    asyncio.run(run())


def test_list_has_pages(tmp_path, monkeypatch) -> None:
    async def run() -> None:
        async with api(tmp_path) as (now, client):
            wanted = set(await asked_for(client, 7))
            await now.settle()
            await asked_for(client, 5, OTHER)
            await now.settle()
            hold(now, monkeypatch)
            wanted |= set(await asked_for(client, 4))
            found: list[str] = []
            query = {"limit": "3"}
            sizes = []
            while True:
                page = (await client.get("/v1/instances", params=query)).json()
                sizes.append(len(page["instances"]))
                found += [each["uuid"] for each in page["instances"]]
                if page["next"] is None:
                    break
                query["marker"] = page["next"]
            assert (found, sizes) == (sorted(wanted), [3, 3, 3, 2])
            of_request = await client.get("/v1/instances", params={"request_id": "another", "limit": "1"})
            assert of_request.json() == {"instances": [], "next": None, "cells_down": []}
            for wrong in ({"limit": "0"}, {"limit": "1001"}, {"limit": "1.0"}, {"colour": "red"}):
                assert (await client.get("/v1/instances", params=wrong)).status_code == 400, wrong

    asyncio.run(run())


def test_instances_are_found_by_name_and_by_the_beginning_of_their_uuid(tmp_path) -> None:
    async def run() -> None:
        async with api(tmp_path) as (now, client):

            async def found(as_whom: dict[str, str] = TOKEN, **query: str) -> list[str]:
                answer = await client.get("/v1/instances", params=query, headers=as_whom)
                assert answer.status_code == 200, answer.text
                return [each["name"] for each in answer.json()["instances"]]

            for name, count in (("web", 1), ("db", 2)):
                body = {"flavor": FLAVOR, "name": name, "count": count}
                accepted = (await client.post("/v1/instances", json=body)).json()
            await client.post("/v1/instances", json={"flavor": FLAVOR})
            assert await found(name="web") == ["web"]
            assert await found(name="db") == []
            await now.settle()
            assert await found(name="db-2") == ["db-2"]
            first, _ = accepted["instances"]
            assert await found(uuid_prefix=first[:13]) == ["db-1"]
            shown = (await client.get(f"/v1/instances/{first}", headers=ADMIN)).json()
            everywhere = {"name": "db-1", "all_projects": "true"}
            assert await found(ADMIN, host=shown["host"], state="active", **everywhere) == ["db-1"]
            assert await found(ADMIN, host="other", **everywhere) == []
            assert None in await found()
            for wrong in ("", "-a", "a b", "a\u200b", "x" * 65):
                refused = await client.post("/v1/instances", json={"flavor": FLAVOR, "name": wrong})
                [error] = refused.json()["errors"]
                assert (error["status"], error["code"]) == (400, "conductor.bad_request")
                assert error["detail"].startswith("name: letters, digits, . _ -, at most 64")
            missing = await client.get("/v1/instances/nope")
            assert missing.json()["errors"][0]["code"] == "conductor.not_found"

    asyncio.run(run())
