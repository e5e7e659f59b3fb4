"""Instances over HTTP belong to projects, and roles say who may do what."""

import asyncio

from support.conductor_api import ADMIN, FLAVOR, OTHER, READER, TOKEN, api, asked_for, detail, hold, listed


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
