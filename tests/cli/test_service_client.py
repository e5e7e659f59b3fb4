"""Commands that ask a service: a POST has a key, and is sent again with it while nobody tells its fate."""

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from roost.cli import service_client
from roost.cli.connection import connection_to
from roost.cli.service_client import ATTEMPTS, RequestRefused, ServiceClient
from roost.model.errors import OperatorError
from roost.web.errors import NoOperation, OutcomeUncertain
from roost.web.idempotency import KeyInWork

MADE = httpx.Response(201, json={"uuid": "made"})


def error(status: int, code: str) -> httpx.Response:
    return httpx.Response(status, json={"errors": [{"detail": "says so", "code": code, "status": status}]})


UNKNOWN = error(503, OutcomeUncertain.code)
IN_WORK = error(409, KeyInWork.code)


class Asked:
    """A service that gives these answers, and what it was asked."""

    def __init__(self, *answers: httpx.Response | Exception) -> None:
        self._answers = list(answers)
        self.keys: list[str | None] = []
        self.pauses: list[float] = []
        self.client = ServiceClient(connection_to("conductor", environment={}), pause=self.pauses.append)

    def request(self, method: str, url: str, **named: Any) -> httpx.Response:
        self.keys.append(named["headers"].get("Idempotency-Key"))
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture
def asking(monkeypatch) -> Callable[..., Asked]:
    def make(*answers: httpx.Response | Exception) -> Asked:
        asked = Asked(*answers)
        monkeypatch.setattr(
            httpx.Client, "request", lambda _, *given, **named: asked.request(*given, **named)
        )
        return asked

    return make


@pytest.mark.parametrize(
    "lost", [UNKNOWN, IN_WORK, httpx.ReadTimeout("late"), httpx.RemoteProtocolError("cut")]
)
def test_what_nobody_tells_the_fate_of_is_sent_again_with_its_key(asking, lost) -> None:
    asked = asking(lost, lost, MADE)
    assert asked.client.ask("POST", "/v1/server-groups", {}) == {"uuid": "made"}
    assert asked.pauses == [1.0, 2.0]
    assert len(asked.keys) == 3
    assert len(set(asked.keys)) == 1 and asked.keys[0]


def test_each_request_has_a_key_of_its_own_and_reads_have_none(asking) -> None:
    asked = asking(MADE, MADE, httpx.Response(200, json={}))
    for method in ("POST", "POST", "GET"):
        asked.client.ask(method, "/v1/server-groups")
    assert len(set(asked.keys)) == 3 and asked.keys[2] is None


def test_it_ends_with_the_error_if_nobody_tells(asking) -> None:
    asked = asking(*[UNKNOWN] * ATTEMPTS)
    with pytest.raises(OperatorError, match="503: says so"):
        asked.client.ask("POST", "/v1/instances", {})
    assert len(asked.keys) == ATTEMPTS


@pytest.mark.parametrize("then", [httpx.ConnectError("refused"), error(503, "conductor.unavailable")])
def test_an_attempt_that_came_to_nothing_tells_nothing_of_the_one_before(asking, then) -> None:
    """The user of a command that fails types it again, with a new key."""
    asked = asking(UNKNOWN, then, MADE)
    assert asked.client.ask("POST", "/v1/instances", {}) == {"uuid": "made"}
    assert len(set(asked.keys)) == 1
    asked = asking(UNKNOWN, *[then] * (ATTEMPTS - 1))
    with pytest.raises(OperatorError, match="whether the request was carried out is not known"):
        asked.client.ask("POST", "/v1/instances", {})


def test_a_proxy_that_gives_up_tells_nothing(asking) -> None:
    asked = asking(httpx.Response(504, text="<html>Gateway Time-out</html>"), MADE)
    assert asked.client.ask("POST", "/v1/instances", {}) == {"uuid": "made"}
    assert len(set(asked.keys)) == 1


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (error(409, "placement.undefined_code"), RequestRefused),
        (error(503, "placement.undefined_code"), OperatorError),
        (httpx.ConnectError("refused"), OperatorError),
    ],
)
def test_what_is_told_is_not_asked_again(asking, answer, kind) -> None:
    asked = asking(answer)
    with pytest.raises(kind):
        asked.client.ask("POST", "/v1/instances", {})
    assert asked.pauses == []


@pytest.mark.parametrize(
    "answer",
    [error(404, NoOperation.code), httpx.Response(404, json={"errors": [{"detail": "no", "status": 404}]})],
    ids=["another service", "placement"],
)
def test_a_service_without_the_operation_is_not_the_one_that_was_meant(asking, answer) -> None:
    asked = asking(answer)
    with pytest.raises(OperatorError, match=r"is no conductor, or an older one: it has no GET /v1/instances"):
        asked.client.ask("GET", "/v1/instances")


def test_a_resource_that_is_not_there_is_a_refusal(asking) -> None:
    with pytest.raises(RequestRefused, match="says so"):
        asking(error(404, "conductor.not_found")).client.ask("GET", "/v1/instances/x")


def test_the_password_of_an_address_is_not_told(asking) -> None:
    asked = asking(httpx.ConnectError("refused"))
    for url in ("http://me:sesame@cloud", "http:/me:sesame@cloud", "ftp://me:sesame@cloud"):
        with pytest.raises(OperatorError) as failed:
            ServiceClient(connection_to("conductor", url, environment={})).ask("GET", "/v1/cells")
        assert "sesame" not in str(failed.value)
    assert asked.pauses == []


def test_the_codes_are_those_of_the_services() -> None:
    """They are written out, as the import of the services' modules would slow down every command."""
    assert set(service_client._UNTOLD) == {OutcomeUncertain.code, KeyInWork.code}
    assert NoOperation.code == service_client._NO_OPERATION
