"""The conductor's HTTP API on conductors with real databases."""

import asyncio
from contextlib import asynccontextmanager

import httpx

from roost.conductor.http import create_app
from roost.conductor.neighbours import Neighbours
from roost.web.auth import NoAuth
from roost.web.auth.rules import PolicyRules
from support.conducting import Conductors, conducting

FLAVOR = {"vcpus": 1, "memory_mb": 0}
TOKEN = {"X-Auth-Token": "user:project", "X-Roles": "member"}
READER = {"X-Auth-Token": "rita:project", "X-Roles": "reader"}
OTHER = {"X-Auth-Token": "otto:other", "X-Roles": "member"}
ADMIN = {"X-Auth-Token": "admin", "X-Roles": "admin"}
OPERATOR = {"X-Auth-Token": "olga:project", "X-Roles": "admin"}
"""An administrator whose token is of the project that most tests ask for."""


@asynccontextmanager
async def api(directory, neighbours: Neighbours | None = None, rules: PolicyRules | None = None):
    async with conducting(directory) as now:
        rooms = (now.super, now.requests, now.aggregates, now.groups, now.placement, NoAuth())
        app = create_app(*rooms, rules, neighbours=neighbours)
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://roost", headers=TOKEN) as client:
            yield now, client


def hold(now: Conductors, monkeypatch) -> asyncio.Event:
    """Keep requests on their way to their cells until the event is set."""
    go, place = asyncio.Event(), now.scheduler.select_destinations

    async def later(*arguments, **named):
        await go.wait()
        return await place(*arguments, **named)

    monkeypatch.setattr(now.scheduler, "select_destinations", later)
    return go


def detail(answer: httpx.Response) -> str:
    [error] = answer.json()["errors"]
    assert error["status"] == answer.status_code
    text: str = error["detail"]
    return text


async def asked_for(client: httpx.AsyncClient, count: int, headers: dict[str, str] = TOKEN) -> list[str]:
    """The new instances of the project of a token."""
    answer = await client.post("/v1/instances", json={"flavor": FLAVOR, "count": count}, headers=headers)
    assert answer.status_code == 202, answer.text
    found: list[str] = answer.json()["instances"]
    return found


async def listed(client: httpx.AsyncClient, headers: dict[str, str] = TOKEN, **query: str) -> list[str]:
    """The instances on one page."""
    answer = await client.get("/v1/instances", params=query, headers=headers)
    assert answer.status_code == 200, answer.text
    return [each["uuid"] for each in answer.json()["instances"]]
