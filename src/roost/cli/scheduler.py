"""``roost scheduler``: the scheduler by itself."""

import click

from roost.cli.configuration import options_without_effect, print_warnings
from roost.cli.listening import Listening, listening_at
from roost.cli.options import (
    config_files,
    metrics_host,
    metrics_port,
    no_authentication,
    placement_database,
    settings,
)
from roost.cli.placement_config import placement_source
from roost.cli.workers import MIB, with_workers
from roost.metrics.enabling import exposed
from roost.placement.http.server import check_exposure, prepare_database
from roost.placement.options import proxy_warnings, read_options
from roost.scheduling.options import read_scheduling_options
from roost.scheduling.server import SchedulingService, check_options
from roost.scheduling.server import serve as serve_scheduler
from roost.serving.listeners import listen
from roost.serving.supervision import Rules

PORT = 8779


@click.command(epilog="Example: roost scheduler --database sqlite:///placement.db --config-file roost.conf")
@listening_at(PORT)
@placement_database
@with_workers
@config_files
@settings
@metrics_port
@metrics_host
@no_authentication
def scheduler(
    listening: Listening,
    database: str | None,
    workers: int,
    memory_limit: int | None,
    drain_seconds: float,
    config_files: tuple[str, ...],
    settings: tuple[str, ...],
    metrics_port: int | None,
    metrics_host: str,
    insecure: bool,
) -> None:
    """Serve the scheduler: it chooses hosts for instances and claims them in placement.

    With a database it decides on the ledger there. Without one it asks a placement service over HTTP, Roost's
    or OpenStack's own, by the options of keystoneauth1 in [placement]. Options come from configuration files;
    the environment (OS_<GROUP>__<OPTION>) overrides files, and --set overrides both.
    """
    source = placement_source(config_files, settings)
    http = read_options(source)
    warnings = options_without_effect(source, http.auth_strategy, schedules=True)
    options = read_scheduling_options(source, database)
    check_options(options)
    if http.auth_strategy == "noauth2":
        check_exposure(listening.host, allowed=insecure)
    listeners = listen(listening.address, workers)
    with exposed(metrics_host, metrics_port) as metrics:
        if options.database is not None:
            prepare_database(options.database, http.upgrade_database)
        print_warnings([*warnings, *proxy_warnings(http)])
        announcement = f"roost: scheduler on {listening} with {workers} worker(s)"
        rules = Rules(
            workers,
            drain_seconds=drain_seconds,
            memory_limit=None if memory_limit is None else memory_limit * MIB,
        )
        service = SchedulingService(
            database, options, insecure, rules, listening.host, listening.tls, metrics
        )
        serve_scheduler(listeners, service, lambda: click.echo(announcement, err=True))
