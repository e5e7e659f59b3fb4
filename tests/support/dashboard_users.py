"""Users of a dashboard on conductors with real databases, in the process of the test."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any, cast

import httpx

from roost.conductor.events.newest import NewestEvents
from roost.conductor.events.reader import EventReader
from roost.conductor.history.views import Histories
from roost.conductor.hosts.cells import CellRegistry
from roost.conductor.hosts.lookup import HostLookup
from roost.conductor.http import create_app as create_conductor
from roost.conductor.instances.views import InstanceViews
from roost.conductor.maintenance.views import MaintenanceViews
from roost.conductor.moves.views import MoveViews
from roost.dashboard.actions.client import ConductorClient
from roost.dashboard.app import create_app, default_rules
from roost.dashboard.fleet.hosts import FleetHosts
from roost.dashboard.fleet.kept_levels import KeptLevels
from roost.dashboard.kept_views import KeptViews
from roost.dashboard.live.hub import LiveHub
from roost.dashboard.options import DashboardOptions
from roost.dashboard.past.past_reads import PastReads
from roost.dashboard.service import CloudReads, DashboardService
from roost.dashboard.session.authenticator import COOKIE, GUARD_HEADER, SessionAuthenticator
from roost.dashboard.session.ended import EndedSessions
from roost.dashboard.session.login import LoginDesk
from roost.dashboard.session.login_limit import LoginLimit
from roost.dashboard.session.login_methods import LoginMethods
from roost.dashboard.session.seal import SessionSeal, new_session, session_key
from roost.placement.options import PlacementOptions
from roost.records import RecordQueue, Retention
from roost.records.backend import open_sql_records
from roost.web.auth import Identity
from roost.web.auth.rules import PolicyRules
from roost.web.policy import Policy
from support.conducting import NOW, Conductors, conducting

ORIGIN = "http://dashboard"

IDENTITIES = {
    "olga": Identity("olga", "operations", ("admin", "member", "reader")),
    "mia": Identity("mia", "project", ("member", "reader")),
    "rita": Identity("rita", "project", ("reader",)),
    "otto": Identity("otto", "other", ("member", "reader")),
}
"""Users by their tokens: an operator, a member and a reader of a project, and a member of another one."""


class KnownTokens:
    """An authenticator that knows the tokens of `IDENTITIES`, and believes no further headers."""

    challenge = None

    async def identify(
        self, headers: Mapping[str, str], method: str = "GET", path: str = "/"
    ) -> Identity | None:
        return IDENTITIES.get(headers.get("x-auth-token", ""))


class DashboardUsers:
    """Browsers of several users on one dashboard.

    ``conductor``: a client of the conductor's API; ``http``: of the dashboard, without a session.
    """

    def __init__(
        self,
        now: Conductors,
        service: DashboardService,
        seal: SessionSeal,
        client: httpx.AsyncClient,
        conductor: httpx.AsyncClient,
    ) -> None:
        self.now = now
        self.service = service
        self.conductor = conductor
        self.http = client
        self._sessions = {user: new_session(user, user, NOW + 3600.0) for user in IDENTITIES}
        self._cookies = {user: seal.seal(session) for user, session in self._sessions.items()}

    def serve(self, service: DashboardService) -> None:
        """Serve with other parts from now on."""
        self.service = service
        self.http._transport = httpx.ASGITransport(create_app(service, PlacementOptions()))

    async def get(self, path: str, user: str = "olga", **headers: str) -> httpx.Response:
        """Get a page as a browser with a session does."""
        return await self.http.get(path, headers={**self._as(user), **headers})

    async def view(self, path: str, user: str = "olga") -> Any:
        """Return the JSON twin of a page."""
        answer = await self.get(f"{path}{'&' if '?' in path else '?'}format=json", user)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def post(
        self, path: str, fields: Mapping[str, str], user: str = "olga", **headers: str
    ) -> httpx.Response:
        """Send a form as the dashboard's own page does."""
        own = {GUARD_HEADER: self._sessions[user].guard, "origin": ORIGIN, "sec-fetch-site": "same-origin"}
        return await self.http.post(path, data=fields, headers={**self._as(user), **own, **headers})

    async def ask_for(self, user: str = "mia", count: int = 1, **wanted: object) -> list[str]:
        """Return the uuids of new instances, which are assigned to hosts."""
        body = {"flavor": {"vcpus": 1, "memory_mb": 0, "name": "small"}, "count": count, **wanted}
        answer = await self.conductor.post("/v1/instances", json=body, headers={"x-auth-token": user})
        assert answer.status_code == 202, answer.text
        await self.now.arrive()
        return cast("list[str]", answer.json()["instances"])

    def _as(self, user: str) -> dict[str, str]:
        return {"cookie": f"{COOKIE}={self._cookies[user]}"}


@asynccontextmanager
async def dashboard_users(directory: Path) -> AsyncIterator[DashboardUsers]:
    """Open the dashboard on the conductors of a directory."""
    queue = RecordQueue(await open_sql_records(f"sqlite:///{directory / 'records.db'}", Retention()))
    async with conducting(directory, queue) as now:
        database = now.ledger.database
        watch = now.super.watch
        registry = CellRegistry(database, now.cells, watch, now.words)
        hosts = FleetHosts(
            now.ledger, now.table, default_zone="nova", rack_key="rack", down_seconds=60, clock=lambda: NOW
        )
        levels = KeptLevels(hosts, lambda: 0.0)
        seal, ended = SessionSeal(session_key(None)), EndedSessions(None, lambda: NOW)
        options = DashboardOptions(hosts=("dashboard",))
        sessions = SessionAuthenticator(KnownTokens(), seal, ended, lambda: NOW, "/ui/assets/")
        desk = LoginDesk(
            options, KnownTokens(), sessions, seal, ended, LoginMethods(), LoginLimit(10, lambda: 0.0)
        )
        rooms = (now.super, now.requests, now.aggregates, now.groups, now.placement, KnownTokens())
        api = create_conductor(*rooms)
        acting = ConductorClient.in_process(api)
        cloud = CloudReads(
            database,
            now.cells,
            InstanceViews(now.requests, now.cells, now.placement),
            MoveViews(now.cells),
            MaintenanceViews(database, now.cells),
            Histories(database, now.cells, None),
            HostLookup(database, now.cells, now.words),
            registry,
            watch,
            EventReader(database, now.cells, watch),
            NewestEvents(database, now.cells, watch),
        )
        service = DashboardService(
            options=options,
            ledger=now.ledger,
            table=now.table,
            hosts=hosts,
            levels=levels,
            live=LiveHub(hosts, levels),
            default_zone="nova",
            scheduler=now.scheduler,
            records=queue,
            cloud=cloud,
            sessions=sessions,
            desk=desk,
            policy=Policy(PolicyRules(default_rules(), None, True)),
            actions=acting,
            clock=lambda: NOW,
            views=KeptViews(count(step=1000).__next__),  # each request makes its views anew
            past=PastReads(now.ledger, None),
        )
        pages = httpx.ASGITransport(create_app(service, PlacementOptions()))
        async with (
            httpx.AsyncClient(transport=pages, base_url=ORIGIN) as client,
            httpx.AsyncClient(transport=httpx.ASGITransport(api), base_url="http://conductor") as conductor,
        ):
            yield DashboardUsers(now, service, seal, client, conductor)
        await acting.close()
        await queue.close()
