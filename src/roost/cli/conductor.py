"""``roost conductor``: the super conductor by itself."""

import click

from roost.cli.serving_programs import ServingOptions, serve_program, serving_at
from roost.process.option_source import Source
from roost.server.conductor.programs import conductor_kind

PORT = 8780


@click.command(epilog="Example: roost conductor --config-file roost.conf")
@serving_at(PORT)
def conductor(serving: ServingOptions, source: Source) -> None:
    """Serve the API of instances, aggregates and groups, and bring accepted requests to their cells.

    It runs the scheduler itself, on the ledger of [placement_database], or asks one over HTTP, by
    [conductor] use_scheduler_service. Requests are in [api_database]; the database of each cell is connection
    in [cell_NAME], and that of cell0 in [cell0].
    Any number may run at once. Options come from configuration files; the environment (OS_<GROUP>__<OPTION>)
    overrides files, and --set overrides both.
    """
    serve_program("conductor", conductor_kind(), source, serving)
