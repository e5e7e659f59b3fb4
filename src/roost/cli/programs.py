"""The commands that serve a program: placement, scheduler, both kinds of conductors, neighbours."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial, reduce, wraps
from typing import Any, NamedTuple, TypeVar

import click
from msgspec import structs

from roost.cli.configuration import placement_source, print_warnings, tell_options
from roost.cli.listen_options import ListenOptions, listening_at
from roost.cli.options import (
    config_files,
    metrics_host,
    metrics_port,
    no_authentication,
    placement_database,
    settings,
)
from roost.cli.workers import MIB, with_workers
from roost.model.errors import OperatorError
from roost.placement.options import PlacementOptions, proxy_warnings, read_options
from roost.process.instrumentation import exposed
from roost.process.logs import configure_logs
from roost.process.option_source import Source
from roost.server.programs import Program, prepare
from roost.server.programs import serve as serve_workers
from roost.server.workers.database_wait import prepare_unless_away
from roost.server.workers.listeners import listen
from roost.server.workers.supervision import SupervisionRules
from roost.storage import DatabaseUrl

Options = TypeVar("Options", bound=PlacementOptions)

PLACEMENT_PORT = 8778
SCHEDULER_PORT = 8779
CONDUCTOR_PORT = 8780
CELL_PORT = 8781
NOVA_PORT = 8782
DASHBOARD_PORT = 8783
NEIGHBOURS_PORT = 9696


class ServingOptions(NamedTuple):
    """The options of a command that serves a program.

    ``source``: of the configuration. ``rules``: the limits of the worker processes. ``metrics_port``: None:
    no metrics. ``insecure``: other machines may be served without authentication.
    """

    source: Source
    listening: ListenOptions
    rules: SupervisionRules
    metrics_host: str
    metrics_port: int | None
    insecure: bool


def serving_at(port: int) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that adds the options of serving and of the configuration to a command.

    The command gets ``serving``: `ServingOptions`. ``port``: the default port.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def with_serving(
            listening: ListenOptions,
            workers: int,
            memory_limit: int | None,
            drain_seconds: float,
            config_files: tuple[str, ...],
            settings: tuple[str, ...],
            metrics_port: int | None,
            metrics_host: str,
            insecure: bool,
            **others: Any,
        ) -> None:
            limit = None if memory_limit is None else memory_limit * MIB
            rules = SupervisionRules(workers, drain_seconds=drain_seconds, memory_limit=limit)
            source = placement_source(config_files, settings)
            command(
                serving=ServingOptions(source, listening, rules, metrics_host, metrics_port, insecure),
                **others,
            )

        options = (
            listening_at(port),
            with_workers,
            config_files,
            settings,
            metrics_port,
            metrics_host,
            no_authentication,
        )
        return reduce(lambda decorated, option: option(decorated), reversed(options), with_serving)

    return decorate


@click.command(
    epilog="Example: OS_API__AUTH_STRATEGY=noauth2 roost serve --port 8778 --database sqlite:///placement.db"
)
@placement_database
@serving_at(PLACEMENT_PORT)
def serve(serving: ServingOptions, database: str | None) -> None:
    """Serve the Placement API, microversions 1.0 to 1.39.

    The tables of a new SQLite file are created; other databases need 'roost db upgrade' first. Options come
    from configuration files; the environment (OS_<GROUP>__<OPTION>) overrides files, and --set overrides
    both.
    """
    tell_options(serving.source, "serve")
    serve_program("serve", read_options, serving, "Placement API", database)


@click.command(epilog="Example: roost scheduler --database sqlite:///placement.db --config-file roost.conf")
@placement_database
@serving_at(SCHEDULER_PORT)
def scheduler(serving: ServingOptions, database: str | None) -> None:
    """Serve the scheduler: it chooses hosts for instances and claims them in placement.

    With a database it decides on the ledger there. Without one it asks a placement service over HTTP, Roost's
    or OpenStack's own, by the options of keystoneauth1 in [placement]. Options come from configuration files;
    the environment (OS_<GROUP>__<OPTION>) overrides files, and --set overrides both.
    """
    from roost.server.options import read_scheduling_options

    tell_options(serving.source, "scheduler", schedules=True)
    serve_program("scheduler", read_scheduling_options, serving, "scheduler", database)


@click.command(epilog="Example: roost dashboard --config-file roost.conf")
@placement_database
@serving_at(DASHBOARD_PORT)
def dashboard(serving: ServingOptions, database: str | None) -> None:
    """Serve the dashboard: pages of the fleet, its hosts, instances and decisions, and of refusals.

    It reads the ledger of [placement_database], the records, the API database and the cells, and writes
    none of them. What users do there goes to the conductor of [dashboard] conductor_endpoint, with their own
    tokens. Options come from configuration files; the environment (OS_<GROUP>__<OPTION>) overrides files,
    and --set overrides both.
    """
    from roost.server.options import read_scheduling_options

    tell_options(serving.source, "dashboard", schedules=True)
    if serving.rules.workers != 1:
        raise click.UsageError("the dashboard is one process: start several of them, not --workers")
    serve_program("dashboard", read_scheduling_options, serving, "dashboard", database)


@click.command(epilog="Example: roost conductor --config-file roost.conf")
@serving_at(CONDUCTOR_PORT)
def conductor(serving: ServingOptions) -> None:
    """Serve the API of instances, aggregates and groups, and bring accepted requests to their cells.

    It runs the scheduler itself, on the ledger of [placement_database], or asks one over HTTP, by
    [conductor] use_scheduler_service. Requests are in [api_database]; the database of each cell is connection
    in [cell_NAME], and that of cell0 in [cell0].
    Any number may run at once. Options come from configuration files; the environment (OS_<GROUP>__<OPTION>)
    overrides files, and --set overrides both.
    """
    from roost.server.options import read_conducting_options

    tell_options(serving.source, "conductor", schedules=True)
    serve_program("conductor", read_conducting_options, serving, "conductor")


@click.command(epilog="Example: roost cell-conductor rack1 --config-file roost.conf")
@click.argument("name")
@serving_at(CELL_PORT)
def cell_conductor(name: str, serving: ServingOptions) -> None:
    """Serve the agents of the cell NAME, and finish its builds and deletions.

    It runs the scheduler itself, on the ledger of [placement_database], or asks one over HTTP, by
    [conductor] use_scheduler_service. The database of the cell is connection in [cell_NAME].
    Any number may run at once. Options come from configuration files; the environment (OS_<GROUP>__<OPTION>)
    overrides files, and --set overrides both.
    """
    from roost.server.options import read_conducting_options

    tell_options(serving.source, "cell-conductor", schedules=True)
    read = partial(read_conducting_options, cell=name)
    serve_program("cell-conductor", read, serving, f"cell conductor of {name}")


@click.command(epilog="Example: roost neighbours --database sqlite:///neighbours.db --config-file roost.conf")
@click.option("--database", metavar="URL", help="SQLAlchemy URL; else [neighbours] connection.")
@serving_at(NEIGHBOURS_PORT)
def neighbours(serving: ServingOptions, database: str | None) -> None:
    """Serve ports and accelerators, for platforms without Neutron and Cyborg.

    It has the parts of their APIs that agents use: networks with pools of addresses and ports below /v2.0,
    device profiles and accelerator requests below /v2. Agents use it, or the real ones, by [neutron] and
    [cyborg] of their configuration. It keeps the books and switches nothing.
    """
    from roost.server.neighbours.options import read_neighbour_options

    tell_options(serving.source, "neighbours", schedules=True)
    serve_program("neighbours", read_neighbour_options, serving, "neighbours", database)


def serve_program(
    command: str,
    read: Callable[[Source], Options],
    serving: ServingOptions,
    name: str,
    database: str | None = None,
) -> None:
    """Serve a program until SIGTERM or SIGINT. Raises `OperatorError`.

    ``read``: as of `Program`. ``name``: the announced name. ``database``: the URL on the
    command line.
    """
    listening, rules = serving.listening, serving.rules
    configured = options = read(serving.source)
    if database is not None:
        options = structs.replace(configured, database=DatabaseUrl(database))
    if command == "serve" and options.database is None:
        raise OperatorError(
            "no database: give --database, or set connection in [placement_database] of a configuration file"
        )
    program = Program(
        command,
        read,
        configured,
        options,
        serving.insecure,
        rules,
        listening.host,
        listening.url,
        listening.tls,
    )
    program.check()
    listeners = listen(listening.address, rules.workers)
    with exposed(serving.metrics_host, serving.metrics_port) as metrics:
        configure_logs(options.logs)
        prepare_unless_away(partial(prepare, command, options), options.databases.values())
        print_warnings(proxy_warnings(options))
        announcement = f"roost: {name} on {listening} with {rules.workers} worker(s)"
        serve_workers(
            listeners, replace(program, metrics=metrics), lambda: click.echo(announcement, err=True)
        )
