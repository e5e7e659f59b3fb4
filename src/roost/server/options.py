"""The options of the scheduler's and the conductors' programs, with those of all that they are made of."""

from typing import Final

import msgspec
from msgspec.structs import replace
from oslo_config import cfg

from roost.conductor.agent_endpoint.offer_limits import NO_LIMITS, OfferLimits
from roost.conductor.announced_work import WakeOptions
from roost.conductor.audit.rounds import AuditOptions
from roost.conductor.evacuation.options import EvacuationOptions
from roost.conductor.maintenance.hook import MaintenanceOptions
from roost.conductor.time_limits import TimeLimits
from roost.model.errors import OperatorError
from roost.placement.options import PlacementOptions, read_options
from roost.process.option_source import Source, refused_value
from roost.process.options import option, options_by_group, options_of_group, read_struct
from roost.process.report import masked_options
from roost.records.backend import RecordOptions
from roost.scheduler import SchedulerOptions
from roost.scheduler.configuration import all_options as scheduler_options
from roost.scheduler.configuration import options_from
from roost.state.api_database.cell_mappings import CellMapping, cell_options, section_of, url_of
from roost.state.api_database.tables import ApiDatabaseOptions
from roost.state.cell_database.move_limits import MoveLimits
from roost.storage import DatabaseUrl, configured_url

_NO_API_DATABASE: Final = "no database of the conductors: set connection in [api_database]"


class SchedulingOptions(PlacementOptions, frozen=True, kw_only=True, group="scheduler"):
    """The configuration of the scheduler as a service, with the options that all services share.

    ``database``: the URL of the ledger; None: placement is reached over HTTP. ``api_database``: the URL of
    the conductors' database; None: there is none.
    """

    source: Source
    scheduler: SchedulerOptions
    api_database: DatabaseUrl | str | None = None
    hosts_from_placement: bool = option(
        False,
        help="Root providers of placement that nobody reports for are hosts too, and always alive. For "
        "platforms whose hosts have no agents.",
    )
    placement_hosts_seconds: float = option(
        5.0,
        min=0.0,
        help="With hosts_from_placement, seconds between two readings of all hosts of a placement service "
        "over HTTP.",
    )

    @property
    def decides(self) -> bool:
        """True if the scheduler runs in this process; else it is another service, called over HTTP."""
        return True

    @property
    def needed_api_database(self) -> DatabaseUrl | str | None:
        """The URL of the API database; None if the process needs none."""
        return self.api_database

    @property
    def databases(self) -> dict[str, DatabaseUrl | str | None]:
        return {**super().databases, "[api_database] connection": self.api_database}

    def shown(self) -> dict[str, object]:
        return {**super().shown(), **masked_options(open_conf(self.source), _groups())}


def open_conf(source: Source) -> cfg.ConfigOpts:
    """Open a configuration with the options of scheduler, records and conductors. Raises `OperatorError`."""
    conf = source.open()
    source.register(conf, _groups())
    return conf


def _groups() -> dict[str, list[cfg.Opt]]:
    groups = scheduler_options()
    for group, own in options_of_group(SchedulingOptions).items():
        groups.setdefault(group, []).extend(own)
    return {**groups, **options_by_group(RecordOptions, ApiDatabaseOptions)}


def read_scheduling_options(
    source: Source, database: DatabaseUrl | str | None = None, *, hosts_needed: bool = True
) -> SchedulingOptions:
    """Read the options. ``database``: the URL of the ledger on the command line.

    Raises `OperatorError` for a file that cannot be read, for a wrong value, and, with ``hosts_needed``, if
    no source of hosts is configured.
    """
    shared = read_options(source)
    conf = open_conf(source)
    try:
        options = read_struct(
            conf,
            SchedulingOptions,
            **msgspec.structs.asdict(replace(shared, database=database or shared.database)),
            scheduler=options_from(conf),
            api_database=configured_url(conf.api_database.connection, source, ApiDatabaseOptions.group),
        )
    except (cfg.Error, ValueError) as error:
        raise refused_value(error) from error
    if hosts_needed and options.api_database is None and not options.hosts_from_placement:
        raise OperatorError(
            "no hosts: set connection in [api_database] to the database of the conductors, or "
            "hosts_from_placement in [scheduler] if hosts have no agents"
        )
    return options


class ConductingOptions(SchedulingOptions, frozen=True, kw_only=True, group="conductor"):
    """The configuration of a conductor, with the options of placement, the API database and the scheduler.

    ``offers``: limits of the inventories that agents may report. ``cell``: the cell of a cell's conductor,
    and ``cell_database`` the URL of its database; None: these are options of the super conductor.
    """

    uses_service: bool = option(
        False,
        name="use_scheduler_service",
        help="Conductors ask a scheduler over HTTP, by the options of keystoneauth1 in [scheduler_service]. "
        "Without it each has a scheduler of its own.",
    )
    max_attempts: int = option(
        3, min=1, help="An instance is tried on at most this many hosts, the first included."
    )
    time_limits: TimeLimits = TimeLimits()
    move_limits: MoveLimits = MoveLimits()
    evacuations: EvacuationOptions = EvacuationOptions()
    maintenances: MaintenanceOptions = MaintenanceOptions()
    wakes: WakeOptions = WakeOptions()
    sharing_providers: tuple[str, ...] = option(
        (),
        help="Names of sharing providers, such as pools of storage, that the agents of this cell's hosts may "
        "make and change. A host that may do so can change them for all hosts that they serve.",
    )
    offers: OfferLimits = NO_LIMITS
    audits: AuditOptions = AuditOptions()
    cell: str | None = None
    cell_database: DatabaseUrl | str | None = None

    @property
    def decides(self) -> bool:
        return not self.uses_service

    @property
    def needed_api_database(self) -> DatabaseUrl | str | None:
        # The conductor of a cell needs it only for a scheduler of its own.
        return self.api_database if self.cell is None or self.decides else None

    @property
    def databases(self) -> dict[str, DatabaseUrl | str | None]:
        urls = super().databases
        if self.cell is not None:
            urls[f"[{section_of(self.cell)}] connection"] = self.cell_database
        return urls

    def shown(self) -> dict[str, object]:
        conf = self.source.open()
        groups = options_of_group(ConductingOptions)
        if self.cell is None:
            groups |= options_of_group(MaintenanceOptions)
        if self.cell is not None:
            groups |= cell_options(section_of(self.cell))
        self.source.register(conf, groups)
        return {**super().shown(), **masked_options(conf, groups)}


def read_conducting_options(source: Source, cell: str | None = None) -> ConductingOptions:
    """Read the options of the super conductor, or of the conductor of a cell.

    Raises `OperatorError` for a file that cannot be read, for a wrong value, and for a database that is not
    configured.
    """
    scheduling = read_scheduling_options(source, hosts_needed=False)
    options = source.read(ConductingOptions, **msgspec.structs.asdict(scheduling), cell=cell)
    if options.api_database is None and (cell is None or not options.uses_service):
        raise OperatorError(_NO_API_DATABASE)
    if cell is None:
        return options
    url = url_of(CellMapping(cell, section_of(cell)), source)
    return msgspec.structs.replace(options, cell_database=url)
