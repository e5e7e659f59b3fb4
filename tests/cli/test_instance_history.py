"""`roost instance history` of an instance that failed on two hosts and runs on the third, over HTTP."""

import json
import re
from typing import Any

from click.testing import CliRunner

from roost.cli.instance_history import heading, lines
from roost.cli.main import roost_command
from support.processes import RoostUp
from support.waiting import wait_for

CLOUD = ("--hosts", "12", "--cells", "2", "--failure-rate", "0.6")
MANY = 120
"""Instances: each fails on two hosts and runs on the third with a chance of 14 %."""
SCREEN = 24
"""Lines of a terminal, of 80 columns."""


def run(*arguments: object, status: int = 0) -> str:
    result = CliRunner().invoke(roost_command, [str(each) for each in arguments])
    assert result.exit_code == status, result.output
    return result.output


def listed() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(run("instance", "list", "--json"))["instances"]
    return found


def test_instance_that_failed_on_two_hosts_and_runs_on_the_third(tmp_path, monkeypatch) -> None:
    with RoostUp(tmp_path / "data", CLOUD) as server:
        server.wait_until_up()
        monkeypatch.setenv("ROOST_URL", f"http://127.0.0.1:{server.port}")
        monkeypatch.setenv("COLUMNS", "80")
        run("instance", "create", "--vcpus", 1, "--count", MANY)
        wait_for(
            lambda: (
                len(there := listed()) == MANY and {each["state"] for each in there} <= {"active", "error"}
            )
        )
        chosen = next(each for each in listed() if (each["state"], each["attempt"]) == ("active", 3))
        uuid = chosen["uuid"]
        wait_for(lambda: not json.loads(run("instance", "history", uuid, "--json"))["missing"])

        [create] = json.loads(run("instance", "history", uuid, "--json"))["actions"]
        told = [(each["name"], each["result"], each["attempt"]) for each in create["events"]]
        assert told == [
            ("accept", "success", None),
            ("schedule", "selected", None),
            ("build", "failed", 1),
            ("build", "failed", 2),
            ("build", "built", 3),
        ]
        builds = create["events"][2:]
        assert [each["host"] for each in builds[:2]] == [each["host"] for each in chosen["attempts"]]
        assert builds[2]["host"] == chosen["host"]
        assert [each["reason"] for each in builds[:2]] == [each["reason"] for each in chosen["attempts"]]
        times = [each["started_at"] for each in create["events"]]
        assert times == sorted(times)

        screen = run("instance", "history", uuid)
        assert len(screen.splitlines()) <= SCREEN, screen
        assert max(map(len, screen.splitlines())) <= 80
        for event in builds:
            assert re.search(f"build {event['attempt']} .*{event['result']} .*{event['host']}", screen), (
                screen
            )

        run("instance", "delete", uuid)
        wait_for(lambda: json.loads(run("instance", "history", uuid, "--json"))["state"] == "deleted")
        assert re.search("delete: success", run("instance", "history", uuid))
        assert "no instance" in run("instance", "show", uuid, status=1)


def event(name: str, at: float, **facts: object) -> dict[str, Any]:
    others = dict.fromkeys(("finished_at", "result", "reason", "code", "attempt", "host", "run"))
    return {"name": name, "started_at": at, **others, **facts}


def action(kind: str, at: float, *events: dict[str, Any], **facts: object) -> dict[str, Any]:
    others = dict.fromkeys(("user_id", "project_id", "request_id", "finished_at", "result", "reason"))
    return {"kind": kind, "started_at": at, **others, **facts, "events": list(events)}


def test_action_and_its_events() -> None:
    refused = action(
        "create",
        0.0,
        event("schedule", 0.0, finished_at=0.0, result="refused", reason="none fits", run="r"),
        event("bury", 90_001.5, finished_at=90_001.5, result="error", reason="none fits"),
        user_id="uma",
        request_id="req-1",
        finished_at=90_001.5,
        result="error",
        reason="none fits",
    )
    assert heading(refused) == "1970-01-01 create: error after 90002 s, by uma, req-1"
    assert lines(refused) == [
        ("00:00:00.000", "", "schedule", "refused", "", "none fits run r"),
        ("1970-01-02 01:00:01.500", "", "put into cell0", "error", "", "none fits"),
    ]


def test_action_that_nobody_asked_for_and_that_lasts() -> None:
    lost = action("lose", 0.0, event("lose", 0.0, host="a", code="X"), reason="because")
    assert heading(lost) == "1970-01-01 lose: not at its end: because"
    assert lines(lost) == [("00:00:00.000", "…", "lose", "", "a", "(X)")]
