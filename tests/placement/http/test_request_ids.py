"""Ids of requests: ours in every answer, the one that it was sent for in the log."""

import pytest
from structlog.testing import capture_logs

from support.placement_api import Api


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

    monkeypatch.setattr(api.ledger, "current", fail)
    with capture_logs() as logged:
        answer = api.ask("GET", "/resource_providers/x", x_openstack_request_id=cause)
    own = answer.headers["x-openstack-request-id"]
    assert own != cause
    assert [each["request"] for each in logged] == [f"{own} for {cause}" if told else own]
