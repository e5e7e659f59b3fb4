"""Ids of requests: ours in every answer, the one that it was sent for in the log."""

import httpx
import pytest
from structlog.testing import capture_logs
from structlog.typing import EventDict

from roost.process.logs import RequestIds, current_requests
from roost.web.edge import Edge
from roost.web.watches import RequestLines
from support.placement_api import Api


def note_requests(_logger: object, _method: str, event: EventDict) -> EventDict:
    event["requests"] = current_requests()
    return event


@pytest.mark.parametrize(
    ("cause", "told"),
    [
        ("req-00000000-aaaa-0000-0000-000000000000", True),
        ("req-00000000-aaaa-0000-0000-00000000000", False),
        ("anything", False),
    ],
)
def test_the_log_names_the_request_that_it_was_sent_for(
    api: Api, monkeypatch: pytest.MonkeyPatch, cause: str, told: bool
) -> None:
    async def fail() -> None:
        raise KeyError("bug")

    async def ask() -> httpx.Response:
        transport = httpx.ASGITransport(Edge(api.app, watches=[RequestLines()]))
        async with httpx.AsyncClient(transport=transport, base_url="http://roost") as client:
            headers = {"x-auth-token": "admin", "x-openstack-request-id": cause}
            return await client.get("/resource_providers/x", headers=headers)

    monkeypatch.setattr(api.ledger, "current", fail)
    with capture_logs([note_requests]) as logged:
        answer = api.run(ask())
    assert answer.status_code == 500
    own = answer.headers["x-openstack-request-id"]
    assert own != cause
    assert [each["requests"] for each in logged] == [(RequestIds(own, cause if told else None),)]
