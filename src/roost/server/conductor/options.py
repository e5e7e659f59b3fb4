"""The options of the conductors' programs."""

from collections.abc import Sequence
from typing import Final

import msgspec
from oslo_config import cfg

from roost.conductor.agent_endpoint.offer_limits import NO_LIMITS, OfferLimits
from roost.conductor.audit.rounds import AuditOptions
from roost.conductor.options import GROUP as CONDUCTOR
from roost.conductor.options import OPTIONS as CONDUCTOR_OPTIONS
from roost.conductor.options import audit_options_from, offer_limits_from, time_limits_from
from roost.conductor.time_limits import TimeLimits
from roost.model.errors import OperatorError
from roost.process.option_source import Source, refused_value
from roost.process.report import masked_options
from roost.server.scheduler.options import SchedulingOptions, read_scheduling_options
from roost.server.scheduler.options import shown_options as shown_scheduling
from roost.state.api_database.cell_mappings import OPTIONS as CELL_OPTIONS
from roost.state.api_database.cell_mappings import CellMapping, section_of, url_of
from roost.storage import DatabaseUrl

_NO_API_DATABASE: Final = "no database of the conductors: set connection in [api_database]"


class ConductingOptions(SchedulingOptions, frozen=True, kw_only=True):
    """The configuration of a conductor, with the options of placement, the API database and the scheduler.

    ``uses_service``: the scheduler is another service, called over HTTP. ``max_attempts``: hosts tried for an
    instance at most. ``sharing_providers``: names of the sharing providers that agents may write. ``offers``:
    limits of the inventories that agents may report. ``cell``: the cell of a cell's conductor, and
    ``cell_database`` the URL of its database; None: these are options of the super conductor.
    """

    uses_service: bool
    max_attempts: int
    time_limits: TimeLimits
    audits: AuditOptions = AuditOptions()
    sharing_providers: tuple[str, ...] = ()
    offers: OfferLimits = NO_LIMITS
    cell: str | None = None
    cell_database: DatabaseUrl | str | None = None

    @property
    def needed_api_database(self) -> DatabaseUrl | str | None:
        """The URL of the API database; None if the process needs none.

        The conductor of a cell needs it only for a scheduler of its own.
        """
        return None if self.cell is not None and self.uses_service else self.api_database

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
    conf = source.open()
    source.register(conf, CONDUCTOR, CONDUCTOR_OPTIONS)
    try:
        uses_service = conf[CONDUCTOR].use_scheduler_service
        max_attempts = conf[CONDUCTOR].max_attempts
        limits = time_limits_from(conf)
        audits = audit_options_from(conf)
        sharing = tuple(conf[CONDUCTOR].sharing_providers)
        offers = offer_limits_from(conf)
    except (cfg.Error, ValueError) as error:
        raise refused_value(error) from error
    scheduling = read_scheduling_options(source, hosts_needed=False)
    if scheduling.api_database is None and not (cell is not None and uses_service):
        raise OperatorError(_NO_API_DATABASE)
    return ConductingOptions(
        **msgspec.structs.asdict(scheduling),
        uses_service=uses_service,
        max_attempts=max_attempts,
        time_limits=limits,
        audits=audits,
        sharing_providers=sharing,
        offers=offers,
        cell=cell,
        cell_database=None if cell is None else url_of(CellMapping(cell, section_of(cell)), source),
    )


def shown_options(options: ConductingOptions) -> dict[str, object]:
    """Return all options with their values, secrets masked, for the report of a process."""
    conf = options.source.open()
    groups: dict[str, Sequence[cfg.Opt]] = {CONDUCTOR: CONDUCTOR_OPTIONS}
    if options.cell is not None:
        groups[section_of(options.cell)] = CELL_OPTIONS
    for group, of_group in groups.items():
        options.source.register(conf, group, of_group)
    return {**shown_scheduling(options), **masked_options(conf, groups)}
