"""Server groups over HTTP: made, shown with members, deleted; instances are requested for them."""

import asyncio
from collections import Counter
from typing import Any

import httpx
import pytest

from support.conductor_api import ADMIN, FLAVOR, OPERATOR, OTHER, READER, TOKEN, api, detail

ALL = "/v1/server-groups"
NOBODYS = "00000000-0000-4000-8000-000000000000"


async def made(client: httpx.AsyncClient, policy: str = "anti-affinity", **body: Any) -> str:
    """The uuid of a new group of the token's project."""
    headers = body.pop("headers", TOKEN)
    answer = await client.post(ALL, json={"name": "g", "policy": policy, **body}, headers=headers)
    assert answer.status_code == 201, answer.text
    uuid: str = answer.json()["uuid"]
    return uuid


def instances(group: str, count: int = 1, **more: Any) -> dict[str, Any]:
    return {"flavor": FLAVOR, "count": count, "scheduler_hints": {"group": group}, **more}


def test_made_shown_listed_and_deleted(tmp_path) -> None:
    async def run() -> None:
        async with api(tmp_path) as (now, client):
            group = await made(client, name="web", rules={"max_server_per_host": 2})
            plain = {
                "uuid": group,
                "name": "web",
                "policy": "anti-affinity",
                "rules": {"max_server_per_host": 2},
                "project_id": "project",
                "user_id": "user",
            }
            shown = (await client.get(f"{ALL}/{group}", headers=READER)).json()
            assert shown == {**plain, "members": []}
            assert (await client.get(f"{ALL}/{group.upper()}")).json() == shown
            asked = await client.post("/v1/instances", json=instances(group, 3))
            assert asked.status_code == 202, asked.text
            await now.settle()
            shown = (await client.get(f"{ALL}/{group}")).json()
            assert shown["members"] == sorted(asked.json()["instances"])
            soft = await made(client, "soft-affinity")
            assert (await client.get(f"{ALL}/{soft}")).json()["rules"] == {}
            page = (await client.get(ALL, params={"limit": 1})).json()
            rest = (await client.get(ALL, params={"limit": 1, "marker": page["next"]})).json()
            both = page["server_groups"] + rest["server_groups"]
            assert sorted(each["uuid"] for each in both) == sorted([group, soft])
            assert plain in both
            assert rest["next"] is None
            # Its members stay where they are.
            assert (await client.delete(f"{ALL}/{group}")).status_code == 204
            assert (await client.delete(f"{ALL}/{group}")).status_code == 404
            assert await now.used() == 3
            refused = await client.post("/v1/instances", json=instances(group))
            assert refused.status_code == 400

    asyncio.run(run())


BAD: list[tuple[dict[str, Any], str]] = [
    ({"policy": "affinity"}, "name"),
    ({"name": "", "policy": "affinity"}, "name"),
    ({"name": " g", "policy": "affinity"}, "' g' begins or ends with a space"),
    ({"name": "a\nb", "policy": "affinity"}, r"'a\nb'"),
    ({"name": "g"}, "policy"),
    ({"name": "g", "policy": "legacy"}, "'legacy'"),
    ({"name": "g", "policy": "affinity", "rules": {"max_server_per_host": 2}}, "max_server_per_host 2"),
    ({"name": "g", "policy": "anti-affinity", "rules": {"max_server_per_host": 0}}, "max_server_per_host"),
    ({"name": "g", "policy": "anti-affinity", "rules": {"most": 2}}, "most"),
    ({"name": "g", "policy": "anti-affinity", "members": []}, "members"),
]


def test_bad_groups_are_refused_with_the_value_and_change_nothing(tmp_path) -> None:
    async def run() -> None:
        async with api(tmp_path) as (_, client):
            for body, words in BAD:
                refused = await client.post(ALL, json=body)
                assert refused.status_code == 400, body
                assert words in detail(refused), (body, detail(refused))
            assert (await client.get(ALL)).json() == {"server_groups": [], "next": None}

    asyncio.run(run())


def test_each_project_has_its_own(tmp_path) -> None:
    async def run() -> None:
        async with api(tmp_path) as (now, client):
            mine, others = await made(client), await made(client, headers=OTHER)

            async def listed(headers: dict[str, str], **query: str) -> list[str]:
                answer = await client.get(ALL, params=query, headers=headers)
                assert answer.status_code == 200, answer.text
                return [each["uuid"] for each in answer.json()["server_groups"]]

            assert await listed(TOKEN) == [mine]
            assert await listed(ADMIN, all_projects="true") == sorted([mine, others])
            assert await listed(ADMIN, project_id="other") == [others]
            assert (await client.get(ALL, params={"all_projects": "true"})).status_code == 403
            for ask in (client.get, client.delete):
                answer = await ask(f"{ALL}/{others}")
                assert (answer.status_code, detail(answer)) == (404, f"no server group {others}")
            assert (await client.delete(f"{ALL}/{mine}", headers=READER)).status_code == 403
            # An instance is requested for a group of its project only.
            refused = await client.post("/v1/instances", json=instances(others))
            assert (refused.status_code, detail(refused)) == (404, f"no server group {others}")
            body = {"flavor": FLAVOR, "group": {"uuid": others, "policy": "soft-affinity"}}
            assert (await client.post("/v1/instances", json=body)).status_code == 404
            assert [each async for each in now.requests.waiting()] == []
            assert (await client.get(f"{ALL}/{others}", headers=ADMIN)).status_code == 200
            assert (await client.delete(f"{ALL}/{others}", headers=ADMIN)).status_code == 204

    asyncio.run(run())


@pytest.mark.parametrize("named_by", ["hint", "group"])
def test_policy_and_rules_are_those_of_the_stored_group(tmp_path, named_by: str) -> None:
    async def run() -> None:
        async with api(tmp_path) as (now, client):
            group = await made(client, rules={"max_server_per_host": 2})
            body = instances(group)
            if named_by == "group":
                body = {"flavor": FLAVOR, "group": {"uuid": group, "policy": "affinity"}}
            asked = [await client.post("/v1/instances", json={**body, "count": count}) for count in (9, 1, 1)]
            assert [each.status_code for each in asked] == [202] * 3
            await now.settle()
            shown = (await client.get("/v1/instances", headers=OPERATOR)).json()["instances"]
            assert Counter(each["host"] for each in shown) == {**dict.fromkeys("abcde", 2), None: 1}
            assert len((await client.get(f"{ALL}/{group}")).json()["members"]) == 10

    asyncio.run(run())


def test_hint_of_no_group_is_refused(tmp_path) -> None:
    async def run() -> None:
        async with api(tmp_path) as (now, client):
            refused = await client.post("/v1/instances", json=instances(NOBODYS))
            assert refused.status_code == 400
            assert f"server group {NOBODYS}, which does not exist" in detail(refused)
            one, other = await made(client), await made(client)
            for hint, group in ((one, other), ([one, other], None)):
                body = instances(hint)  # type: ignore[arg-type]
                if group is not None:
                    body["group"] = {"uuid": group, "policy": "affinity"}
                refused = await client.post("/v1/instances", json=body)
                assert refused.status_code == 400
                assert "an instance is in one server group, not in" in detail(refused)
            assert [each async for each in now.requests.waiting()] == []

    asyncio.run(run())


def test_members_are_known_from_acceptance_to_deletion(tmp_path) -> None:
    """So that a scheduler at a placement service that knows no groups misses none."""

    async def run() -> None:
        async with api(tmp_path) as (now, client):
            group = await made(client)
            body = instances(group, 2, flavor={**FLAVOR, "vcpus": 100})
            asked = (await client.post("/v1/instances", json=body)).json()["instances"]
            assert await now.groups.members(group) == sorted(asked)
            await now.settle()
            assert await now.groups.members(group) == sorted(asked)
            assert (await client.get(f"{ALL}/{group}")).json()["members"] == []
            assert (await client.delete(f"/v1/instances/{asked[0]}")).status_code == 202
            assert await now.groups.members(group) == [asked[1]]

    asyncio.run(run())
