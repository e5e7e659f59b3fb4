"""The scheduler's operations over HTTP on a cloud, without a socket."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx

from roost.ledger import Ledger
from roost.ledger.holdings import held_by_all
from roost.placement.queries import QueryBudget
from roost.placement.service import PlacementService
from roost.records import RecordQueue, Retention
from roost.records.backend import open_sql_records
from roost.scheduler import Scheduler, SchedulerOptions
from roost.scheduler.api.app import create_app
from roost.scheduler.api.host_judge import HostJudge
from roost.scheduler.api.service import SchedulerService
from roost.scheduler.gateways import Gateway
from roost.scheduler.gateways.local import LocalGateway
from roost.scheduler.gateways.unclaimed import JudgingPools, LocalUnclaimedGateway
from roost.scheduler.selection.host_pools import HostPools
from roost.web.auth import NoAuth
from roost.web.auth.rules import PolicyRules
from roost.web.dispatch import Application
from roost.web.limits import Limits
from support.clouds import NOW, Cloud, filled

FLAVOR = {"name": "small", "vcpus": 1, "memory_mb": 1024, "disk_gb": 10}
SPEC: dict[str, Any] = {"project_id": "project", "user_id": "user", "flavor": FLAVOR}
SERVICE = {"x-auth-token": "nova:services", "x-roles": "service"}


class SchedulingApi:
    """The operations, and what is held. ``client`` sends requests as a service."""

    def __init__(
        self, ledger: Ledger, service: SchedulerService, app: Application, client: httpx.AsyncClient
    ) -> None:
        self.app = app
        self.ledger = ledger
        self.service = service
        self.client = client

    async def select(self, **body: Any) -> httpx.Response:
        """The response to a request for destinations; by default for one small instance."""
        return await self.client.post("/v1/select_destinations", json={"request_spec": SPEC, **body})

    def held(self) -> dict[str, dict[str, dict[str, int]]]:
        """What each consumer holds."""
        held = self.ledger.database.read_now(held_by_all)
        return {consumer: one.allocations for consumer, one in held.items()}


@asynccontextmanager
async def scheduling(
    folder: Path,
    cloud: Cloud,
    options: SchedulerOptions | None = None,
    gateway: Gateway | None = None,
    rules: PolicyRules | None = None,
    *,
    over_http: bool = False,
) -> AsyncIterator[SchedulingApi]:
    """The operations on a scheduler of the cloud.

    ``gateway``: by default that of the ledger itself. ``over_http``: lists have no ledger, as with placement
    over HTTP.
    """
    async with filled(folder / "roost.db", cloud) as ledger:
        records = RecordQueue(await open_sql_records(f"sqlite:///{folder / 'records.db'}", Retention()))
        chosen = options or SchedulerOptions()
        if gateway is None:
            gateway = LocalGateway(ledger, HostPools(cloud.table(), chosen))
        scheduler = Scheduler(gateway, records, lambda: NOW)
        pools = JudgingPools(scheduler.table, chosen)
        judge = HostJudge(LocalUnclaimedGateway(ledger, pools), pools, lambda: NOW, None)
        placement = PlacementService(ledger)
        service = SchedulerService(
            scheduler,
            records,
            chosen,
            None if over_http else ledger,
            clock=lambda: NOW,
            placement=placement,
            judge=judge,
            queries=None if over_http else QueryBudget(ledger, Limits()),
        )
        app: Application = create_app(service, NoAuth(), rules)
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://roost", headers=SERVICE) as client:
            try:
                yield SchedulingApi(ledger, service, app, client)
            finally:
                await records.close()


def error_of(answer: httpx.Response) -> dict[str, Any]:
    """The one error of a response, whose status is that of the response."""
    [error] = answer.json()["errors"]
    assert error["status"] == answer.status_code
    found: dict[str, Any] = error
    return found
