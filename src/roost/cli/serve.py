"""``roost serve``: the Placement API by itself."""

import click

from roost.cli.configuration import options_without_effect, print_warnings
from roost.cli.listening import Listening, listening
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
from roost.model.errors import OperatorError
from roost.placement.http.server import (
    PlacementService,
    check_exposure,
    check_options,
    prepare_database,
)
from roost.placement.http.server import serve as serve_placement
from roost.placement.options import proxy_warnings, read_options
from roost.serving.listeners import listen
from roost.serving.supervision import Rules


@click.command(
    epilog="Example: OS_API__AUTH_STRATEGY=noauth2 roost serve --port 8778 --database sqlite:///placement.db"
)
@listening
@placement_database
@with_workers
@config_files
@settings
@metrics_port
@metrics_host
@no_authentication
def serve(
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
    """Serve the Placement API, microversions 1.0 to 1.39.

    The tables of a new SQLite file are created; other databases need 'roost db upgrade' first. Options come
    from configuration files; the environment (OS_<GROUP>__<OPTION>) overrides files, and --set overrides
    both.
    """
    source = placement_source(config_files, settings)
    options = read_options(source)
    warnings = options_without_effect(source, options.auth_strategy)
    check_options(options)
    url = database or options.database
    if url is None:
        raise OperatorError(
            "no database: give --database, or set connection in [placement_database] of a configuration file"
        )
    if options.auth_strategy == "noauth2":
        check_exposure(listening.host, allowed=insecure)
    listeners = listen(listening.address, workers)
    with exposed(metrics_host, metrics_port) as metrics:
        prepare_database(url, options.upgrade_database)
        print_warnings([*warnings, *proxy_warnings(options)])
        announcement = f"roost: Placement API on {listening} with {workers} worker(s)"
        rules = Rules(
            workers,
            drain_seconds=drain_seconds,
            memory_limit=None if memory_limit is None else memory_limit * MIB,
        )
        service = PlacementService(url, options, insecure, rules, listening.host, listening.tls, metrics)
        serve_placement(listeners, service, lambda: click.echo(announcement, err=True))
