"""``roost serve``: the Placement API by itself."""

from functools import partial

import click

from roost.cli.configuration import print_warnings, tell_options
from roost.cli.options import placement_database
from roost.cli.serving_programs import ServingOptions, serving_at
from roost.model.errors import OperatorError
from roost.placement.options import proxy_warnings, read_options
from roost.process.logs import configure_logs
from roost.process.metrics.switch import exposed
from roost.process.option_source import Source
from roost.server.placement.server import PlacementProgram, check_exposure, check_options, prepare_database
from roost.server.placement.server import serve as serve_placement
from roost.server.workers.database_wait import prepare_unless_away
from roost.server.workers.listeners import listen
from roost.storage import DatabaseUrl


@click.command(
    epilog="Example: OS_API__AUTH_STRATEGY=noauth2 roost serve --port 8778 --database sqlite:///placement.db"
)
@placement_database
@serving_at(8778)
def serve(serving: ServingOptions, source: Source, database: str | None) -> None:
    """Serve the Placement API, microversions 1.0 to 1.39.

    The tables of a new SQLite file are created; other databases need 'roost db upgrade' first. Options come
    from configuration files; the environment (OS_<GROUP>__<OPTION>) overrides files, and --set overrides
    both.
    """
    listening, rules = serving.listening, serving.rules
    tell_options(source, "serve")
    options = read_options(source)
    check_options(options)
    url = options.database if database is None else DatabaseUrl(database)
    if url is None:
        raise OperatorError(
            "no database: give --database, or set connection in [placement_database] of a configuration file"
        )
    if options.auth_strategy == "noauth2":
        check_exposure(listening.host, serving.insecure)
    listeners = listen(listening.address, rules.workers)
    with exposed(serving.metrics_host, serving.metrics_port) as metrics:
        configure_logs(options.logs)
        prepare_unless_away(partial(prepare_database, url, options.upgrade_database), (url,))
        print_warnings(proxy_warnings(options))
        announcement = f"roost: Placement API on {listening} with {rules.workers} worker(s)"
        service = PlacementProgram(
            url, options, serving.insecure, rules, listening.host, listening.tls, metrics
        )
        serve_placement(listeners, service, lambda: click.echo(announcement, err=True))
