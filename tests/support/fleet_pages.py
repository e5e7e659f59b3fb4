"""The dashboard's pages of the fleet on a ledger and a node table, without an API database and a socket."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

import httpx

from roost.dashboard.app import create_app, default_rules
from roost.dashboard.fleet.flavor_fits import FlavorFits
from roost.dashboard.fleet.hosts import FleetHosts, HostsNow
from roost.dashboard.fleet.kept_levels import KeptLevels
from roost.dashboard.kept_views import KeptViews
from roost.dashboard.live.hub import LiveHub
from roost.dashboard.options import DashboardOptions
from roost.dashboard.service import DashboardService
from roost.dashboard.session.authenticator import COOKIE, SessionAuthenticator
from roost.dashboard.session.ended import EndedSessions
from roost.dashboard.session.login import LoginDesk
from roost.dashboard.session.login_limit import LoginLimit
from roost.dashboard.session.login_methods import LoginMethods
from roost.dashboard.session.seal import DashboardSession, SessionSeal, new_session, session_key
from roost.ledger import Ledger
from roost.model.record import BUILT, FAILED, Attempt
from roost.model.spec import Flavor
from roost.placement.options import PlacementOptions
from roost.records import RecordQueue, Retention
from roost.records.backend import open_sql_records
from roost.records.records import Records
from roost.scheduler import Scheduler, SchedulerOptions
from roost.scheduler.gateways.local import LocalGateway
from roost.scheduler.nodes.table import NodeTable
from roost.scheduler.selection.host_pools import HostPools
from roost.web.auth.rules import PolicyRules
from roost.web.dispatch import Application
from roost.web.policy import Policy
from support.clouds import NOW, Cloud, filled, uuid_of
from support.dashboard_users import ORIGIN, KnownTokens

DOWN_SECONDS = 60.0


def failed(number: int, at: float = NOW - 60, result: str = FAILED, run: str = "run") -> Attempt:
    """The attempt of a build on a flat cloud's host of this number, by default one that failed."""
    return Attempt(
        run=f"{run}-{number}-{at}-{result}",
        request_id="req",
        instance=uuid_of(0x999),
        at=at,
        host=f"host{number}",
        cell="cell1",
        weight=1.0,
        result=result,
        reason=None if result == BUILT else "no port",
        node=uuid_of(number),
    )


class FleetPages:
    """The pages, as an operator's browser gets them."""

    def __init__(
        self,
        service: DashboardService,
        app: Application,
        client: httpx.AsyncClient,
        session: DashboardSession,
        cookie: str,
    ) -> None:
        self.service = service
        self.app = app
        self.client = client
        self.cookie = cookie
        self._session = session

    async def get(self, path: str, **headers: str) -> httpx.Response:
        return await self.client.get(path, headers={"cookie": self.cookie, **headers})

    def log_out(self) -> None:
        """End the session."""
        self.service.desk.ended.add(self._session.id, self._session.ends)

    async def page(self, path: str) -> str:
        """Return a page."""
        answer = await self.get(path)
        assert answer.status_code == 200, answer.text
        return answer.text

    async def view(self, path: str) -> Any:
        """Return the JSON twin of a page, after the page itself: both are there."""
        await self.page(path)
        answer = await self.get(f"{path}{'&' if '?' in path else '?'}format=json")
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def now(self) -> HostsNow:
        return await self.service.hosts.now()


@asynccontextmanager
async def fleet_pages(
    folder: Path,
    cloud: Cloud,
    *,
    table: NodeTable | None = None,
    over_http: bool = False,
    records: Records | None = None,
) -> AsyncIterator[FleetPages]:
    """Open the pages of a cloud's fleet.

    ``table``: by default that of the cloud. ``over_http``: there is no ledger, as with placement over HTTP.
    ``records``: by default those of an empty database.
    """
    async with filled(folder / "roost.db", cloud) as ledger:
        backend = records or await open_sql_records(f"sqlite:///{folder / 'records.db'}", Retention())
        queue = RecordQueue(backend)
        seal = SessionSeal(session_key(None))
        service = _service(None if over_http else ledger, ledger, table or cloud.table(), queue, seal)
        app = create_app(service, PlacementOptions())
        session = new_session("olga", "olga", NOW + 3600.0)
        cookie = f"{COOKIE}={seal.seal(session)}"
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=ORIGIN) as client:
            try:
                yield FleetPages(service, app, client, session, cookie)
            finally:
                await queue.close()


def _service(
    ledger: Ledger | None, claims: Ledger, table: NodeTable, records: RecordQueue, seal: SessionSeal
) -> DashboardService:
    options = DashboardOptions(hosts=("dashboard",))
    ended = EndedSessions(None, lambda: NOW)
    sessions = SessionAuthenticator(KnownTokens(), seal, ended, lambda: NOW, "/ui/assets/")

    async def flavors() -> Sequence[Flavor]:
        return ()

    fits = None
    if ledger is not None:
        fits = FlavorFits(ledger, table, SchedulerOptions(), flavors, lambda: NOW, count(step=1000).__next__)
    hosts = FleetHosts(
        ledger,
        table,
        default_zone="nova",
        rack_key="rack",
        down_seconds=DOWN_SECONDS,
        clock=lambda: NOW,
        fits=fits,
    )
    levels = KeptLevels(hosts, count(step=1000).__next__)
    return DashboardService(
        options=options,
        ledger=ledger,
        table=table,
        hosts=hosts,
        levels=levels,
        live=LiveHub(hosts, levels),
        default_zone="nova",
        scheduler=Scheduler(LocalGateway(claims, HostPools(table, SchedulerOptions())), records, lambda: NOW),
        records=records,
        cloud=None,
        sessions=sessions,
        desk=LoginDesk(
            options, KnownTokens(), sessions, seal, ended, LoginMethods(), LoginLimit(10, lambda: 0.0)
        ),
        policy=Policy(PolicyRules(default_rules(), None, True)),
        actions=None,
        clock=lambda: NOW,
        views=KeptViews(count(step=1000).__next__),
    )
