"""What is done and seen in a cloud is told by ``/v1/events``, to operators alone."""

import asyncio
from typing import Any

from roost.conductor.agent_endpoint.sessions import OpenSession, free_all_sessions
from roost.conductor.hosts.watch import ServiceWatch
from roost.model.service_version import SERVICE_VERSION
from roost.state.api_database.events import observe_events
from roost.storage import Database, DatabaseUnavailable
from support.conductor_api import ADMIN, TOKEN, api, detail
from support.works import is_of

EVENTS = "/v1/events"


def brief(page: dict[str, Any]) -> list[tuple[str, str | None, str | None]]:
    return [(each["kind"], each["cell"], each["host"] or each["name"]) for each in page["events"]]


def session(host: str) -> OpenSession:
    return OpenSession(host=host, nonce=f"of {host}", previous=(), service_version=SERVICE_VERSION, at=1.0)


def test_what_operators_do_is_told_in_order(tmp_path) -> None:
    async def run() -> None:
        async with api(tmp_path) as (now, client):
            client.headers.update(ADMIN)
            begin = (await client.get(EVENTS)).json()
            assert (begin["events"], begin["more"]) == ([], False)
            node = (await client.get("/v1/hosts/a/nodes")).json()["nodes"][0]["node"]
            made = await client.post("/v1/aggregates", json={"name": "fast"})
            path = f"/v1/aggregates/{made.json()['uuid']}"
            for request in (
                ("POST", "/v1/hosts", {"cell": "cell1", "hosts": ["new-1", "new-2"]}),
                ("PUT", "/v1/hosts/a", {"enabled": False, "reason": "fan broken"}),
                ("PUT", "/v1/hosts/a", {"enabled": True}),
                ("PUT", f"/v1/hosts/a/nodes/{node}", {"enabled": False}),
                ("PUT", "/v1/cells/cell2", {"enabled": False, "reason": "power"}),
                ("POST", "/v1/hosts/new-2/move", {"cell": "cell2"}),
                ("DELETE", "/v1/hosts/new-1", None),
                ("DELETE", path, None),
            ):
                # The removals ask the watch whether the agents are down.
                await now.super.watch.look()
                method, where, body = request
                answer = await client.request(method, where, json=body)
                assert answer.is_success, answer.text
            page = (await client.get(EVENTS, params={"marker": begin["next"]})).json()
            said = [each for each in brief(page) if each[0] != "host_disabled" or each[2] == "a"]
            assert said == [
                ("aggregate_created", None, "fast"),
                ("host_added", "cell1", "new-1"),
                ("host_added", "cell1", "new-2"),
                ("host_disabled", "cell1", "a"),
                ("host_enabled", "cell1", "a"),
                ("node_disabled", "cell1", "a"),
                ("cell_disabled", "cell2", None),
                ("host_moved", "cell2", "new-2"),
                ("host_removed", "cell1", "new-1"),
                ("aggregate_deleted", None, "fast"),
            ]
            assert [each["detail"] for each in page["events"] if each["kind"] == "cell_disabled"] == ["power"]
            assert {each["by"]["user_id"] for each in page["events"]} == {"admin"}
            assert all(each["by"]["request_id"].startswith("req-") for each in page["events"])
            only = (await client.get(EVENTS, params={"host": "a", "kind": "host_disabled"})).json()
            assert [each["detail"] for each in only["events"]] == ["fan broken"]

    asyncio.run(run())


def test_refused_requests_are_not_told(tmp_path) -> None:
    async def run() -> None:
        async with api(tmp_path) as (_, client):
            client.headers.update(ADMIN)
            for body in ({"cell": "none", "hosts": ["x"]}, {"cell": "cell2", "hosts": ["a"]}):
                assert (await client.post("/v1/hosts", json=body)).is_error
            assert (await client.put("/v1/hosts/none", json={"enabled": False})).status_code == 404
            assert (await client.get(EVENTS)).json()["events"] == []

    asyncio.run(run())


def test_hosts_up_and_down_are_told_once_by_two_conductors(tmp_path, monkeypatch) -> None:
    async def run() -> None:
        async with api(tmp_path) as (now, client):
            api_database = now.requests.database
            second = ServiceWatch(api_database, now.cells)

            async def both() -> None:
                await asyncio.gather(now.super.watch.look(), second.look())

            await both()
            await now.cells["cell1"].write(session("new"))
            await both()
            await now.cells["cell1"].write(free_all_sessions())
            write = type(api_database).write

            async def away(database: Database, work: object) -> Any:
                if is_of(work, observe_events):
                    raise DatabaseUnavailable("away")
                return await write(database, work)  # type: ignore[arg-type]

            monkeypatch.setattr(Database, "write", away)
            await both()
            monkeypatch.setattr(Database, "write", write)
            told = (await client.get(EVENTS, headers=ADMIN)).json()
            assert brief(told) == [("host_up", "cell1", "new")]
            await both()
            later = (await client.get(EVENTS, params={"marker": told["next"]}, headers=ADMIN)).json()
            down = [("host_down", "cell1", host) for host in ("a", "b", "c", "new")]
            assert brief(later) == down, "what could not be written comes later"

    asyncio.run(run())


def test_pages_follow_each_other_by_their_markers(tmp_path) -> None:
    async def run() -> None:
        async with api(tmp_path) as (_, client):
            client.headers.update(ADMIN)
            for number in range(5):
                await client.put("/v1/hosts/a", json={"enabled": False, "reason": str(number)})
            found: list[str] = []
            query: dict[str, Any] = {"limit": 2}
            while True:
                page = (await client.get(EVENTS, params=query)).json()
                found += [each["detail"] for each in page["events"]]
                query["marker"] = page["next"]
                if not page["more"]:
                    break
            assert found == ["0", "1", "2", "3", "4"]
            await client.put("/v1/hosts/a", json={"enabled": True})
            page = (await client.get(EVENTS, params=query)).json()
            assert [each["kind"] for each in page["events"]] == ["host_enabled"]

    asyncio.run(run())


def test_only_operators_read_events_and_bad_queries_are_named(tmp_path) -> None:
    async def run() -> None:
        async with api(tmp_path) as (_, client):
            assert (await client.get(EVENTS, headers=TOKEN)).status_code == 403
            client.headers.update(ADMIN)
            for query, word in (
                ({"marker": "nonsense!"}, "nonsense!"),
                ({"marker": "e30"}, "e30"),
                ({"marker": "eyJhcGkiOjk5fQ"}, "taken back"),
                ({"marker": "eyJhcGkiOi0xfQ"}, "eyJhcGkiOi0xfQ"),
                ({"kind": "explosion"}, "kind"),
                ({"since": "yesterday"}, "since"),
                ({"since": "nan"}, "since"),
                ({"limit": "0"}, "limit"),
            ):
                refused = await client.get(EVENTS, params=query)
                assert (refused.status_code, word in detail(refused)) == (400, True), refused.text

    asyncio.run(run())
