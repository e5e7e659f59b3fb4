"""Instances over HTTP: what is asked for is durable, what is wrong is said, and then nothing is changed."""

import asyncio
from contextlib import asynccontextmanager
from typing import Any

import httpx

from roost.auth import NoAuth
from roost.conductor.http import create_app
from roost.storage import DatabaseUnavailable
from support.conducting import Conductors, conducting

FLAVOR = {"vcpus": 1, "memory_mb": 0}
TOKEN = {"X-Auth-Token": "user:project", "X-Roles": "member"}
READER = {"X-Auth-Token": "rita:project", "X-Roles": "reader"}
OTHER = {"X-Auth-Token": "otto:other", "X-Roles": "member"}
ADMIN = {"X-Auth-Token": "admin", "X-Roles": "admin"}


@asynccontextmanager
async def api(directory):
    async with conducting(directory) as now:
        app = create_app(now.super, now.requests, NoAuth())
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://roost", headers=TOKEN) as client:
            yield now, client


def hold(now: Conductors, monkeypatch) -> asyncio.Event:
    """Keep requests on their way to their cells until the event is set."""
    go, place = asyncio.Event(), now.scheduler.select_destinations

    async def later(*arguments, **named):
        await go.wait()
        return await place(*arguments, **named)

    monkeypatch.setattr(now.scheduler, "select_destinations", later)
    return go


def detail(answer: httpx.Response) -> str:
    [error] = answer.json()["errors"]
    assert error["status"] == answer.status_code
    text: str = error["detail"]
    return text


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
            other = await client.get("/v1/instances", params={"request_id": "another"})
            assert other.json() == {"instances": [], "next": None}
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
            shown = (await client.get(f"/v1/instances/{one}")).json()
            assert (shown["state"], shown["cell"]) == ("error", "cell0")
            assert shown["reason"] == shown["faults"][0]["reason"] != ""

    asyncio.run(run())


def test_on_its_way_it_is_shown_and_cannot_be_deleted(tmp_path, monkeypatch) -> None:
    async def run() -> None:
        async with api(tmp_path) as (now, client):
            go = hold(now, monkeypatch)
            [one] = (await client.post("/v1/instances", json={"flavor": FLAVOR})).json()["instances"]
            assert (await client.get(f"/v1/instances/{one}")).json()["state"] == "scheduling"
            [listed] = (await client.get("/v1/instances")).json()["instances"]
            assert listed["state"] == "scheduling"
            refused = await client.delete(f"/v1/instances/{one}")
            assert refused.status_code == 409
            assert one in detail(refused)
            go.set()
            await now.settle()
            assert (await client.get(f"/v1/instances/{one}")).json()["state"] == "active"
            assert (await client.delete(f"/v1/instances/{one}")).status_code == 202

    asyncio.run(run())


def test_what_reaches_its_cell_between_two_looks_is_never_unknown(tmp_path, monkeypatch) -> None:
    async def run() -> None:
        async with api(tmp_path) as (now, client):
            waiting_for = now.requests.waiting_for

            async def wait_for_the_cell(instance):
                go.set()
                await now.arrive()
                return await waiting_for(instance)

            for ask in (client.get, client.delete):
                go = hold(now, monkeypatch)
                [one] = (await client.post("/v1/instances", json={"flavor": FLAVOR})).json()["instances"]
                monkeypatch.setattr(now.requests, "waiting_for", wait_for_the_cell)
                assert (await ask(f"/v1/instances/{one}")).status_code in (200, 202)
                monkeypatch.undo()

    asyncio.run(run())


BAD_REQUESTS: list[tuple[Any, str]] = [
    (b"", "truncated"),
    (b"{", "truncated"),
    (b"[]", "Expected `object`"),
    (b"\xff", "malformed"),
    (b"{}", "flavor"),
    ({"flavor": {"vcpus": 1}}, "memory_mb"),
    ({"flavor": {**FLAVOR, "vcpus": -1}}, "$.flavor.vcpus"),
    ({"flavor": {**FLAVOR, "vcpus": 2**31}}, "$.flavor.vcpus"),
    ({"flavor": {**FLAVOR, "vcpus": "4"}}, "$.flavor.vcpus"),
    ({"flavor": {**FLAVOR, "name": ""}}, "$.flavor.name"),
    ({"flavor": {**FLAVOR, "ram": 4}}, "ram"),
    ({"flavor": FLAVOR, "count": 0}, "$.count"),
    ({"flavor": FLAVOR, "count": 1001}, "$.count"),
    ({"flavor": FLAVOR, "count": 2, "min_count": 3}, "min_count 3 is more than count 2"),
    ({"flavor": FLAVOR, "group": {"uuid": "g", "policy": "soft-affinity"}}, "$.group.policy"),
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


def test_flavor_that_makes_no_sense_ends_in_error_and_breaks_nothing(tmp_path) -> None:
    async def run() -> None:
        async with api(tmp_path) as (now, client):
            for extra_specs in NONSENSE:
                body = {"flavor": {**FLAVOR, "extra_specs": extra_specs}}
                [one] = (await client.post("/v1/instances", json=body)).json()["instances"]
                await now.arrive()
                assert now.super.failure is None, extra_specs
                shown = (await client.get(f"/v1/instances/{one}")).json()
                assert shown["state"] == "error", extra_specs
                assert shown["reason"], extra_specs

    asyncio.run(run())


async def asked_for(client: httpx.AsyncClient, count: int, headers: dict[str, str] = TOKEN) -> list[str]:
    """The new instances of the project of a token."""
    answer = await client.post("/v1/instances", json={"flavor": FLAVOR, "count": count}, headers=headers)
    assert answer.status_code == 202, answer.text
    found: list[str] = answer.json()["instances"]
    return found


async def listed(client: httpx.AsyncClient, headers: dict[str, str] = TOKEN, **query: str) -> list[str]:
    """The instances on one page."""
    answer = await client.get("/v1/instances", params=query, headers=headers)
    assert answer.status_code == 200, answer.text
    return [each["uuid"] for each in answer.json()["instances"]]


def test_instance_of_another_project_is_not_found(tmp_path, monkeypatch) -> None:
    async def run() -> None:
        async with api(tmp_path) as (now, client):
            [own] = await asked_for(client, 1)
            [others] = await asked_for(client, 1, OTHER)
            await now.settle()
            go = hold(now, monkeypatch)
            [on_its_way] = await asked_for(client, 1, OTHER)
            assert await listed(client) == [own]
            assert set(await listed(client, OTHER)) == {others, on_its_way}
            for uuid in (others, on_its_way):
                for method in ("GET", "DELETE"):
                    refused = await client.request(method, f"/v1/instances/{uuid}")
                    assert (refused.status_code, uuid in detail(refused)) == (404, True)
                assert (await client.get(f"/v1/instances/{uuid}", headers=OTHER)).status_code == 200
            go.set()
            await now.settle()
            assert len(await now.instances()) == 3

    asyncio.run(run())


def test_admin_reaches_all_projects_and_lists_them_on_request(tmp_path) -> None:
    async def run() -> None:
        async with api(tmp_path) as (now, client):
            [first] = await asked_for(client, 1)
            [second] = await asked_for(client, 1, OTHER)
            await now.settle()
            assert await listed(client, ADMIN) == []
            assert set(await listed(client, ADMIN, all_projects="true")) == {first, second}
            assert await listed(client, ADMIN, project_id="other") == [second]
            assert await listed(client, ADMIN, all_projects="true", project_id="other") == [second]
            assert await listed(client, TOKEN, project_id="project") == [first]
            for query in ({"all_projects": "true"}, {"project_id": "other"}):
                refused = await client.get("/v1/instances", params=query)
                assert refused.status_code == 403, query
            assert (await client.get(f"/v1/instances/{first}", headers=ADMIN)).status_code == 200
            assert (await client.delete(f"/v1/instances/{second}", headers=ADMIN)).status_code == 202

    asyncio.run(run())


def test_reader_may_look_and_a_token_without_a_role_may_nothing(tmp_path) -> None:
    async def run() -> None:
        async with api(tmp_path) as (now, client):
            [one] = await asked_for(client, 1)
            await now.settle()
            calls = (("GET", ""), ("GET", f"/{one}"), ("POST", ""), ("DELETE", f"/{one}"))
            unscoped = {"X-Auth-Token": "user", "X-Roles": "member", "OpenStack-System-Scope": "all"}
            for headers, expected in (
                (READER, [200, 200, 403, 403]),
                ({"X-Auth-Token": "user:project", "X-Roles": ""}, [403] * 4),
                (unscoped, [403] * 4),
            ):
                statuses = []
                for method, path in calls:
                    body = {"flavor": FLAVOR} if method == "POST" else None
                    answer = await client.request(method, f"/v1/instances{path}", json=body, headers=headers)
                    statuses.append(answer.status_code)
                assert statuses == expected, headers
            assert set(await now.instances()) == {one}

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
            assert of_request.json() == {"instances": [], "next": None}
            for wrong in ({"limit": "0"}, {"limit": "1001"}, {"limit": "1.0"}, {"colour": "red"}):
                assert (await client.get("/v1/instances", params=wrong)).status_code == 400, wrong

    asyncio.run(run())
