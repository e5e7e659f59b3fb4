"""``roost events``: pages of what happened, and a stream that outlives outages."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from roost.cli import events as module
from roost.cli.events import events
from roost.cli.service_client import RequestRefused, ServiceClient, ServiceFailed
from roost.model.errors import OperatorError
from roost.state.api_database.event_types import EVENT_KINDS


def event(number: int) -> dict[str, Any]:
    return {
        "at": float(number),
        "kind": "host_down",
        "cell": "cell1",
        "host": f"h{number}",
        "node": None,
        "instance": None,
        "name": None,
        "detail": None,
        "by": None,
    }


def page(*numbers: int, more: bool = False, away: tuple[str, ...] = ()) -> dict[str, Any]:
    events = [event(each) for each in numbers]
    return {"events": events, "next": f"after {numbers}", "more": more, "cells_down": [*away]}


class Asked:
    """A conductor that gives these answers one after the other, and then is interrupted."""

    def __init__(self, answers: tuple[Any, ...]) -> None:
        self.answers = list(answers)
        self.markers: list[str | None] = []
        self.pauses: list[float] = []

    def ask(self, method: str, path: str, body: object = None, query: Any = None) -> Any:
        assert (method, path) == ("GET", "/v1/events")
        self.markers.append(query["marker"])
        if not self.answers:
            raise KeyboardInterrupt
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture
def asking(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Asked]:
    def make(*answers: Any) -> Asked:
        asked = Asked(answers)
        monkeypatch.setattr(ServiceClient, "ask", lambda self, *given, **named: asked.ask(*given, **named))
        monkeypatch.setattr(module.time, "sleep", asked.pauses.append)
        return asked

    return make


def run(*options: str) -> Result:
    return CliRunner().invoke(events, options)


def test_all_pages_are_listed(asking) -> None:
    asked = asking(page(1, 2, more=True), page(3))
    found = run("--json")
    assert [each["host"] for each in json.loads(found.stdout)["events"]] == ["h1", "h2", "h3"]
    assert asked.markers == [None, "after (1, 2)"]
    asking(page(1))
    assert run("--format", "value").stdout == "1970-01-01 00:00:01\thost_down\tcell1\th1\t\t\n"


def test_quiet_prints_what_each_event_is_about(asking) -> None:
    found = page(1, 2)
    found["events"][1] |= {"node": "n2", "instance": "i2"}
    asking(found)
    assert run("--quiet").stdout == "h1\ni2\n"


def test_followed_through_outages_from_where_it_was(asking) -> None:
    away = OperatorError("the conductor does not answer")
    busy = ServiceFailed("answers 503", None)
    asked = asking(page(1), away, busy, page(2, more=True), page(3))
    found = run("--follow", "--json")
    assert [json.loads(line)["host"] for line in found.stdout.splitlines()] == ["h1", "h2", "h3"]
    first = "after (1,)"
    assert asked.markers == [None, first, first, first, "after (2,)", "after (3,)"]
    assert found.stderr.count("does not answer") == 1
    assert found.stderr.count("answers again") == 1
    assert found.exit_code != 0


def test_a_followed_event_is_a_line(asking) -> None:
    asking(page(1, 2))
    assert run("--follow").stdout.splitlines()[1] == "1970-01-01 00:00:02  host_down           cell1  h2"
    done = {**event(1), "detail": "fan", "by": {"user_id": "olga", "project_id": "p", "request_id": "r"}}
    asking({**page(), "events": [done]})
    assert run("--follow").stdout.splitlines()[0].endswith("cell1  h1  fan  by olga")


def test_cells_that_cannot_be_asked_are_named(asking) -> None:
    asking(page(1, away=("east",)))
    listed = run()
    assert "cell east cannot be asked" in listed.stderr
    asking(page(1, away=("east",)))
    assert json.loads(run("--json").stdout)["cells_down"] == ["east"]
    asking(page(1, away=("east",)), page(away=("east",)), page(2))
    followed = run("--follow")
    assert followed.stderr.count("cell east cannot be asked") == 1
    assert followed.stderr.count("cell east can be asked again") == 1
    assert len(followed.stdout.splitlines()) == 2


def test_a_conductor_that_tells_nothing_of_cells_is_read(asking) -> None:
    earlier = page(1)
    del earlier["cells_down"], earlier["events"][0]["by"]
    asking(earlier)
    found = run()
    assert ("h1" in found.stdout, found.stderr) == (True, "")


def test_token_that_expires_is_renewed_once(asking) -> None:
    expired = RequestRefused(401, "expired")
    asking(page(1), expired, page(2))
    assert [json.loads(line)["host"] for line in run("--follow", "--json").stdout.splitlines()] == [
        "h1",
        "h2",
    ]
    asked = asking(page(1), expired, expired)
    assert isinstance(run("--follow").exception, RequestRefused)
    assert len(asked.markers) == 3


@pytest.mark.parametrize("error", [OperatorError("does not answer"), RequestRefused(403, "forbidden")])
def test_what_fails_from_the_beginning_ends_the_command(asking, error: OperatorError) -> None:
    asked = asking(error)
    assert run("--follow").exception is error
    assert asked.pauses == []


def test_columns_are_refused_where_lines_are_whole() -> None:
    assert run("--follow", "--columns", "event").exit_code == 2


def test_every_kind_is_in_the_documentation() -> None:
    page = (Path(__file__).parents[2] / "docs" / "api-v1.md").read_text()
    section = page.split("\n## Events\n")[1].split("\n## ")[0]
    assert [kind for kind in EVENT_KINDS if f"`{kind}`" not in section] == []
