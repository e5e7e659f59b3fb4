"""All views of one refusal and of one failure, with each role: a project reads nothing of hosts."""

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest

from roost.conductor import http as conductor
from roost.conductor.agent_endpoint.sessions import free_all_sessions
from roost.model.visibility import NoRuleOfView, Viewer, has_rule, visible
from roost.records import RecordQueue, Retention
from roost.records.backend import open_sql_records
from roost.scheduler import SchedulerOptions
from roost.scheduler.api import operations as scheduling
from roost.scheduler.api.app import create_app as create_scheduler
from roost.scheduler.api.service import SchedulerService
from roost.web.auth import NoAuth
from roost.web.operation import OPEN
from support.conducting import Conductors, conducting
from support.conductor_api import ADMIN, FLAVOR, OPERATOR, OTHER, READER, TOKEN

HIDDEN = ("node-", "cell0", "cell1", "cell2", "secret of a driver", "NoMoreAddresses", "rack 7", "olga")
"""What no project is to read: names of nodes and cells, and what drivers and operators wrote."""

OF_PROJECTS = [
    operation
    for operation in (*conductor.OPERATIONS, *scheduling.OPERATIONS)
    if operation.rule is not OPEN and operation.rule.all_projects is not None
]


def using(directory: Path, use: Any) -> None:
    async def run() -> None:
        backend = await open_sql_records(f"sqlite:///{directory / 'records.db'}", Retention())
        records = RecordQueue(backend, gather_seconds=0.0)
        async with conducting(directory, records) as now:
            app = conductor.create_app(
                now.super, now.requests, now.aggregates, now.groups, now.placement, NoAuth(), records=records
            )
            served = create_scheduler(SchedulerService(now.scheduler, records, SchedulerOptions()), NoAuth())
            async with (
                httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://roost") as client,
                httpx.AsyncClient(transport=httpx.ASGITransport(served), base_url="http://roost") as runs,
            ):
                await use(now, client, runs, records)
        await records.close()

    asyncio.run(run())


async def asked(client: httpx.AsyncClient, **body: Any) -> str:
    answer = await client.post("/v1/instances", json={"flavor": FLAVOR, **body}, headers=TOKEN)
    [uuid] = answer.json()["instances"]
    return str(uuid)


async def views(
    client: httpx.AsyncClient, runs: httpx.AsyncClient, uuid: str, headers: dict[str, str]
) -> dict[str, Any]:
    """What a role reads of an instance, by the path of each view."""
    found = {}
    for asking, path, query in (
        (client, "/v1/instances", {}),
        (client, "/v1/instances", {"state": "error"}),
        (client, "/v1/instances", {"state": "failed"}),
        (client, f"/v1/instances/{uuid}", {}),
        (client, f"/v1/instances/{uuid}/history", {}),
        (runs, "/v1/scheduler/records", {}),
        (runs, "/v1/scheduler/records", {"instance": uuid}),
    ):
        answer = await asking.get(path, params=query, headers=headers)
        assert answer.status_code == 200, (path, answer.text)
        found[f"{path} {query}"] = answer.json()
    for record in answer.json()["records"]:
        path = f"/v1/scheduler/records/{record['run']['id']}"
        found[path] = (await runs.get(path, headers=headers)).json()
    return found


def shown(found: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        each
        for path, view in found.items()
        if path.startswith("/v1/instances") and "/history" not in path
        for each in view.get("instances", [view])
    ]


def check(found: dict[str, Any]) -> None:
    """No view of a project tells of hosts."""
    for path, view in found.items():
        for word in HIDDEN:
            assert word not in repr(view), (path, word)
        for name, value in _values(view):
            if name in ("host", "cell", "node", "claim", "code"):
                assert not value, (path, name, value)
            if name == "cells_down":
                assert value == [], path


def _values(view: Any) -> list[tuple[str, Any]]:
    if isinstance(view, list):
        return [pair for each in view for pair in _values(each)]
    if isinstance(view, dict):
        return [*view.items(), *(pair for each in view.values() for pair in _values(each))]
    return []


def test_a_refusal_in_all_views(tmp_path: Path) -> None:
    async def use(now: Conductors, client: Any, runs: Any, records: RecordQueue) -> None:
        uuid = await asked(client, flavor={**FLAVOR, "vcpus": 100})
        await now.settle()
        await records.flush()
        whole = await views(client, runs, uuid, OPERATOR)
        assert "cell0" in repr(whole)
        for role in (TOKEN, READER):
            found = await views(client, runs, uuid, role)
            check(found)
            for each in shown(found):
                assert (each["state"], each["reason"]) == ("error", "No valid host was found."), each
            history = found[f"/v1/instances/{uuid}/history {{}}"]
            assert "100 VCPU" in history["actions"][0]["reason"]

    using(tmp_path, use)


def test_a_failure_in_all_views(tmp_path: Path) -> None:
    async def use(now: Conductors, client: Any, runs: Any, records: RecordQueue) -> None:
        uuid = await asked(client)
        await now.arrive()
        for _ in range(3):
            await now.build("abcde", "secret of a driver")
            for cell in now.of_cell.values():
                await cell.step()
        await now.settle()
        await records.flush()
        whole = await views(client, runs, uuid, OPERATOR)
        assert "secret of a driver" in repr(whole)
        told = await client.get("/v1/events", params={"instance": uuid}, headers=OPERATOR)
        assert "secret of a driver" in told.text
        for role in (TOKEN, READER, OTHER):
            answer = await client.get("/v1/events", params={"instance": uuid}, headers=role)
            assert (answer.status_code, any(word in answer.text for word in HIDDEN)) == (403, False)
        assert "node-" in repr(whole)
        for role in (TOKEN, READER):
            found = await views(client, runs, uuid, role)
            check(found)
            reasons = {each["reason"] for each in shown(found) if each["state"] == "error"}
            assert reasons == {"No host could build the instance."}
            assert all(each["attempts"] == [] for each in shown(found))

    using(tmp_path, use)


def test_what_an_operator_says_of_an_instance_is_not_its_projects_to_read(tmp_path: Path) -> None:
    async def use(now: Conductors, client: Any, runs: Any, records: RecordQueue) -> None:
        uuid = await asked(client)
        await now.settle()
        await (await now.cell_of(uuid)).write(free_all_sessions())
        await now.super.watch.look()
        path, word = f"/v1/instances/{uuid}/give-up", {"evidence": "rack 7 burned"}
        said = await client.post(path, json=word, headers=OPERATOR)
        assert said.status_code == 202, said.text
        await now.settle()
        await records.flush()
        for role in (TOKEN, READER):
            found = await views(client, runs, uuid, role)
            check(found)
            reasons = {each["reason"] for each in shown(found)}
            assert reasons == {"The guest of the instance is gone."}

    using(tmp_path, use)


@pytest.mark.parametrize(
    "query", [{"host": "a"}, {"host": "none"}, {"cell": "cell1"}, {"cell": "x"}, {"host": ""}]
)
def test_a_project_cannot_search_by_what_it_does_not_see(tmp_path: Path, query: dict[str, str]) -> None:
    async def use(now: Conductors, client: Any, runs: Any, records: RecordQueue) -> None:
        for path, asking in (("/v1/instances", client), ("/v1/scheduler/records", runs)):
            if path == "/v1/scheduler/records" and ("cell" in query or not query["host"]):
                continue
            for headers in (TOKEN, READER, OTHER):
                refused = await asking.get(path, params=query, headers=headers)
                assert refused.status_code == 403, (path, refused.text)
            for headers in (OPERATOR, ADMIN):
                assert (await asking.get(path, params=query, headers=headers)).status_code == 200

    using(tmp_path, use)


def test_an_administrator_sees_all_of_the_own_project_too(tmp_path: Path) -> None:
    async def use(now: Conductors, client: Any, runs: Any, records: RecordQueue) -> None:
        uuid = await asked(client)
        await now.settle()
        for query in ({}, {"project_id": "project"}, {"all_projects": "true"}):
            page = (await client.get("/v1/instances", params=query, headers=OPERATOR)).json()
            assert [each["uuid"] for each in page["instances"] if each["host"]] == [uuid]

    using(tmp_path, use)


@pytest.mark.parametrize("operation", OF_PROJECTS, ids=lambda each: f"{each.method} {each.path}")
def test_every_answer_of_resources_of_projects_has_a_rule(operation: Any) -> None:
    if operation.answer is not None:
        assert has_rule(operation.answer), operation.answer


def test_a_view_without_a_rule_is_shown_to_no_project() -> None:
    class Later:
        host = "a"

    later = Later()
    assert visible(later, Viewer.OPERATOR) is later
    with pytest.raises(NoRuleOfView, match="Later"):
        visible(later, Viewer.PROJECT)
