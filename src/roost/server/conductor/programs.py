"""The programs `roost conductor` and `roost cell-conductor`: their options and checks."""

from functools import partial

from roost.conductor.http import default_rules
from roost.placement.access import open_authenticator
from roost.placement.client import HttpPlacement
from roost.process import tracing
from roost.scheduler.client import HttpScheduler
from roost.server.conductor.cell import open_cell
from roost.server.conductor.conductor import open_conductor
from roost.server.conductor.options import ConductingOptions, read_conducting_options, shown_options
from roost.server.placement.server import prepare_database
from roost.server.scheduler.program import ProgramKind
from roost.state.api_database.tables import SCHEMA as CONDUCTOR
from roost.state.cell_database import SCHEMA as CELL
from roost.web.auth.rules import PolicyRules


def check_options(options: ConductingOptions) -> None:
    """Check that the options of tokens, policies and other services work. Raises `OperatorError`."""
    open_authenticator(options)
    PolicyRules(default_rules(), options.source, options.enforce_new_defaults)
    tracing.check(options.tracing)
    if options.database is None:
        HttpPlacement.configured(options.source)
    if options.uses_service:
        HttpScheduler.configured(options.source)


def prepare(options: ConductingOptions) -> None:
    """Create the tables of empty SQLite files, and check those of other databases. Raises `StorageError`."""
    if options.database is not None:
        prepare_database(options.database, options.upgrade_database)
    if options.needed_api_database is not None:
        prepare_database(options.needed_api_database, schema=CONDUCTOR)
    if options.cell_database is not None:
        prepare_database(options.cell_database, schema=CELL)


def conductor_kind() -> ProgramKind[ConductingOptions]:
    """Return the program of the super conductor."""
    return ProgramKind(read_conducting_options, check_options, prepare, shown_options, open_conductor)


def cell_kind(cell: str) -> ProgramKind[ConductingOptions]:
    """Return the program of a cell's conductor."""
    read = partial(read_conducting_options, cell=cell)
    return ProgramKind(read, check_options, prepare, shown_options, open_cell)
