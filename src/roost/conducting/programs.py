"""`roost conductor` and `roost cell-conductor` as programs."""

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from functools import partial

from roost import tracing
from roost.auth import Source
from roost.auth.rules import Rules
from roost.cells import SCHEMA as CELL
from roost.conducting.cell import open_cell
from roost.conducting.conductor import open_conductor
from roost.conducting.options import ConductingOptions, read_conducting_options, shown_options
from roost.conducting.waiting import do_when_there, open_when_there
from roost.conductor.http import default_rules
from roost.conductor.tables import SCHEMA as CONDUCTOR
from roost.placement.access import open_authenticator
from roost.placement.client import HttpPlacement
from roost.placement.http.server import prepare_database
from roost.scheduling.client import HttpScheduler
from roost.scheduling.program import Kind
from roost.serving.worker import Served


def check_options(options: ConductingOptions) -> None:
    """Check that tokens, policies and access to other services work with these. Raises `OperatorError`."""
    open_authenticator(options.http)
    Rules(default_rules(), options.source, options.http.enforce_new_defaults)
    tracing.check(options.http.tracing)
    if options.scheduling.database is None:
        HttpPlacement.configured(options.source)
    if options.uses_service:
        HttpScheduler.configured(options.source)


def prepare(options: ConductingOptions) -> None:
    """Set up empty SQLite files, and check the tables of other databases, once they answer.

    Raises `StorageError` for tables of another revision.
    """
    do_when_there(partial(_prepare_all, options))


def _prepare_all(options: ConductingOptions) -> None:
    if options.scheduling.database is not None:
        prepare_database(options.scheduling.database, options.http.upgrade_database)
    if options.scheduling.api_database is not None:
        prepare_database(options.scheduling.api_database, schema=CONDUCTOR)
    if options.cell_database is not None:
        prepare_database(options.cell_database, schema=CELL)


def conductor_kind() -> Kind[ConductingOptions]:
    """The super conductor."""
    return _kind(read_conducting_options, open_conductor)


def cell_kind(cell: str) -> Kind[ConductingOptions]:
    """The conductor of a cell."""
    return _kind(partial(read_conducting_options, cell=cell), open_cell)


def _kind(
    read: Callable[[Source], ConductingOptions],
    open_: Callable[[ConductingOptions, AsyncExitStack], Awaitable[Served]],
) -> Kind[ConductingOptions]:
    async def open_later(options: ConductingOptions, stack: AsyncExitStack) -> Served:
        return await open_when_there(stack, partial(open_, options))

    return Kind(read, check_options, prepare, shown_options, open_later)
