"""``roost scheduler``: the scheduler by itself."""

import click

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
from roost.cli.serving_programs import Serving, serve_program
from roost.cli.workers import with_workers
from roost.scheduling.server import scheduler_kind

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
    kind = scheduler_kind(database)
    serving = Serving(listening, workers, memory_limit, drain_seconds, metrics_host, metrics_port, insecure)
    serve_program("scheduler", kind, source, serving)
