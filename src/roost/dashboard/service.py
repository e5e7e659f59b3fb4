"""The parts of the process that pages read from, and the rules of who sees what."""

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from roost.conductor.events.newest import NewestEvents
from roost.conductor.events.reader import EventReader
from roost.conductor.history.views import Histories
from roost.conductor.hosts.cells import CellRegistry
from roost.conductor.hosts.lookup import HostLookup
from roost.conductor.hosts.watch import ServiceWatch
from roost.conductor.instances.views import InstanceViews
from roost.conductor.maintenance.views import MaintenanceViews
from roost.conductor.moves.views import MoveViews
from roost.dashboard.actions.client import ConductorClient
from roost.dashboard.flavor_counts import FlavorCounts
from roost.dashboard.fleet.hosts import FleetHosts
from roost.dashboard.fleet.kept_levels import KeptLevels
from roost.dashboard.kept_views import KeptViews
from roost.dashboard.live.hub import LiveHub
from roost.dashboard.options import DashboardOptions
from roost.dashboard.past.past_reads import NO_PAST, PastReads
from roost.dashboard.redecisions import Redecisions
from roost.dashboard.session.authenticator import SessionAuthenticator
from roost.dashboard.session.login import LoginDesk
from roost.ledger import Ledger
from roost.model.visibility import Viewer
from roost.records import RecordQueue
from roost.scheduler import Scheduler
from roost.scheduler.nodes.table import NodeTable
from roost.state.cell_database import Cell
from roost.storage import Database
from roost.web.auth import Identity
from roost.web.policy import Policy

T = TypeVar("T")

FLEET_RULE = "dashboard:fleet"
"""The policy rule of pages that show hosts of the whole cloud."""

SESSION_RULE = "dashboard:session"
"""The policy rule of what every user with a session may do: log out, search."""


@dataclass(frozen=True)
class CloudReads:
    """The readers of a cloud with an API database, of what it has and what happened there."""

    api: Database
    cells: Mapping[str, Cell]
    instances: InstanceViews
    moves: MoveViews
    maintenances: MaintenanceViews
    histories: Histories
    hosts: HostLookup
    registry: CellRegistry
    watch: ServiceWatch
    events: EventReader
    newest: NewestEvents


@dataclass(frozen=True)
class DashboardService:
    """The parts that pages read from.

    - ``ledger``: None: placement is reached over HTTP, and the pages have no fleet.
    - ``table``: the compute nodes. ``hosts``: these in the order of the map, with what is counted of them.
      ``scheduler``: explains and supposes; it is never asked to claim.
    - ``cloud``: None: there is no API database, so there are no cells, instances and events.
    - ``actions``: carries out what users do; None: the dashboard only shows.
    - ``files``: those of databases on this machine. ``certificate``: that of the process; None without TLS.
    - ``clock``: seconds since the epoch. ``views``: views that all viewers share. ``levels``: the bytes of
      maps. ``live``: tells open pages what changes. ``past``: hosts,
      consumers and the fleet as of an earlier time. ``redecisions``: makes decisions again; None without a
      ledger and its journals. ``flavor_counts``: how many of each flavor fit, as it was counted.
    """

    options: DashboardOptions
    ledger: Ledger | None
    table: NodeTable
    hosts: FleetHosts
    levels: KeptLevels
    default_zone: str
    scheduler: Scheduler
    records: RecordQueue
    cloud: CloudReads | None
    sessions: SessionAuthenticator
    desk: LoginDesk
    policy: Policy
    actions: ConductorClient | None
    clock: Callable[[], float]
    views: KeptViews
    live: LiveHub
    files: Callable[[], Collection[Path]] = tuple
    certificate: Path | None = None
    past: PastReads = NO_PAST
    redecisions: Redecisions | None = None
    flavor_counts: FlavorCounts = field(default_factory=FlavorCounts)

    async def kept(self, key: object, seconds: float, make: Callable[[], Awaitable[T]]) -> T:
        """Return a view that all viewers share, made at most ``seconds`` ago. See `KeptViews.get`."""
        return await self.views.get(key, seconds, make)

    def nodes_of_hosts(self, hosts: Iterable[str]) -> dict[str, str]:
        """Return the root provider of the first node of each host that is known here."""
        found = {host: sorted(self.table.indexes_of_host(host)) for host in {*hosts}}
        return {host: self.table.nodes[indexes[0]] for host, indexes in found.items() if indexes}

    def is_operator(self, identity: Identity) -> bool:
        """Return whether an identity may see the pages of the whole cloud."""
        return self.policy.viewer(identity, FLEET_RULE) is Viewer.OPERATOR
