"""`roost status`: what of the answers of a cloud's services is wrong, worst first."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

import pytest

from roost.bench.loopback import free_port
from roost.cli.connection import connection_to
from roost.cli.status.checks import MOST_RUNS, StatusReport, checked
from support.processes import run_roost

NOW = 1_000_000.0
HOST = {
    "host": "h1", "cell": "a", "state": "up", "enabled": True, "reason": None, "held": None, "refused": None,
    "added_at": 1.0,
}  # fmt: skip
ENABLED = {"enabled": True, "reason": None}
WELL: dict[str, Any] = {
    "/readyz": {"ready": True, "checks": [{"name": "database", "passed": True}]},
    "/v1/services": {
        "services": [
            {"name": "conductor m", "kind": "conductor", "cell": None, "state": "up", "since": 1.0},
            {"name": "cell-conductor m", "kind": "cell-conductor", "cell": "a", "state": "up", "since": 1.0},
        ],
        "features": [{"name": "swaps", "held_back_by": 0}],
        "cells_down": [],
    },
    "/v1/cells": {
        "cells": [
            {"name": "a", "state": "up", "instances": {"active": 3}, "conductors": 1, "hosts": 2, **ENABLED},
            {"name": "cell0", "state": "up", "instances": {}, "conductors": 0, "hosts": 0, **ENABLED},
        ]
    },
    "/v1/hosts": {"hosts": [HOST, {**HOST, "host": "h2"}], "next": None, "cells_down": []},
    "/v1/audit": {"round": 3, "found": 0, "asks": None, "unread": {}, "findings": [], "next": None},
    "/v1/maintenances": {"maintenances": [], "next": None},
    "/v1/scheduler/records": {"records": [], "next": None},
}


@contextmanager
def served(answers: dict[str, Any], missing: tuple[str, ...] = ()) -> Iterator[str]:
    """A service that answers with these bodies, with 503 where one says that it is not ready, by its path."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = urlsplit(self.path).path
            body = answers.get(path) if path not in missing else None
            status = 404 if body is None else 503 if body.get("ready") is False else 200
            text = json.dumps(body or {"errors": [{"detail": "no such path"}]}).encode()
            self.send_response(status)
            self.send_header("content-length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, format: str, *arguments: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def report(answers: dict[str, Any], missing: tuple[str, ...] = ()) -> StatusReport:
    with served(answers, missing) as url:
        services = ("conductor", "scheduler", "placement")
        return checked({each: connection_to(each, url, "admin") for each in services}, NOW, 10)


def changed(path: str, *keys: str | int, to: object) -> dict[str, Any]:
    """Answers of a cloud that is well but for one value."""
    answers = deepcopy(WELL)
    at = answers[path]
    for key in keys[:-1]:
        at = at[key]
    at[keys[-1]] = to
    return answers


def test_a_cloud_that_is_well_has_no_findings() -> None:
    found = report(WELL)
    assert (found.findings, found.wrong) == ((), False)
    assert found.counts == {
        "processes": 2,
        "cells": 2,
        "hosts": 2,
        "hosts up": 2,
        "requests in 10 min": 0,
        "refused": 0,
    }
    assert found.summary.startswith("nothing is wrong: 2 processes, 2 cells")


def in_maintenance(state: str, reason: str | None) -> dict[str, Any]:
    """The answers where a maintenance is in a state."""
    one = {"uuid": "5c1d8e6a-0000-4000-8000-000000000001", "state": state, "left": 1, "reason": reason}
    return changed("/v1/maintenances", "maintenances", to=[one])


@pytest.mark.parametrize(
    ("answers", "level", "about", "says"),
    [
        (
            changed(
                "/readyz",
                "checks",
                0,
                to={"name": "ledger", "passed": False, "reason": "60 commits behind"},
            ),
            "fails",
            "http://",
            "ledger: 60 commits behind",
        ),
        (changed("/v1/services", "services", 0, "state", to="down"), "look", "conductor m", "is down"),
        (changed("/v1/services", "features", 0, "held_back_by", to=7), "note", "swaps", "7 processes"),
        (changed("/v1/cells", "cells", 0, "state", to="down"), "fails", "cell a", "database"),
        (changed("/v1/cells", "cells", 0, "state", to="no_conductor"), "fails", "cell a", "no conductor"),
        (changed("/v1/cells", "cells", 0, "state", to="no_host_up"), "fails", "cell a", "of its 2 hosts"),
        (changed("/v1/cells", "cells", 0, "enabled", to=False), "note", "cell a", "disabled"),
        (changed("/v1/hosts", "hosts", 1, "state", to="down"), "look", "cell a", "1 host is down: h2"),
        (changed("/v1/hosts", "hosts", 1, "held", to="restored"), "look", "host h2", "no orders: restored"),
        (changed("/v1/hosts", "hosts", 1, "refused", to="no room"), "look", "host h2", "no room"),
        (changed("/v1/hosts", "hosts", 1, "enabled", to=False), "note", "hosts", "1 host is disabled"),
        (changed("/v1/audit", "asks", to="200 repairs at once"), "look", "audit", "200 repairs at once"),
        (changed("/v1/audit", "found", to=4), "look", "audit", "4 contradictions"),
        (in_maintenance("running", None), "note", "maintenance 5c1d8e6a", "running, 1 host is left"),
        (in_maintenance("paused", "h2 is stuck"), "look", "maintenance 5c1d8e6a", "is left: h2 is stuck"),
    ],
)
def test_what_is_wrong_is_told_with_its_part_of_the_cloud(answers, level: str, about: str, says: str) -> None:
    found = report(answers)
    [finding] = found.findings
    assert finding.level == level
    assert about in finding.about
    assert says in finding.says
    assert found.wrong == (level != "note")


@pytest.mark.parametrize(("placed", "level"), [(2, "look"), (6, "note")])
def test_refusals_are_counted_by_their_reasons_and_want_a_look_if_most_are_refused(placed, level) -> None:
    refusals = ["no room", "no zone", "no room", "no room", "no room", *[None] * placed]
    runs = [{"run": {"refusal": reason}} for reason in refusals]
    found = report(changed("/v1/scheduler/records", "records", to=runs))
    assert [each.says for each in found.findings] == ["4 in 10 min: no room", "1 in 10 min: no zone"]
    assert {each.level for each in found.findings} == {level}
    assert found.counts["refused"] == 5


def test_more_runs_than_are_counted_are_told() -> None:
    runs = [{"run": {"refusal": None if number else "no room"}} for number in range(MOST_RUNS)]
    answers = changed("/v1/scheduler/records", "records", to=runs)
    assert [each.says for each in report(answers).findings] == ["1 in 10 min: no room"]
    answers["/v1/scheduler/records"]["next"] = "further"
    found = report(answers)
    assert [each.says for each in found.findings] == [
        "1 of the newest 1,000 requests: no room",
        "more than 1,000 requests in 10 min: the newest 1,000 alone are counted",
    ]
    assert (found.wrong, found.counts["newest requests in 10 min"]) == (False, 1000)


def test_what_fails_comes_before_what_wants_a_look_and_that_before_notes() -> None:
    answers = changed("/v1/hosts", "hosts", 0, "enabled", to=False)
    answers["/v1/hosts"]["hosts"][1]["state"] = "down"
    answers["/v1/cells"]["cells"][0]["state"] = "no_conductor"
    assert [each.level for each in report(answers).findings] == ["fails", "look", "note"]


def test_more_names_than_a_line_has_room_for_are_a_number() -> None:
    hosts = [{**HOST, "host": f"h{number}", "state": "down"} for number in range(1200)]
    found = report(changed("/v1/hosts", "hosts", to=hosts))
    assert [each.says for each in found.findings] == ["1,200 hosts are down: h0, h1, h2, h3, h4, ..."]


def test_a_service_that_does_not_answer_fails_and_one_that_nobody_named_is_a_note() -> None:
    nowhere = f"http://127.0.0.1:{free_port()}"
    with served(WELL) as url:
        environment = {"ROOST_TOKEN": "admin"}
        connections = {
            "conductor": connection_to("conductor", url, "admin"),
            "scheduler": connection_to("scheduler", nowhere, "admin"),
        }
        found = checked(connections, NOW, 10)
        assert found.findings[0].level == "fails"
        assert nowhere in found.findings[0].says
        unnamed = connection_to("scheduler", environment=environment)
        if unnamed.by_default:
            connections["scheduler"] = unnamed
            assert {each.level for each in checked(connections, NOW, 10).findings} <= {"note"}


def test_an_address_of_another_program_is_told() -> None:
    found = report(WELL, missing=("/readyz",))
    assert {each.level for each in found.findings} == {"fails"}
    assert all("it has no GET /readyz" in each.says for each in found.findings)


def test_a_part_that_a_token_may_not_see_is_not_known() -> None:
    [finding] = report(WELL, missing=("/v1/audit",)).findings
    assert (finding.level, finding.about) == ("note", "audit")
    assert "not known" in finding.says


def test_where_not_all_could_be_asked_it_is_not_said_that_nothing_is_wrong() -> None:
    found = report(WELL, missing=("/v1/audit", "/v1/hosts"))
    assert found.unknown == ("hosts", "audit")
    assert found.summary.startswith(
        "nothing is known to be wrong, but not all could be asked: hosts, audit; 2 "
    )
    told = report(changed("/v1/cells", "cells", 0, "state", to="no_conductor"), missing=("/v1/audit",))
    assert told.summary.startswith("something is wrong: ")


def test_a_status_of_which_nothing_could_be_asked_could_not_run() -> None:
    with served(WELL, missing=tuple(path for path in WELL if path != "/readyz")) as url:
        blind = run_roost("status", "--url", url, "--token", "nobodys")
    assert (blind.returncode, "nothing is wrong" in blind.stdout) == (2, False), blind.stdout


def test_a_service_that_is_away_is_asked_once_and_named_once() -> None:
    nowhere = f"http://127.0.0.1:{free_port()}"
    services = ("conductor", "scheduler", "placement")
    found = checked({each: connection_to(each, nowhere, "admin") for each in services}, NOW, 10)
    assert [(each.level, each.about) for each in found.findings[:3]] == [("fails", each) for each in services]
    assert all("does not answer: Connection refused" in each.says for each in found.findings[:3])
    notes = {each.about: each.says for each in found.findings[3:]}
    assert notes["cells"] == "not known: the conductor does not answer"
    assert notes["refusals"] == "not known: the scheduler does not answer"
    assert found.unknown == ("services", "cells", "hosts", "audit", "maintenances", "refusals")


def test_the_exit_status_says_whether_something_is_wrong() -> None:
    with served(WELL) as url:
        well = run_roost("status", "--url", url, "--token", "admin")
        assert (well.returncode, well.stdout.startswith("nothing is wrong")) == (0, True), well.stderr
    with served(changed("/v1/cells", "cells", 0, "state", to="no_conductor")) as url:
        wrong = run_roost("status", "--url", url, "--token", "admin")
        assert (wrong.returncode, "cell a" in wrong.stdout) == (1, True)
        as_json = run_roost("status", "--url", url, "--token", "admin", "--json")
        assert json.loads(as_json.stdout)["findings"][0]["about"] == "cell a"
        assert as_json.returncode == 1
    nobody = run_roost("status", "--url", f"http://127.0.0.1:{free_port()}", "--token", "admin")
    assert nobody.returncode == 1
