"""`roost scheduler` as operators run it: Keystone's tokens, HTTPS, several workers, a database server."""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest

from roost.ledger import Ledger
from roost.ledger.holdings import held_by_all
from roost.ledger.tables import SCHEMA as LEDGER
from roost.model.spec import Destination
from roost.placement.errors import ConcurrentUpdate
from roost.process.option_source import Source
from roost.records.tables import SCHEMA as RECORDS
from roost.scheduler import NoValidHost
from roost.scheduler.client import HttpScheduler
from roost.scheduler.client.http import GROUP, SERVICE_TYPE
from roost.scheduler.errors import SchedulerRefused
from roost.scheduler.request.scheduling_request import HostRequest
from roost.storage import Database
from roost.web.auth.credentials import FixedCredentials
from roost.web.auth.keystone_credentials import read_client_options
from support.certificates import issue, make_authority
from support.clouds import fill, flat, spec, uuid_of
from support.databases import Servers
from support.keystone import PASSWORD, Keystone
from support.schedulers import RunningScheduler
from support.serving import SECONDS
from support.upgrading import upgrade_empty
from support.waiting import wait_for
from web.auth.conftest import configure

A, B, C = (uuid_of(0xA0 + number) for number in range(3))


class Service(NamedTuple):
    """A scheduler with two workers on five hosts, the database of its ledger, and how clients reach it."""

    scheduler: RunningScheduler
    database: Database
    source: Source
    keystone: Keystone

    def held(self) -> dict[str, tuple[int | None, object]]:
        """The generation and the allocations of each consumer."""
        found = self.database.read_now(held_by_all)
        return {uuid: (each.consumer.generation, each.allocations) for uuid, each in found.items()}

    def kill_workers(self) -> None:
        for worker in self.scheduler.workers:
            os.kill(worker, signal.SIGKILL)


def held_as(placed: Destination) -> tuple[int | None, object]:
    return placed.selected.generation, placed.selected.allocations


class Losing(httpx.AsyncBaseTransport):
    """The way to a scheduler, on which the next response is lost: ``instead`` happens before it arrives."""

    def __init__(self, way: httpx.AsyncBaseTransport) -> None:
        self._way = way
        self.instead: Callable[[], Awaitable[None]] | None = None

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        response = await self._way.handle_async_request(request)
        if (instead := self.instead) is not None:
            self.instead = None
            await response.aread()
            await response.aclose()
            await instead()
            raise httpx.ReadError("no response")
        return response

    async def aclose(self) -> None:
        await self._way.aclose()


@pytest.fixture(params=["postgresql", pytest.param("mariadb", marks=pytest.mark.nightly)])
def service(
    request: pytest.FixtureRequest, servers: Servers, tmp_path: Path, keystone: Keystone
) -> Iterator[Service]:
    authority = make_authority(tmp_path, "authority")
    own = issue(authority, tmp_path, "scheduler")
    source = configure(
        tmp_path,
        keystone.url,
        f"[{GROUP}]",
        "auth_type = password",
        f"auth_url = {keystone.url}",
        "username = nova",
        f"password = {PASSWORD}",
        "project_name = service",
        "user_domain_name = Default",
        "project_domain_name = Default",
        f"cafile = {authority.certificate}",
        f"service_type = {SERVICE_TYPE}-{request.param}",
    )
    arguments = ("--workers", 2, "--tls-cert", own.certificate, "--tls-key", own.key)
    with servers.place(request.param, tmp_path) as ledger, servers.place(request.param, tmp_path) as records:
        database = Database(ledger.url)
        asyncio.run(prepare(database, records.url))
        scheduler = RunningScheduler(
            tmp_path / "scheduler",
            database=ledger.url,
            records=records.url,
            arguments=[str(each) for each in (*arguments, "--config-file", tmp_path / "placement.conf")],
            environment=os.environ,
            authority=authority.certificate,
        )
        keystone.add_service(f"{SERVICE_TYPE}-{request.param}", scheduler.url)
        scheduler.client.headers["x-auth-token"] = keystone.token()
        try:
            yield Service(scheduler, database, source, keystone)
        finally:
            status = scheduler.end()
            asyncio.run(database.close())
        assert status == 0, scheduler.said()
        assert "Traceback" not in scheduler.said(), scheduler.said()


async def prepare(database: Database, records: str) -> None:
    upgrade_empty(LEDGER, database)
    ledger = await Ledger.open(database)
    await fill(ledger, flat(5))
    await ledger.close()
    other = Database(records)
    upgrade_empty(RECORDS, other)
    await other.close()


def test_claims_of_a_scheduler_with_tokens_over_https(service: Service) -> None:
    asyncio.run(lose(service))
    asyncio.run(place(service))


async def place(service: Service) -> None:
    """Claims at generations; workers beside each other claim nothing twice; others may not ask."""
    before = service.held()
    async with HttpScheduler.configured(service.source) as client:
        [first] = await client.select_destinations(HostRequest(spec(2), (C,), 1))
        assert service.held() == {**before, C: held_as(first)}
        with pytest.raises(ConcurrentUpdate):
            await client.select_destinations(HostRequest(spec(), (C,)))
        [larger] = await client.select_destinations(HostRequest(spec(8), (C,), generations={C: 1}))
        before |= {C: held_as(larger)}
        assert (service.held(), larger.selected.generation) == (before, 2)
        results = await asyncio.gather(
            *(client.select_destinations(HostRequest.new(spec(8), 1)) for _ in range(6)),
            return_exceptions=True,
        )
    placed = [each[0] for each in results if not isinstance(each, BaseException)]
    refused = [each for each in results if isinstance(each, NoValidHost)]
    assert (len(placed), len(refused)) == (2, 4), results
    assert service.held() == before | {each.instance: held_as(each) for each in placed}
    assert all("VCPU" in each.reason for each in refused), refused
    verify = read_client_options(service.source, GROUP, SERVICE_TYPE).verify
    for token in (service.keystone.token("rita", "alpha"), "no-token"):
        other = FixedCredentials(service.scheduler.url, token)
        async with HttpScheduler(other, client=httpx.AsyncClient(verify=verify)) as client:
            with pytest.raises(SchedulerRefused):
                await client.select_destinations(HostRequest.new(spec(), 1))


async def lose(service: Service) -> None:
    """The workers are killed after a claim, and its response is lost: the repeated request claims once."""
    options = read_client_options(service.source, GROUP, SERVICE_TYPE)
    way = Losing(httpx.AsyncHTTPTransport(verify=options.verify))

    async def recorded() -> None:
        wanted = {"instance": A}
        own = service.scheduler.client
        wait_for(lambda: bool(own.get("/v1/scheduler/records", params=wanted).json()["records"]))
        service.kill_workers()

    async def at_once() -> None:
        service.kill_workers()

    client = httpx.AsyncClient(transport=way, timeout=SECONDS)
    async with HttpScheduler(options.credentials, client=client) as asked:
        way.instead = recorded
        [found] = await asked.select_destinations(HostRequest(spec(8), (A,)))
        assert service.held() == {A: held_as(found)}
        assert found.selected.generation == 1
        # Records gather for a moment: of this run there may be none, and who asks names the generation.
        way.instead = at_once
        try:
            [other] = await asked.select_destinations(HostRequest(spec(8), (B,)))
        except ConcurrentUpdate:
            [other] = await asked.select_destinations(HostRequest(spec(8), (B,), generations={B: 1}))
        assert service.held() == {A: held_as(found), B: held_as(other)}
