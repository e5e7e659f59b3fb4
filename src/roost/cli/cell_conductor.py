"""``roost cell-conductor``: the conductor of one cell by itself."""

import click

from roost.cli.listening import Listening, listening_at
from roost.cli.options import config_files, metrics_host, metrics_port, no_authentication, settings
from roost.cli.placement_config import placement_source
from roost.cli.serving_programs import Serving, serve_program
from roost.cli.workers import with_workers
from roost.conducting.programs import cell_kind

PORT = 8781


@click.command(epilog="Example: roost cell-conductor rack1 --config-file roost.conf")
@click.argument("name")
@listening_at(PORT)
@with_workers
@config_files
@settings
@metrics_port
@metrics_host
@no_authentication
def cell_conductor(
    name: str,
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
    """Serve the agents of the cell NAME, and end what its builds and deletions leave to do.

    It decides by itself on the ledger of [placement_database], or asks a scheduler over HTTP, by
    [conductor] use_scheduler_service. The database of the cell is connection in [cell_NAME].
    Any number may run at once. Options come from configuration files; the environment (OS_<GROUP>__<OPTION>)
    overrides files, and --set overrides both.
    """
    kind = cell_kind(name)
    serving = Serving(listening, workers, memory_limit, drain_seconds, metrics_host, metrics_port, insecure)
    source = placement_source(config_files, settings)
    serve_program(f"cell conductor of {name}", kind, source, serving)
