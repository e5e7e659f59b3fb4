"""The options of the conductors' programs."""

from typing import Final

import msgspec

from roost.conductor.agent_endpoint.offer_limits import NO_LIMITS, OfferLimits
from roost.conductor.audit.rounds import AuditOptions
from roost.conductor.time_limits import TimeLimits
from roost.model.errors import OperatorError
from roost.process.option_source import Source
from roost.process.options import option, options_of_group
from roost.process.report import masked_options
from roost.server.scheduler_options import SchedulingOptions, read_scheduling_options
from roost.server.scheduler_options import shown_options as shown_scheduling
from roost.state.api_database.cell_mappings import CellMapping, cell_options, section_of, url_of
from roost.storage import DatabaseUrl

_NO_API_DATABASE: Final = "no database of the conductors: set connection in [api_database]"


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


def shown_options(options: ConductingOptions) -> dict[str, object]:
    """Return all options with their values, secrets masked, for the report of a process."""
    conf = options.source.open()
    groups = options_of_group(ConductingOptions)
    if options.cell is not None:
        groups |= cell_options(section_of(options.cell))
    options.source.register(conf, groups)
    return {**shown_scheduling(options), **masked_options(conf, groups)}
