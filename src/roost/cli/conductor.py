"""``roost conductor``: the super conductor by itself."""

import click

from roost.cli.listening import Listening, listening_at
from roost.cli.options import config_files, metrics_host, metrics_port, no_authentication, settings
from roost.cli.placement_config import placement_source
from roost.cli.serving_programs import Serving, serve_program
from roost.cli.workers import with_workers
from roost.conducting.programs import conductor_kind

PORT = 8780


@click.command(epilog="Example: roost conductor --config-file roost.conf")
@listening_at(PORT)
@with_workers
@config_files
@settings
@metrics_port
@metrics_host
@no_authentication
def conductor(
    listening: Listening,
    workers: int,
    memory_limit: int | None,
    drain_seconds: float,
    config_files: tuple[str, ...],
    settings: tuple[str, ...],
    metrics_port: int | None,
    metrics_host: str,
    insecure: bool,
) -> None:
    """Serve the API of instances, aggregates and groups, and carry what it accepts to the cells.

    It decides by itself on the ledger of [placement_database], or asks a scheduler over HTTP, by
    [conductor] use_scheduler_service. Requests are in [api_database]; the database of each cell is connection
    in [cell_NAME], and that of cell0 in [cell0].
    Any number may run at once. Options come from configuration files; the environment (OS_<GROUP>__<OPTION>)
    overrides files, and --set overrides both.
    """
    kind = conductor_kind()
    serving = Serving(listening, workers, memory_limit, drain_seconds, metrics_host, metrics_port, insecure)
    source = placement_source(config_files, settings)
    serve_program("conductor", kind, source, serving)
