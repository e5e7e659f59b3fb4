"""Histories over HTTP, whole and as projects see them."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from roost.conductor.http import create_app
from roost.model.instance import ACTIVE, BuildResult
from roost.records import RecordQueue, Retention
from roost.records.backend import open_sql_records
from roost.state.api_database.past import PRUNED_AT_ONCE, prune_past_mappings
from roost.state.cell_database.guests import GuestsReported
from roost.storage import DatabaseUnavailable
from roost.web.auth import NoAuth
from support.conducting import NOW, Conductors, conducting
from support.conductor_api import ADMIN, FLAVOR, OTHER, READER, TOKEN, hold
from support.recording import failing_backend

Use = Callable[[Conductors, httpx.AsyncClient, RecordQueue], Awaitable[None]]

UMA = {"X-Auth-Token": "uma:project", "X-Roles": "member"}

NAMES = ("node-", "cell1", "cell2", "no IP", "NoMoreAddresses")
"""What no project is to read."""


def using(directory: Path, use: Use, queue: RecordQueue | None = None) -> None:
    async def run() -> None:
        backend = await open_sql_records(f"sqlite:///{directory / 'records.db'}", Retention())
        records = queue or RecordQueue(backend, gather_seconds=0.0)
        async with conducting(directory, records) as now:
            app = create_app(
                now.super, now.requests, now.aggregates, now.groups, now.placement, NoAuth(), records=records
            )
            transport = httpx.ASGITransport(app)
            async with httpx.AsyncClient(
                transport=transport, base_url="http://roost", headers=TOKEN
            ) as client:
                await use(now, client, records)
        await records.close()

    asyncio.run(run())


async def asked(client: httpx.AsyncClient, **body: Any) -> str:
    """The uuid of a new instance."""
    answer = await client.post("/v1/instances", json={"flavor": FLAVOR, **body})
    assert answer.status_code == 202, answer.text
    [uuid] = answer.json()["instances"]
    return str(uuid)


async def history(client: httpx.AsyncClient, uuid: str, headers: dict[str, str] = ADMIN) -> dict[str, Any]:
    answer = await client.get(f"/v1/instances/{uuid}/history", headers=headers)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def told(action: dict[str, Any]) -> list[tuple[Any, ...]]:
    return [(each["name"], each["result"], each["host"], each["reason"]) for each in action["events"]]


def test_instance_that_failed_on_two_hosts_and_runs_on_the_third(tmp_path) -> None:
    async def use(now: Conductors, client: httpx.AsyncClient, records: RecordQueue) -> None:
        uuid = await asked(client, ignore_hosts=["d", "e"])
        await now.arrive()
        hosts = []
        for _ in range(3):
            [instance] = (await now.instances()).values()
            hosts.append(instance.host)
            failure, code = (None, None) if len(hosts) == 3 else ("no IP", "NoMoreAddresses")
            cell = await now.cell_of(uuid)
            await cell.report([BuildResult(uuid, instance.host or "", instance.attempt, failure, code)])
            await now.step()
        assert sorted(map(str, hosts)) == ["a", "b", "c"]
        await records.flush()
        found = await history(client, uuid)
        [create] = found["actions"]
        assert (found["state"], found["cell"], found["missing"]) == (ACTIVE, "cell1", [])
        assert (create["kind"], create["user_id"], create["project_id"]) == ("create", "user", "project")
        assert create["request_id"].startswith("req-")
        assert (create["started_at"], create["finished_at"], create["result"]) == (NOW, NOW, "success")
        assert told(create) == [
            ("accept", "success", None, None),
            ("schedule", "selected", hosts[0], None),
            ("build", "failed", hosts[0], "no IP"),
            ("build", "failed", hosts[1], "no IP"),
            ("build", "built", hosts[2], None),
        ]
        builds = create["events"][2:]
        assert [each["attempt"] for each in builds] == [1, 2, 3]
        assert [each["code"] for each in builds] == ["NoMoreAddresses", "NoMoreAddresses", None]
        assert {each["cell"] for each in builds} == {"cell1"}
        assert {each["run"] for each in builds} == {create["events"][1]["run"]}
        assert [each["node"] for each in builds] == [f"node-{host}" for host in hosts]

        seen = await history(client, uuid, READER)
        assert [(name, result) for name, result, _, _ in told(seen["actions"][0])] == [
            (name, result) for name, result, _, _ in told(create)
        ]
        assert not [each for each in NAMES if each in str(seen)]
        assert {event["host"] for event in seen["actions"][0]["events"]} == {None}
        other = await client.get(f"/v1/instances/{uuid}/history", headers=OTHER)
        assert other.status_code == 404

    using(tmp_path, use)


def test_from_the_acceptance_to_the_end_and_until_the_retention_is_over(tmp_path) -> None:
    async def use(now: Conductors, client: httpx.AsyncClient, records: RecordQueue) -> None:
        uuid = await asked(client)
        await now.settle()
        [instance] = (await now.instances()).values()
        deleted = await client.delete(f"/v1/instances/{uuid}", headers=UMA)
        assert deleted.status_code == 202
        await now.settle()
        assert (await client.get(f"/v1/instances/{uuid}")).status_code == 404
        await records.flush()
        found = await history(client, uuid)
        create, delete = found["actions"]
        assert (found["state"], found["missing"]) == ("deleted", [])
        assert (create["kind"], create["result"]) == ("create", "success")
        assert (delete["kind"], delete["user_id"], delete["result"]) == ("delete", "uma", "success")
        assert delete["request_id"] == deleted.headers["x-openstack-request-id"]
        assert told(delete) == [
            ("destroy", "success", instance.host, None),
            ("free", "success", None, None),
        ]
        assert await now.ledger.database.write(prune_past_mappings(NOW)) == 0
        assert await now.ledger.database.write(prune_past_mappings(NOW + 1)) == 1 < PRUNED_AT_ONCE
        assert (await client.get(f"/v1/instances/{uuid}/history", headers=ADMIN)).status_code == 404

    using(tmp_path, use)


def test_instance_that_no_host_can_take(tmp_path) -> None:
    async def use(now: Conductors, client: httpx.AsyncClient, records: RecordQueue) -> None:
        uuid = await asked(client, flavor={"vcpus": 99, "memory_mb": 0})
        await now.arrive()
        await records.flush()
        found = await history(client, uuid)
        [create] = found["actions"]
        assert (found["state"], found["cell"], create["result"]) == ("error", "cell0", "error")
        assert [each["name"] for each in create["events"]] == ["accept", "schedule", "bury"]
        assert create["events"][1]["result"] == "refused"
        assert create["events"][2]["reason"] == create["reason"]
        seen = (await history(client, uuid, READER))["actions"][0]
        assert seen["reason"]
        assert not any(each["reason"] for each in seen["events"] if each["name"] != "schedule")
        await client.delete(f"/v1/instances/{uuid}")
        await now.settle()
        found = await history(client, uuid)
        assert [each["kind"] for each in found["actions"]] == ["create", "delete"]
        assert told(found["actions"][1]) == [("free", "success", None, None)]
        assert found["state"] == "deleted"

    using(tmp_path, use)


def test_all_hosts_fail(tmp_path) -> None:
    async def use(now: Conductors, client: httpx.AsyncClient, records: RecordQueue) -> None:
        uuid = await asked(client, ignore_hosts=["c", "d", "e"])
        await now.settle(failing=["a", "b"])
        [create] = (await history(client, uuid))["actions"]
        assert create["result"] == "error"
        assert "Exceeded maximum number of retries" in create["reason"]
        assert [each["name"] for each in create["events"] if each["name"] != "schedule"] == [
            "accept",
            "build",
            "build",
            "free",
        ]
        seen = (await history(client, uuid, READER))["actions"][0]
        assert seen["reason"] == "No host could build the instance."

    using(tmp_path, use)


def test_instance_that_is_deleted_before_it_is_in_a_cell(tmp_path, monkeypatch) -> None:
    async def use(now: Conductors, client: httpx.AsyncClient, records: RecordQueue) -> None:
        go = hold(now, monkeypatch)
        uuid = await asked(client)
        found = await history(client, uuid)
        assert (found["state"], found["actions"][0]["result"]) == ("scheduling", None)
        await client.delete(f"/v1/instances/{uuid}")
        assert (await history(client, uuid))["state"] == "deleting"
        go.set()
        await now.settle()
        found = await history(client, uuid)
        create, delete = found["actions"]
        assert (found["state"], create["result"], delete["result"]) == ("deleted", "abandoned", "success")
        assert delete["user_id"] == "user"

    using(tmp_path, use)


def test_operator_gives_up_a_guest_that_is_lost(tmp_path) -> None:
    async def use(now: Conductors, client: httpx.AsyncClient, records: RecordQueue) -> None:
        uuid = await asked(client)
        await now.settle()
        [instance] = (await now.instances()).values()
        cell = await now.cell_of(uuid)
        host = str(instance.host)
        for guests in ({}, {uuid: 1}, {}):
            await cell.write(GuestsReported(host, guests, NOW))
        answer = await client.post(
            f"/v1/instances/{uuid}/give-up", json={"evidence": "rack 7 burned"}, headers=ADMIN
        )
        assert answer.status_code == 202, answer.text
        await now.step()
        found = await history(client, uuid)
        assert [(each["kind"], each["result"]) for each in found["actions"]] == [
            ("create", "success"),
            ("lose", "success"),
            ("lose", "error"),
            ("give_up", "success"),
        ]
        word = found["actions"][-1]
        assert word["user_id"] == "admin"
        assert "rack 7 burned" in word["reason"]
        assert [each["name"] for each in word["events"]] == ["give_up", "free"]
        seen = (await history(client, uuid, READER))["actions"][-1]
        assert (seen["user_id"], seen["reason"]) == (None, None)

    using(tmp_path, use)


def test_history_without_records(tmp_path) -> None:
    """An outage of the records loses nothing but the runs."""

    async def use(now: Conductors, client: httpx.AsyncClient, records: RecordQueue) -> None:
        uuid = await asked(client, ignore_hosts=["d", "e"])
        await now.settle()
        found = await history(client, uuid)
        assert found["missing"] == ["records"]
        assert [each["name"] for each in found["actions"][0]["events"]] == ["accept", "build"]

    using(tmp_path, use, RecordQueue(failing_backend("raises"), retry_seconds=0.01, close_seconds=0.1))


def test_history_without_the_cell(tmp_path, monkeypatch) -> None:
    """The records tell the builds."""

    async def use(now: Conductors, client: httpx.AsyncClient, records: RecordQueue) -> None:
        uuid = await asked(client, ignore_hosts=["d", "e"])
        await now.settle()
        await records.flush()

        async def fail(work: object) -> None:
            raise DatabaseUnavailable("gone")

        monkeypatch.setattr(now.cells["cell1"], "read", fail)
        found = await history(client, uuid)
        assert (found["state"], found["missing"]) == ("unknown", ["cell cell1"])
        events = found["actions"][0]["events"]
        assert [each["name"] for each in events] == ["accept", "schedule", "build"]
        assert events[2]["host"] in ("a", "b", "c")
        assert (await history(client, uuid, READER))["missing"] == ["cell"]

    using(tmp_path, use)


def test_unknown_instance_has_no_history(tmp_path) -> None:
    async def use(now: Conductors, client: httpx.AsyncClient, records: RecordQueue) -> None:
        answer = await client.get("/v1/instances/nothing/history", headers=ADMIN)
        assert answer.status_code == 404

    using(tmp_path, use)


@pytest.mark.parametrize("secret", ["password=hunter2", "http://user:hunter2@nova/ refuses"])
def test_secrets_of_a_driver_are_in_no_history(tmp_path, secret: str) -> None:
    async def use(now: Conductors, client: httpx.AsyncClient, records: RecordQueue) -> None:
        uuid = await asked(client, ignore_hosts=["c", "d", "e"])
        await now.arrive()
        for _ in range(2):
            await now.build(["a", "b"], secret)
            await now.step()
        await records.flush()
        found = await history(client, uuid)
        assert found["actions"][0]["result"] == "error"
        assert "hunter2" not in str(found)

    using(tmp_path, use)
