"""The relay of agents' reports without a placement service: one line when it goes, one when it is back."""

import asyncio

import httpx
import pytest
from structlog.testing import capture_logs

from roost.agent.protocol.errors import EndpointUnavailable
from roost.conductor.agent_endpoint.relay import ProviderRelay
from roost.placement.client.http import HttpPlacement
from roost.web.auth.credentials import FixedCredentials

UUID = "4f1c4f0e-5c26-4c6a-9d1b-2f6b1c1c8f11"


@pytest.mark.parametrize("away", ["refuses connections", "answers 503"])
def test_placement_that_is_away_is_told_once_with_what_is_wrong_and_once_that_it_is_back(away: str) -> None:
    is_there = False

    async def placement(request: httpx.Request) -> httpx.Response:
        if is_there:
            return httpx.Response(404, json={"errors": [{"status": 404, "detail": "no provider"}]})
        if away == "answers 503":
            return httpx.Response(503, json={"errors": [{"status": 503, "detail": "its database is full"}]})
        raise httpx.ConnectError("Connection refused")

    async def run() -> None:
        nonlocal is_there
        transport = httpx.MockTransport(placement)
        client = httpx.AsyncClient(transport=transport)
        async with HttpPlacement(FixedCredentials("http://placement", "admin"), client=client) as there:
            relay = ProviderRelay(there)
            for round_ in (False, True, False):
                is_there = round_
                for _ in range(3):
                    if is_there:
                        assert await relay.find(UUID) is None
                    else:
                        with pytest.raises(EndpointUnavailable, match="placement"):
                            await relay.find(UUID)

    with capture_logs() as logs:
        asyncio.run(run())
    told = [each for each in logs if "agents" in each["event"]]
    assert [each["event"].split(":")[0] for each in told] == [
        "placement is away",
        "placement is there again",
        "placement is away",
    ]
    assert ("Connection refused" if away == "refuses connections" else "database is full") in told[0]["error"]
