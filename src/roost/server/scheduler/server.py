"""The program `roost scheduler`: its options, and the checks before any process starts."""

from functools import partial

from roost.placement.access import open_authenticator
from roost.placement.client import HttpPlacement
from roost.process import tracing
from roost.process.option_source import Source
from roost.scheduler.api.app import default_rules
from roost.server.placement.server import prepare_database
from roost.server.scheduler.options import SchedulingOptions, read_scheduling_options, shown_options
from roost.server.scheduler.program import ProgramKind
from roost.server.scheduler.served import open_scheduler
from roost.web.auth.rules import PolicyRules


def check_options(options: SchedulingOptions) -> None:
    """Check that the options of tokens, policies and placement work. Raises `OperatorError`."""
    open_authenticator(options)
    PolicyRules(default_rules(), options.source, options.enforce_new_defaults)
    tracing.check(options.tracing)
    if options.database is None:
        HttpPlacement.configured(options.source)


def prepare(options: SchedulingOptions) -> None:
    """Create the tables of the ledger in an empty SQLite file, or check them. Raises `StorageError`."""
    if options.database is not None:
        prepare_database(options.database, options.upgrade_database)


def _read(database: str | None, source: Source) -> SchedulingOptions:
    return read_scheduling_options(source, database)


def scheduler_kind(database: str | None) -> ProgramKind[SchedulingOptions]:
    """Return the program of the scheduler. ``database``: the URL of the ledger on the command line."""
    return ProgramKind(partial(_read, database), check_options, prepare, shown_options, open_scheduler)
