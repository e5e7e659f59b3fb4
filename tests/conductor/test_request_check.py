"""Requests are checked before they are accepted, as far as the scheduler can tell."""

import asyncio
from typing import Any

import pytest

from roost.model.spec import UnreadKey
from roost.scheduler.errors import SchedulerUnavailable, UnknownZone
from support.conductor_api import ADMIN, FLAVOR, api, detail


def flavored(**extra_specs: str) -> dict[str, Any]:
    return {"flavor": {**FLAVOR, "extra_specs": {k.replace("__", ":"): v for k, v in extra_specs.items()}}}


@pytest.mark.parametrize(
    ("body", "named"),
    [
        (flavored(resource__CUSTOM_GPU="1"), "did you mean resources:CUSTOM_GPU?"),
        (flavored(resources__CUSTOM_GPU="1"), "CUSTOM_GPU"),
        (flavored(trait__CUSTOM_NO="required"), "CUSTOM_NO"),
        (flavored(hw__cpu_policy="pinned"), "hw:cpu_policy='pinned'"),
        (flavored(pci_passthrough__alias="gpu:1"), "gpu"),
        ({"flavor": FLAVOR, "availability_zone": "moon"}, "no availability zone 'moon'"),
        ({"flavor": FLAVOR, "required_traits": ["CUSTOM_NO"]}, "CUSTOM_NO"),
        ({"flavor": FLAVOR, "scheduler_hints": {"gruop": "x"}}, "did you mean group?"),
        ({"flavor": {"vcpus": 0, "memory_mb": 0}}, "no resources"),
    ],
)
def test_what_can_never_be_served_is_not_accepted(tmp_path, body: dict[str, Any], named: str) -> None:
    async def run() -> None:
        async with api(tmp_path) as (_, client):
            answer = await client.post("/v1/instances", json=body)
            assert answer.status_code == 400, answer.text
            assert named in detail(answer)
            assert (await client.get("/v1/instances")).json()["instances"] == []

    asyncio.run(run())


def test_what_has_no_effect_is_a_warning(tmp_path) -> None:
    async def run() -> None:
        async with api(tmp_path) as (_, client):
            body = {"flavor": FLAVOR, "scheduler_hints": {"same_host": "a"}}
            [told] = (await client.post("/v1/instances", json=body)).json()["warnings"]
            assert (told["where"], told["key"]) == ("hint", "same_host")
            assert (await client.post("/v1/instances", json={"flavor": FLAVOR})).json()["warnings"] == []

    asyncio.run(run())


def test_a_request_is_accepted_while_the_scheduler_is_away(tmp_path, monkeypatch) -> None:
    async def run() -> None:
        async with api(tmp_path) as (now, client):

            async def away(spec: object) -> tuple[UnreadKey, ...]:
                raise SchedulerUnavailable("it is away")

            monkeypatch.setattr(now.scheduler, "check_request", away)
            answer = await client.post("/v1/instances", json=flavored(trait__CUSTOM_NO="required"))
            assert answer.status_code == 202
            await now.settle()
            [one] = answer.json()["instances"]
            shown = (await client.get(f"/v1/instances/{one}", headers=ADMIN)).json()
            assert shown["state"] == "error"
            assert "CUSTOM_NO" in shown["reason"]

    asyncio.run(run())


def test_a_zone_that_the_scheduler_does_not_know_yet_is_looked_up(tmp_path, monkeypatch) -> None:
    async def run() -> None:
        async with api(tmp_path) as (now, client):

            async def unknown(spec: object) -> tuple[UnreadKey, ...]:
                raise UnknownZone("there is no availability zone 'new'")

            monkeypatch.setattr(now.scheduler, "check_request", unknown)
            body = {"flavor": FLAVOR, "availability_zone": "new"}
            assert (await client.post("/v1/instances", json=body)).status_code == 400
            await now.aggregates.create("one", {"availability_zone": "new"})
            assert (await client.post("/v1/instances", json=body)).status_code == 202

    asyncio.run(run())


def test_an_instance_tells_its_zone(tmp_path) -> None:
    async def run() -> None:
        async with api(tmp_path) as (now, client):
            body = {"flavor": FLAVOR, "availability_zone": "nova"}
            [one] = (await client.post("/v1/instances", json=body)).json()["instances"]
            assert (await client.get(f"/v1/instances/{one}")).json()["availability_zone"] == "nova"
            await now.settle()
            shown = (await client.get(f"/v1/instances/{one}")).json()
            assert (shown["state"], shown["availability_zone"]) == ("active", "nova")

    asyncio.run(run())
