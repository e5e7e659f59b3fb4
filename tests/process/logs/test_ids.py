"""The ids of a request go with its work: into shared commits, requests to other services, and records."""

import asyncio
import json
from collections.abc import Iterable
from pathlib import Path

import httpx
import pytest

from roost.ledger import Command, State
from roost.placement.client.transport import Transport
from roost.process.logs import RequestIds, current_requests, serving
from roost.web.auth.credentials import Caller, FixedCredentials
from support.ledgers import opened
from support.processes import HEADERS, RoostUp, run_roost
from support.waiting import wait_for

GLOBAL = "req-12345678-1234-4234-a234-123456789abc"


class _Looks(Command[tuple[RequestIds, ...]], frozen=True):
    """A command that returns the ids that a log line would have now."""

    def consumers(self) -> Iterable[str]:
        return ()

    def run(self, state: State) -> tuple[RequestIds, ...]:
        return current_requests()


def test_what_a_commit_logs_has_the_ids_of_its_requests_and_of_no_other(tmp_path: Path) -> None:
    first, second, later = (RequestIds(f"req-{number}") for number in range(3))

    async def run() -> None:
        async with opened(tmp_path / "roost.db") as [ledger]:

            async def look(*requests: RequestIds) -> tuple[RequestIds, ...]:
                with serving(*requests):
                    return await ledger.execute(_Looks())

            together = await asyncio.gather(look(first), look(second))
            assert together == [(first, second)] * 2
            # The task that commits was made for the first request and goes on with those that came meanwhile.
            many = await asyncio.gather(look(first), look(), look(later))
            assert many == [(first, later)] * 3
            assert await look() == ()

    asyncio.run(run())


@pytest.mark.parametrize(
    ("requests", "sent"),
    [((), None), ((RequestIds("req-1"),), "req-1"), ((RequestIds("req-1", GLOBAL),), GLOBAL)],
)
def test_requests_to_placement_carry_the_global_id(
    requests: tuple[RequestIds, ...], sent: str | None
) -> None:
    seen: list[str | None] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request.headers.get("x-openstack-request-id"))
        return httpx.Response(204)

    async def run() -> None:
        client = httpx.AsyncClient(transport=httpx.MockTransport(answer))
        transport = Transport(Caller(FixedCredentials("http://placement", None), client))
        with serving(*requests):
            await transport.call("GET", "/traits")
        await transport.close()

    asyncio.run(run())
    assert seen == [sent]


def test_a_run_is_recorded_with_both_ids_and_found_by_either(tmp_path: Path) -> None:
    data = tmp_path / "data"
    flavor = {"vcpus": 1, "memory_mb": 1}
    with RoostUp(data, ("--hosts", "2", "--cells", "1")) as system:
        system.wait_until_up()
        with system.client() as client:
            headers = {**HEADERS, "X-Openstack-Request-Id": GLOBAL}
            asked = client.post("/v1/instances", json={"flavor": flavor}, headers=headers)
            assert asked.status_code == 202
            own = asked.headers["x-openstack-request-id"]
            assert asked.json()["request_id"] == own
            [instance] = asked.json()["instances"]
            wait_for(lambda: client.get(f"/v1/instances/{instance}").json()["state"] == "active")
        assert system.stop()[0] == 0
    for name in (own, GLOBAL):
        found = run_roost("records", name, "--data-dir", data, "--json")
        [run] = json.loads(found.stdout)
        assert (run["run"]["request_id"], run["run"]["global_request_id"]) == (own, GLOBAL)
    assert GLOBAL in run_roost("records", own, "--data-dir", data).stdout


def test_roost_up_has_access_lines_in_json(tmp_path: Path) -> None:
    options = tmp_path / "roost.conf"
    options.write_text("[DEFAULT]\nuse_json = true\ndebug = true\naccess_log = true\n")
    arguments = ("--hosts", "2", "--cells", "1", "--config-file", str(options))
    with RoostUp(tmp_path / "data", arguments) as system:
        system.wait_until_up()
        with system.client() as client:
            headers = {**HEADERS, "X-Openstack-Request-Id": GLOBAL}
            asked = client.post("/v1/instances", json={"flavor": {"vcpus": 1}}, headers=headers)
            own = asked.headers["x-openstack-request-id"]
            wait_for(lambda: own in system.stderr)
    [line] = [json.loads(line) for line in system.stderr.splitlines() if own in line]
    assert (line["request_id"], line["global_request_id"], line["status"]) == (own, GLOBAL, 400)
    assert line["logger"] == "roost.access"
