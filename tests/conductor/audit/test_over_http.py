"""The audit over HTTP and as a command, on real databases."""

import asyncio
import json
from typing import Any

import pytest
from click.testing import CliRunner

from roost.cli.audit import audit as command
from roost.cli.service_client import ServiceClient
from roost.conductor.audit.findings import DRY_RUN
from roost.conductor.audit.rounds import AuditOptions, audit_round, audit_tenure
from roost.placement.commands.allocations import ConsumerWrite
from roost.state.api_database.audit import ask_for_audit_round, read_audit_state
from roost.state.api_database.past import note_late_claims
from roost.state.leases import LeaseTimes, Tenure, renew
from support.conducting import Conductors
from support.conductor_api import ADMIN, TOKEN, api

PATH = "/v1/audit"
LEAKED = ("leaked-1", "leaked-2")


async def run_round(now: Conductors, tenure: Tenure | None = None) -> None:
    """Let this process audit once. ``tenure``: that of its rounds before."""
    context = now.super._context
    tenure = tenure or audit_tenure("here", LeaseTimes())
    await renew(context, "api", tenure)
    await audit_round(context, tenure, AuditOptions(settle=0.0, step=0.0))


async def leak(now: Conductors) -> None:
    """Claims of instances that nobody knows."""
    for uuid in LEAKED:
        write = ConsumerWrite(
            consumer=uuid,
            allocations={"node-a": {"VCPU": 1}},
            project_id="project",
            user_id="user",
            consumer_type="INSTANCE",
        )
        await now.placement.write_allocations((write,))


def test_findings_are_shown_by_page_and_wait_for_the_report_of_a_host(tmp_path) -> None:
    async def run() -> None:
        async with api(tmp_path) as (now, client):
            client.headers.update(ADMIN)
            before = (await client.get(PATH)).json()
            assert (before["round"], before["findings"]) == (0, [])
            await leak(now)
            await run_round(now)
            first = (await client.get(PATH, params={"limit": 1})).json()
            assert (first["round"], first["found"], first["asks"]) == (1, 2, None)
            rest = (await client.get(PATH, params={"limit": 1, "marker": first["next"]})).json()
            assert rest["next"] is None
            found = first["findings"] + rest["findings"]
            assert [each["subject"] for each in found] == [*LEAKED]
            assert {each["kind"] for each in found} == {"leaked-claim"}
            assert {each["action"] for each in found} == {"free-claim"}
            assert all("no conductor knows" in each["waits_for"] for each in found)
            claim = {"generation": 1, "allocations": {"node-a": {"VCPU": 1}}}
            assert found[0]["proof"] == {"claim": claim, "mapping": None, "rows": {}, "is_past": False}
            assert (await client.get(f"{PATH}/repairs")).json() == {"repairs": [], "next": None}
            await now.placement.delete_allocations(LEAKED)

    asyncio.run(run())


def test_a_claim_that_may_come_late_is_left_to_those_who_look_for_it(tmp_path) -> None:
    async def run() -> None:
        async with api(tmp_path) as (now, client):
            await leak(now)
            await now.requests.database.write(note_late_claims(LEAKED[:1]))
            await run_round(now)
            found = (await client.get(PATH, headers=ADMIN)).json()["findings"]
            assert [each["subject"] for each in found] == [*LEAKED[1:]]
            await now.placement.delete_allocations(LEAKED)

    asyncio.run(run())


def test_a_round_is_asked_for_with_the_repairs_that_it_may_make(tmp_path) -> None:
    async def run() -> None:
        async with api(tmp_path) as (now, client):
            answer = await client.post(f"{PATH}/rounds", json={"most": 7}, headers=ADMIN)
            assert (answer.status_code, answer.json()) == (202, {"round": 1})
            state = await now.requests.database.read(read_audit_state())
            assert (state.asked, state.permitted) == (True, 7)
            await run_round(now)
            state = await now.requests.database.read(read_audit_state())
            assert (state.asked, state.permitted, state.ended) == (False, 0, 1)
            assert await now.requests.database.write(ask_for_audit_round(0)) == 2

    asyncio.run(run())


def test_who_audits_is_told_to_those_who_ask_for_it(tmp_path) -> None:
    async def run() -> None:
        async with api(tmp_path) as (now, client):
            client.headers.update(ADMIN)
            await run_round(now)
            await now.super.watch.look()
            asked = (await client.get("/v1/services", params={"kind": "audit"})).json()["services"]
            assert [each["name"] for each in asked] == ["audit"]
            every = (await client.get("/v1/services")).json()["services"]
            assert "audit" not in {each["kind"] for each in every}

    asyncio.run(run())


def test_the_audit_is_for_administrators(tmp_path) -> None:
    async def run() -> None:
        async with api(tmp_path) as (_, client):
            client.headers.update(TOKEN)
            for method, path in (("GET", PATH), ("GET", f"{PATH}/repairs"), ("POST", f"{PATH}/rounds")):
                body = {"most": 1} if method == "POST" else None
                assert (await client.request(method, path, json=body)).status_code == 403

    asyncio.run(run())


FINDING = {
    "kind": "leaked-claim",
    "subject": "i-1",
    "detail": "no cell has it",
    "expected": "nothing is claimed for it",
    "proof": {},
    "action": "free-claim",
    "waits_for": None,
}


def answers(monkeypatch: pytest.MonkeyPatch, **changed: Any) -> list[tuple[str, str, object]]:
    """Have a conductor answer with an audit; returns the list of what it is asked."""
    shown = {
        "round": 3,
        "ended_at": 0.0,
        "found": 0,
        "instances": 5,
        "unread": {},
        "asks": None,
        "findings": [],
        "next": None,
    }
    asked: list[tuple[str, str, object]] = []

    def ask(self: object, method: str, path: str, body: object = None, query: object = None) -> Any:
        asked.append((method, path, body))
        return {"round": 3} if method == "POST" else shown | changed

    monkeypatch.setattr(ServiceClient, "ask", ask)
    return asked


@pytest.mark.parametrize(
    ("changed", "status"),
    [
        ({}, 0),
        ({"found": 1, "findings": [FINDING]}, 1),
        ({"unread": {"cell2": "is down"}}, 1),
        ({"asks": "40 repairs are due"}, 1),
    ],
)
def test_the_command_exits_with_1_if_anything_is_wrong(
    monkeypatch: pytest.MonkeyPatch, changed: dict[str, Any], status: int
) -> None:
    asked = answers(monkeypatch, **changed)
    result = CliRunner().invoke(command, ["--json"])
    assert result.exit_code == status, result.output
    assert json.loads(result.stdout)["findings"] == changed.get("findings", [])
    shown = CliRunner().invoke(command, [])
    assert shown.exit_code == status
    for each in changed.get("findings", []):
        assert each["subject"] in shown.stdout
    assert {method for method, _, _ in asked} == {"GET"}, "nothing is changed without --repair"


def test_the_command_permits_repairs_and_waits_for_the_round(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = answers(monkeypatch)
    assert CliRunner().invoke(command, ["--repair", "--most", "25"]).exit_code == 0
    assert asked[0] == ("POST", "/v1/audit/rounds", {"most": 25})
    assert CliRunner().invoke(command, ["--repair"]).exit_code == 2


def test_the_command_asks_for_a_dry_run(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = answers(monkeypatch)
    assert CliRunner().invoke(command, ["--dry-run"]).exit_code == 0
    assert asked[0] == ("POST", "/v1/audit/rounds", {"dry_run": True})
    assert CliRunner().invoke(command, ["--dry-run", "--repair", "--most", "1"]).exit_code == 2


def test_a_dry_run_permits_no_repairs(tmp_path) -> None:
    async def run() -> None:
        async with api(tmp_path) as (now, client):
            client.headers.update(ADMIN)
            both = await client.post(f"{PATH}/rounds", json={"most": 7, "dry_run": True})
            assert both.status_code == 400 and "dry run" in both.text
            assert (await client.post(f"{PATH}/rounds", json={"dry_run": True})).status_code == 202
            assert (await now.requests.database.read(read_audit_state())).permitted == DRY_RUN

    asyncio.run(run())
