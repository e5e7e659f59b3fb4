"""The options of `roost scheduler`."""

import msgspec
from msgspec.structs import replace
from oslo_config import cfg

from roost.model.errors import OperatorError
from roost.placement.options import PlacementOptions, read_options
from roost.placement.options import shown_options as shown_http_options
from roost.process.option_source import Source, refused_value
from roost.process.options import option, options_by_group, options_of_group, read_struct
from roost.process.report import masked_options
from roost.records.options import RecordOptions
from roost.scheduler import SchedulerOptions
from roost.scheduler.options import all_options as scheduler_options
from roost.scheduler.options import options_from
from roost.state.api_database.api_database import ApiDatabaseOptions
from roost.storage import DatabaseUrl, configured_url


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


def shown_options(options: SchedulingOptions) -> dict[str, object]:
    """Return all options with their values, secrets masked, for the report of a process."""
    return {**shown_http_options(options), **masked_options(open_conf(options.source), _groups())}
