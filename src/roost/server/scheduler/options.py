"""The options of `roost scheduler`."""

from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec.structs import replace
from oslo_config import cfg

from roost.model.errors import OperatorError
from roost.placement.options import PlacementOptions, read_options
from roost.placement.options import shown_options as shown_http_options
from roost.process.option_source import Source, refused_value
from roost.process.report import masked_options
from roost.records.options import GROUP as RECORDS
from roost.records.options import OPTIONS as RECORD_OPTIONS
from roost.scheduler import SchedulerOptions
from roost.scheduler.options import all_options as scheduler_options
from roost.scheduler.options import options_from
from roost.state.api_database.api_database import GROUP as API_DATABASE
from roost.state.api_database.api_database import OPTIONS as API_DATABASE_OPTIONS
from roost.storage import DatabaseUrl, configured_url

GROUP: Final = "scheduler"

OPTIONS = [
    cfg.BoolOpt(
        "hosts_from_placement",
        default=False,
        help="Root providers of placement that nobody reports for are hosts too, and always alive. For "
        "platforms whose hosts have no agents.",
    ),
    cfg.FloatOpt(
        "placement_hosts_seconds",
        default=5.0,
        min=0.0,
        help="With hosts_from_placement, seconds between two readings of all hosts of a placement service "
        "over HTTP.",
    ),
]


class SchedulingOptions(PlacementOptions, frozen=True, kw_only=True):
    """The configuration of the scheduler as a service, with the options that all services share.

    ``database``: the URL of the ledger; None: placement is reached over HTTP. ``api_database``: the URL of
    the conductors' database; None: there is none.
    """

    source: Source
    scheduler: SchedulerOptions
    api_database: DatabaseUrl | str | None = None
    hosts_from_placement: bool = False
    placement_hosts_seconds: float = 5.0

    @property
    def databases(self) -> dict[str, DatabaseUrl | str | None]:
        return {**super().databases, "[api_database] connection": self.api_database}


def open_conf(source: Source) -> cfg.ConfigOpts:
    """Open a configuration with the options of scheduler, records and conductors. Raises `OperatorError`."""
    conf = source.open()
    for group, options in scheduler_options().items():
        source.register(conf, group, options)
    source.register(conf, GROUP, OPTIONS)
    source.register(conf, RECORDS, RECORD_OPTIONS)
    source.register(conf, API_DATABASE, API_DATABASE_OPTIONS)
    return conf


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
        options = SchedulingOptions(
            **msgspec.structs.asdict(replace(shared, database=database or shared.database)),
            scheduler=options_from(conf),
            api_database=configured_url(conf[API_DATABASE].connection, source, API_DATABASE),
            hosts_from_placement=conf[GROUP].hosts_from_placement,
            placement_hosts_seconds=conf[GROUP].placement_hosts_seconds,
        )
    except (cfg.Error, ValueError) as error:
        raise refused_value(error) from error
    if hosts_needed and options.api_database is None and not options.hosts_from_placement:
        raise OperatorError(
            "no hosts: set connection in [api_database] to the database of the conductors, or "
            "hosts_from_placement in [scheduler] if hosts have no agents"
        )
    return options


def shown_options(options: SchedulingOptions) -> dict[str, object]:
    """Return all options with their values, secrets masked, for the report of a process."""
    of_scheduler = scheduler_options()
    groups: dict[str, Sequence[cfg.Opt]] = {
        **of_scheduler,
        GROUP: [*of_scheduler.get(GROUP, ()), *OPTIONS],
        RECORDS: RECORD_OPTIONS,
        API_DATABASE: API_DATABASE_OPTIONS,
    }
    return {**shown_http_options(options), **masked_options(open_conf(options.source), groups)}
