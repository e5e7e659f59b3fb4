"""A request for hosts that is sent again with its key claims once, and has the answer of the first one."""

import asyncio
import random
from pathlib import Path
from typing import Any

import httpx
import pytest

from roost.scheduler.api.app import create_app
from roost.scheduler.api.kept_answers import SchedulerAnswers
from roost.scheduler.errors import ClaimsInDoubt
from roost.scheduler.gateways import Decided, Gateway, GatewayWrapper
from roost.scheduler.request.scheduling_request import SchedulingRequest
from roost.storage import DatabaseUnavailable, OutcomeUnknown
from roost.web.auth import NoAuth
from support.clouds import flat
from support.scheduling_api import SERVICE, SPEC, SchedulingApi, error_of, scheduling

PATH = "/v1/select_destinations"


async def ask(client: httpx.AsyncClient, key: str | None, **body: Any) -> httpx.Response:
    headers = {} if key is None else {"Idempotency-Key": key}
    return await client.post(PATH, json={"request_spec": SPEC, **body}, headers=headers)


def another(api: SchedulingApi, answers: SchedulerAnswers | None = None) -> httpx.AsyncClient:
    """A client of another process with the same placement and records."""
    app = create_app(api.service, NoAuth(), answers=answers)
    transport = httpx.ASGITransport(app)
    return httpx.AsyncClient(transport=transport, base_url="http://roost", headers=SERVICE)


class Lost(GatewayWrapper):
    """A gateway some of whose decisions end with an error, carried out or not: ``fate`` says which."""

    def __init__(self, gateway: Gateway, fate: Any) -> None:
        super().__init__(gateway)
        self._fate = fate

    async def decide(self, request: SchedulingRequest) -> Decided:
        carried_out, error = self._fate()
        if carried_out:
            decided = await self._gateway.decide(request)
        if error is not None:
            raise error("no answer")
        return decided


def lose(api: SchedulingApi, fate: Any) -> None:
    api.service.scheduler._gateway = Lost(api.service.scheduler._gateway, fate)


def test_sent_again_it_has_the_first_answer_from_memory_and_from_the_api_database(tmp_path: Path) -> None:
    async def run() -> None:
        async with scheduling(tmp_path, flat(4)) as api:
            first = await ask(api.client, "one", count=2, num_alternates=1)
            again = await ask(api.client, "one", count=2, num_alternates=1)
            assert first.status_code == 200, first.text
            assert (again.content, again.headers["idempotent-replayed"]) == (first.content, "true")
            other = await ask(api.client, "one", count=1)
            assert (other.status_code, error_of(other)["code"]) == (422, "roost.idempotency_key_reused")
            assert len(api.held()) == 2
            assert (await ask(api.client, "two", count=2)).status_code == 200
            assert len(api.held()) == 4

    asyncio.run(run())


def test_another_process_has_the_answer_from_the_records(tmp_path: Path) -> None:
    async def run() -> None:
        async with scheduling(tmp_path, flat(4)) as api, another(api) as client:
            first = await ask(api.client, "one", count=2, num_alternates=1)
            again = await ask(client, "one", count=2, num_alternates=1)
            assert again.json() == first.json()
            assert len(api.held()) == 2

    asyncio.run(run())


@pytest.mark.parametrize("hosts", [1, 4])
def test_claims_whose_outcome_was_unknown_are_the_answer(tmp_path: Path, hosts: int) -> None:
    """With one host the first request has taken all the room that the second one looks for."""

    async def run() -> None:
        async with scheduling(tmp_path, flat(hosts)) as api:
            fates = iter([(True, OutcomeUnknown)])
            lose(api, lambda: next(fates, (True, None)))
            spec = {**SPEC, "flavor": {**SPEC["flavor"], "vcpus": 4}}
            lost = await ask(api.client, "one", request_spec=spec)
            assert error_of(lost)["code"] == "roost.outcome_unknown"
            assert "retry-after" not in lost.headers
            [(instance, held)] = api.held().items()
            again = await ask(api.client, "one", request_spec=spec)
            assert again.status_code == 200, again.text
            [destination] = again.json()["destinations"]
            assert (destination["instance"], destination["selected"]["allocations"]) == (instance, held)
            table = api.service.scheduler.table
            index = table.index_of_node(destination["selected"]["node"])
            assert index is not None
            assert destination["selected"]["host"] == table.hosts[index]
            assert destination["selected"]["generation"] == 1
            assert api.held() == {instance: held}

    asyncio.run(run())


def test_claims_that_do_not_tell_their_request_groups_are_named(tmp_path: Path) -> None:
    async def run() -> None:
        async with scheduling(tmp_path, flat(2)) as api:
            fates = iter([(True, OutcomeUnknown)])
            lose(api, lambda: next(fates, (True, None)))
            flavor = {**SPEC["flavor"], "extra_specs": {"resources1:VCPU": "1", "group_policy": "none"}}
            spec = {**SPEC, "flavor": flavor}
            await ask(api.client, "one", request_spec=spec)
            [instance] = api.held()
            again = await ask(api.client, "one", request_spec=spec)
            assert (again.status_code, error_of(again)["code"]) == (409, "scheduler.claimed_before")
            assert instance in error_of(again)["detail"]

    asyncio.run(run())


def test_an_instance_that_the_client_names_is_claimed_once(tmp_path: Path) -> None:
    async def run() -> None:
        async with scheduling(tmp_path, flat(4)) as api:
            fates = iter([(True, OutcomeUnknown)])
            lose(api, lambda: next(fates, (True, None)))
            instances = ["00000000-0000-4000-8000-00000000000a"]
            await ask(api.client, "one", instances=instances)
            again = await ask(api.client, "one", instances=instances)
            assert (again.status_code, error_of(again)["code"]) == (409, "placement.concurrent_update")
            assert [*api.held()] == instances

    asyncio.run(run())


def test_claims_in_doubt_at_a_foreign_placement_are_no_invitation_to_try_again(tmp_path: Path) -> None:
    async def run() -> None:
        async with scheduling(tmp_path, flat(1)) as api:
            lose(api, lambda: (True, ClaimsInDoubt))
            answer = await ask(api.client, None)
            assert (answer.status_code, error_of(answer)["code"]) == (503, "roost.outcome_unknown")
            assert "retry-after" not in answer.headers

    asyncio.run(run())


@pytest.mark.parametrize("seed", range(2))
def test_a_client_that_does_what_it_is_told_claims_nothing_twice(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)

    def fate() -> tuple[bool, type[Exception] | None]:
        drawn = draw.random()
        if drawn < 0.2:
            return False, DatabaseUnavailable
        return (drawn < 0.4, OutcomeUnknown) if drawn < 0.6 else (True, None)

    async def place(client: httpx.AsyncClient, key: str | None) -> bool:
        while True:
            answer = await ask(client, key)
            if answer.status_code == 200:
                return True
            assert answer.status_code == 503, answer.text
            if key is None and "retry-after" not in answer.headers:
                return False

    async def run() -> None:
        async with scheduling(tmp_path, flat(100)) as api, another(api) as client:
            lose(api, fate)
            clients = (api.client, client)
            keys = [f"key-{number}" if number % 2 else None for number in range(40)]
            told = [await place(clients[number % 3 % 2], key) for number, key in enumerate(keys)]
            without_answer = told.count(False)
            assert sum(told) <= len(api.held()) <= sum(told) + without_answer

    asyncio.run(run())
