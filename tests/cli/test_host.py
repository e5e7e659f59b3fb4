"""``roost host``: what it prints of what a conductor answers."""

import json
from typing import Any

import pytest
from click.testing import CliRunner

from roost.cli.conductor_client import ConductorClient
from roost.cli.host import host

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
        first = query["marker"] or 0
        last = first + min(query["limit"], 3)
        hosts = [shown(number, state) for number, state in enumerate(STATES)][first:last]
        return {"hosts": hosts, "cells_down": [], "next": last if last < len(STATES) else None}

    monkeypatch.setattr(ConductorClient, "ask", ask)
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


def test_an_unknown_state_is_named() -> None:
    result = CliRunner().invoke(host, ["list", "--state", "lost"])
    assert result.exit_code == 2 and "lost" in result.output
