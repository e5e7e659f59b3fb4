"""The part of processes that serves the dashboard."""

import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from roost.conductor.events.newest import NewestEvents
from roost.conductor.events.reader import EventReader
from roost.conductor.history.views import Histories
from roost.conductor.hosts.cells import CellRegistry
from roost.conductor.hosts.lookup import HostLookup
from roost.conductor.hosts.watch import ServiceWatch
from roost.conductor.http import PATHS as CONDUCTOR_PATHS
from roost.conductor.instances.views import InstanceViews
from roost.conductor.maintenance.views import MaintenanceViews
from roost.conductor.moves.views import MoveViews
from roost.conductor.words.words import Words
from roost.dashboard.actions.client import ConductorClient, check_endpoint
from roost.dashboard.addresses import LIVE, LOGIN, ROOT
from roost.dashboard.app import create_app, default_rules
from roost.dashboard.fleet.flavor_fits import FlavorFits
from roost.dashboard.fleet.hosts import FleetHosts
from roost.dashboard.fleet.kept_levels import KeptLevels
from roost.dashboard.kept_views import KeptViews
from roost.dashboard.live.hub import LiveHub
from roost.dashboard.live.log_looks import LogLooks
from roost.dashboard.options import DashboardOptions
from roost.dashboard.past.index_keeper import IndexKeeper
from roost.dashboard.past.past_reads import PastReads
from roost.dashboard.past.sampler import Sampler
from roost.dashboard.past.samples import SampleStore
from roost.dashboard.past.state_log import StateLog
from roost.dashboard.redecisions import Redecisions
from roost.dashboard.service import CloudReads, DashboardService
from roost.dashboard.session.authenticator import SessionAuthenticator
from roost.dashboard.session.ended import EndedSessions
from roost.dashboard.session.guard import host_of
from roost.dashboard.session.login import LoginDesk
from roost.dashboard.session.login_limit import LoginLimit
from roost.dashboard.session.login_methods import LoginMethods, PasswordLogin
from roost.dashboard.session.one_time import OneTimeToken
from roost.dashboard.session.seal import SessionSeal, session_key
from roost.model.spec import Flavor
from roost.placement.access import open_authenticator
from roost.process.lane import Lane
from roost.records import RecordsError
from roost.records.records import CountableRecords
from roost.scheduler import Scheduler
from roost.scheduler.nodes import NodeTable
from roost.server.options import SchedulingOptions
from roost.server.process import Api, Process, ProcessPart
from roost.state.api_database.request_reads import Requests
from roost.web.auth.rules import PolicyRules
from roost.web.policy import Policy

_PAST: Final = "past"
"""The folder of the past in that of the dashboard."""

MOST_RUNS: Final = 2_000
"""Newest runs whose flavors are offered by name."""

FLAVOR_SECONDS: Final = 10.0
"""Seconds between two readings of these flavors."""


class DashboardPart(ProcessPart[SchedulingOptions]):
    """The dashboard on the ledger, the hosts, the records and the API database of this process."""

    def check(self, options: SchedulingOptions) -> None:
        check_endpoint(options.source.read(DashboardOptions))
        _policy(options)

    async def open(self, process: Process[SchedulingOptions]) -> None:
        options = process.options
        own = _reached(options.source.read(DashboardOptions), process.address)
        assert isinstance(process.scheduler, Scheduler) and process.hosts is not None
        table = process.hosts.table
        zone = options.scheduler.default_availability_zone
        views = KeptViews(time.monotonic)
        hosts = FleetHosts(
            process.ledger,
            table,
            default_zone=zone,
            rack_key=own.rack_key,
            down_seconds=options.scheduler.service_down_time,
            clock=process.clock,
            fits=_fits(process, views),
        )
        levels = KeptLevels(hosts, time.monotonic)
        live = LiveHub(hosts, levels)
        process.run_for_ever("live pages", live.run())
        process.stops.append(live.close)
        cloud = _cloud(process)
        if cloud is not None:
            process.run_for_ever("live events", LogLooks(live, cloud.newest).run())
        desk = _desk(process, own)
        service = DashboardService(
            options=own,
            ledger=process.ledger,
            table=table,
            hosts=hosts,
            levels=levels,
            default_zone=zone,
            scheduler=process.scheduler,
            records=process.records,
            cloud=cloud,
            sessions=desk.sessions,
            desk=desk,
            policy=_policy(options),
            actions=_actions(process, own),
            clock=process.clock,
            views=views,
            live=live,
            files=partial(_files, process),
            certificate=process.certificate,
            past=_past(process, own, table),
            redecisions=_redecisions(process),
        )
        _sample(process, service)
        process.apis.append(
            Api(
                create_app(service, options, alone="placement_api" not in process.parts),
                (ROOT,),
                long_polls=(LIVE,),
            )
        )


def _redecisions(process: Process[SchedulingOptions]) -> Redecisions | None:
    if process.ledger is None or process.api is None:
        return None
    return Redecisions(process.ledger, process.api)


def _fits(process: Process[SchedulingOptions], views: KeptViews) -> FlavorFits | None:
    assert process.hosts is not None
    if process.ledger is None:
        return None

    async def read() -> Sequence[Flavor]:
        backend = process.records.backend
        try:
            return await backend.flavors(MOST_RUNS) if isinstance(backend, CountableRecords) else ()
        except RecordsError:
            return ()

    async def flavors() -> Sequence[Flavor]:
        return await views.get("flavors", FLAVOR_SECONDS, read)

    return FlavorFits(process.ledger, process.hosts.table, process.options.scheduler, flavors, process.clock)


def _actions(process: Process[SchedulingOptions], own: DashboardOptions) -> ConductorClient | None:
    """Return the client of the conductor of this process, or of the configured one; None without either."""
    if "conductor_api" in process.parts:
        [api] = [each for each in process.apis if each.paths == CONDUCTOR_PATHS]
        client = ConductorClient.in_process(api.application)
    elif own.conductor_endpoint is not None:
        client = ConductorClient.of_endpoint(own.conductor_endpoint, own.conductor_ca_file)
    else:
        return None
    process.stack.push_async_callback(client.close)
    return client


def _reached(own: DashboardOptions, address: str | None) -> DashboardOptions:
    """Return the options with the name of the address where the process listens."""
    name = None if address is None else urlsplit(address).netloc
    return own if name is None else msgspec.structs.replace(own, hosts=(*own.hosts, host_of(name)))


def _files(process: Process[Any]) -> list[Path]:
    """Return the files of the databases that the process has open."""
    databases = [*process.databases, *(cell.database for cell in process.cells.values())]
    return [Path(each.url.database) for each in databases if each.is_sqlite and each.url.database]


def _desk(process: Process[SchedulingOptions], own: DashboardOptions) -> LoginDesk:
    options = process.options
    seal, ended = SessionSeal(session_key(own.folder)), EndedSessions(own.folder, process.clock)
    inner = open_authenticator(options)
    sessions = SessionAuthenticator(inner, seal, ended, process.clock, f"{ROOT}/assets/")
    once = None
    if options.auth_strategy == "noauth2":
        path = None if own.folder is None else own.folder / "address"
        once = OneTimeToken(f"{process.address or ''}{LOGIN}", path)
    address = f"{process.address or ''}{ROOT}" if once is None else once.address
    # Not into the log: the address may have the token of a session.
    print(f"roost: dashboard at {address}", file=sys.stderr)
    methods = LoginMethods(once, _password_login(options, own))
    limit = LoginLimit(own.logins_per_minute, time.monotonic)
    return LoginDesk(own, inner, sessions, seal, ended, methods, limit)


def _password_login(options: SchedulingOptions, own: DashboardOptions) -> PasswordLogin | None:
    if options.auth_strategy != "keystone" or not own.password_login:
        return None
    # Imported only here: the import of keystoneauth1 is slow.
    from roost.dashboard.session.keystone import KeystonePasswords

    return KeystonePasswords(options.source)


def _past(process: Process[SchedulingOptions], own: DashboardOptions, table: NodeTable) -> PastReads:
    ledger, keeper = process.ledger, None
    if ledger is not None and own.folder is not None:
        keeper = IndexKeeper(ledger, own.folder / _PAST, own.past_mebibytes * 1024 * 1024)
        process.stack.push_async_callback(keeper.close)
        process.run_for_ever("index of the past", keeper.run())
    log = None if own.folder is None else StateLog(own.folder / _PAST)
    samples = SampleStore(None if own.folder is None else own.folder / _PAST)
    return PastReads(ledger, keeper, table, log, samples)


def _sample(process: Process[SchedulingOptions], service: DashboardService) -> None:
    """Look at the cloud once a minute, for series over time."""
    lane = Lane("samples-of-the-past")
    process.stack.push_async_callback(lane.close, None)
    sampler = Sampler(service, lane)
    process.stack.push_async_callback(sampler.close)
    process.run_for_ever("samples of the past", sampler.run())


def _cloud(process: Process[SchedulingOptions]) -> CloudReads | None:
    api, cells = process.api, process.cells
    if api is None:
        return None
    watch = _watch(process)
    words = Words(api, cells, process.placement, process.clock)
    return CloudReads(
        api,
        cells,
        InstanceViews(Requests(api), cells, process.placement),
        MoveViews(cells),
        MaintenanceViews(api, cells),
        Histories(api, cells, process.records),
        HostLookup(api, cells, words),
        CellRegistry(api, cells, watch, words),
        watch,
        EventReader(api, cells, watch),
        NewestEvents(api, cells, watch),
    )


def _watch(process: Process[SchedulingOptions]) -> ServiceWatch:
    """Return the super conductor's watch, if the process has one, else one that writes no events."""
    if "super_conductor" in process.parts:
        return process.super_conductor.watch
    assert process.api is not None
    watch = ServiceWatch(process.api, process.cells, clock=process.clock, writes_events=False)
    process.run_for_ever("watch", watch.run())
    return watch


def _policy(options: SchedulingOptions) -> Policy:
    return Policy(PolicyRules(default_rules(), options.source, options.enforce_new_defaults))
