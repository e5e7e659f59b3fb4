"""``roost host``, ``roost node`` and ``roost cell``: what they ask a conductor, and print of its answers."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from roost.cli import drain
from roost.cli.aggregate import aggregate
from roost.cli.cell import cell
from roost.cli.connection import ServiceConnection
from roost.cli.host import host
from roost.cli.node import node
from roost.cli.service_client import ServiceClient
from roost.model.errors import OperatorError

STATES = ["up", "down", "unknown", "down", "up", "down"]


def shown(number: int, state: str) -> dict[str, Any]:
    return {
        "host": f"host{number}",
        "cell": "cell1",
        "state": state,
        "enabled": True,
        "reason": None,
        "held": None,
        "refused": None,
        "nodes": 1,
        "instances": {"active": 1},
        "orders": 0,
    }


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The queries that a conductor with six hosts, three on a page, is asked."""
    queries: list[dict[str, Any]] = []

    def ask(self: object, method: str, path: str, body: object = None, query: Any = None) -> Any:
        queries.append(dict(query))
        states = (query["state"] or "up,down,unknown").split(",")
        chosen = [shown(number, state) for number, state in enumerate(STATES) if state in states]
        first = query["marker"] or 0
        last = first + min(query["limit"], 3)
        return {"hosts": chosen[first:last], "cells_down": [], "next": last if last < len(chosen) else None}

    monkeypatch.setattr(ServiceClient, "ask", ask)
    return queries


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ([], ["host0", "host1", "host2", "host3", "host4", "host5"]),
        (["--state", "down"], ["host1", "host3", "host5"]),
        (["--state", "down", "--state", "unknown"], ["host1", "host2", "host3", "host5"]),
        (["--state", "down", "--limit", "2"], ["host1", "host3"]),
        (["--limit", "2"], ["host0", "host1"]),
    ],
)
def test_hosts_are_listed_by_state(asked: list[dict[str, Any]], options: list[str], names: list[str]) -> None:
    result = CliRunner().invoke(host, ["list", *options, "--json"])
    assert result.exit_code == 0, result.output
    assert [each["host"] for each in json.loads(result.stdout)["hosts"]] == names
    table = CliRunner().invoke(host, ["list", *options])
    assert [name for name in (f"host{number}" for number in range(6)) if name in table.stdout] == names


def test_a_limit_asks_for_no_more(asked: list[dict[str, Any]]) -> None:
    assert CliRunner().invoke(host, ["list", "--limit", "2"]).exit_code == 0
    assert [query["limit"] for query in asked] == [2]


def test_disabled_hosts_are_asked_for(asked: list[dict[str, Any]]) -> None:
    for option, wanted in (("--disabled", False), ("--enabled", True)):
        assert CliRunner().invoke(host, ["list", option]).exit_code == 0
        assert asked.pop()["enabled"] is wanted


def test_an_unknown_state_is_named() -> None:
    result = CliRunner().invoke(host, ["list", "--state", "lost"])
    assert result.exit_code == 2 and "lost" in result.output


@pytest.mark.parametrize(
    ("command", "arguments", "path"),
    [
        (host, ["drain", "h"], "/v1/hosts/h"),
        (node, ["drain", "h", "n1"], "/v1/hosts/h/nodes/n1"),
        (cell, ["drain", "c1"], "/v1/cells/c1"),
    ],
)
def test_what_is_drained_is_disabled_and_its_instances_are_told(
    monkeypatch: pytest.MonkeyPatch, command: Any, arguments: list[str], path: str
) -> None:
    said: list[tuple[str, str, Any]] = []
    there = {"i1": ("active", "n1"), "i2": ("error", "n1"), "i3": ("active", "n2")}

    def ask(self: object, method: str, path: str, body: object = None, query: Any = None) -> Any:
        if path == "/v1/instances":
            assert query["cell"] == "c1" and query["all_projects"] is True
            assert query.get("host") == (None if command is cell else "h")
            found = [
                {"uuid": uuid, "state": state, "node": node, "host": "h", "project_id": "p"}
                for uuid, (state, node) in there.items()
            ]
            return {"instances": found, "next": None}
        if method == "PUT":
            said.append((method, path, body))
        return {"cell": "c1"}

    monkeypatch.setattr(ServiceClient, "ask", ask)
    result = CliRunner().invoke(command, [*arguments, "--reason", "fire"])
    assert (result.exit_code, said) == (1, [("PUT", path, {"enabled": False, "reason": "fire"})])
    assert "i1" in result.output and "i2" not in result.output
    assert ("i3" in result.output) is (command is not node)
    there.clear()
    result = CliRunner().invoke(command, [*arguments, "--wait", "--json"])
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["instances"] == []


PROGRESS: dict[str, Any] = {
    "host": "h",
    "cell": "c1",
    "node": None,
    "enabled": False,
    "move": True,
    "held_back_by": 0,
    **dict.fromkeys(("left", "moving", "moved", "stuck", "waiting"), 0),
    "staying": [],
}


@pytest.fixture
def drained(monkeypatch: pytest.MonkeyPatch) -> tuple[list[Any], list[dict[str, Any]]]:
    """The words that are said, and the progress of a drain, look for look; the last one stays."""
    said: list[Any] = []
    looks: list[dict[str, Any]] = []

    def ask(self: object, method: str, path: str, body: object = None, query: Any = None) -> Any:
        if path.startswith("/v1/aggregates"):
            members = [{"node": f"n{name}", "host": name, "nodename": name} for name in ("h", "h2", "h")]
            found = {"uuid": "a", "name": "rack", "members": [*members, {"node": "gone", "host": None}]}
            return {"aggregates": [found]} if query else found
        if method == "PUT":
            said.append((path, body))
            return {"cell": "c1"}
        if path == "/v1/hosts/h":
            return {**shown(0, "up"), "host": "h", "enabled": False}
        assert path.endswith("/drain"), path
        look = looks.pop(0) if len(looks) > 1 else looks[0]
        return {**PROGRESS, **look}

    monkeypatch.setattr(ServiceClient, "ask", ask)
    monkeypatch.setattr(drain, "WAIT_SECONDS", 0.0)
    return said, looks


STUCK = {"instance": "i7", "state": "lost", "reason": "it is not there", "tries": 0}


def test_a_drain_with_moves_waits_until_all_are_moved(drained: Any) -> None:
    said, looks = drained
    looks += [{"left": 3, "waiting": 3}, {"left": 2, "moving": 1, "waiting": 1, "moved": 1}, {"moved": 3}]
    result = CliRunner().invoke(host, ["drain", "h", "--move", "--wait", "--reason", "fire"])
    assert result.exit_code == 0, result.output
    assert said == [("/v1/hosts/h", {"enabled": False, "reason": "fire", "move": True})]
    assert "0 left, 0 moving, 3 moved" in result.stdout
    assert len(looks) == 1


def test_a_drain_with_moves_ends_when_what_is_left_cannot_move(drained: Any) -> None:
    _, looks = drained
    looks += [
        {"left": 2, "moving": 1, "stuck": 1, "staying": [STUCK]},
        {"left": 1, "stuck": 1, "moved": 1, "staying": [STUCK]},
    ]
    result = CliRunner().invoke(host, ["drain", "h", "--move", "--wait"])
    assert (result.exit_code, len(looks)) == (1, 1), result.output
    assert all(each in result.stdout for each in ("i7", "lost", "it is not there", "1 cannot move"))
    result = CliRunner().invoke(host, ["drain", "h", "--move", "--wait", "--json"])
    assert (result.exit_code, json.loads(result.stdout)["staying"]) == (1, [STUCK])


def test_a_drain_is_paused(drained: Any) -> None:
    said, looks = drained
    looks += [{"left": 2, "moving": 1, "waiting": 1, "move": False}]
    result = CliRunner().invoke(node, ["drain", "h", "n1", "--pause"])
    assert result.exit_code == 0, result.output
    assert [(path, body["move"]) for path, body in said] == [("/v1/hosts/h/nodes/n1", False)]
    assert "paused" in result.stdout
    for option in ("--move", "--wait"):
        assert CliRunner().invoke(host, ["drain", "h", "--pause", option]).exit_code == 2


def test_a_host_is_shown_with_the_progress_of_its_drain(drained: Any) -> None:
    _, looks = drained
    looks += [{"left": 2, "moving": 1, "stuck": 1, "staying": [STUCK]}]
    result = CliRunner().invoke(host, ["show", "h"])
    assert result.exit_code == 0, result.output
    assert all(each in result.stdout for each in ("2 left, 1 moving", "it is not there"))
    found = json.loads(CliRunner().invoke(host, ["show", "h", "--json"]).stdout)
    assert found["drain"]["staying"] == [STUCK]
    looks[0] |= {"move": False, "moving": 0}
    assert "drain" not in json.loads(CliRunner().invoke(host, ["show", "h", "--json"]).stdout)


def test_the_hosts_of_an_aggregate_are_drained(drained: Any) -> None:
    said, looks = drained
    looks += [{"moved": 2}]
    result = CliRunner().invoke(aggregate, ["drain", "rack", "--move", "--wait"])
    assert result.exit_code == 0, result.output
    assert [path for path, _ in said] == ["/v1/hosts/h", "/v1/hosts/h2"]
    assert "node gone" in result.stdout


def test_a_file_without_authorities_is_named(tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    for content in (None, "not a certificate"):
        if content is not None:
            file.write_text(content)
        with pytest.raises(OperatorError, match=f"{file} has no authorities"):
            ServiceClient(ServiceConnection("conductor", "https://127.0.0.1:1", "--url", "token", file)).ask(
                "GET", "/v1/cells"
            )
