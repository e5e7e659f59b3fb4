"""``roost cell-conductor``: the conductor of one cell by itself."""

import click

from roost.cli.serving_programs import ServingOptions, serve_program, serving_at
from roost.process.option_source import Source
from roost.server.conductor.programs import cell_kind

PORT = 8781


@click.command(epilog="Example: roost cell-conductor rack1 --config-file roost.conf")
@click.argument("name")
@serving_at(PORT)
def cell_conductor(name: str, serving: ServingOptions, source: Source) -> None:
    """Serve the agents of the cell NAME, and finish its builds and deletions.

    It runs the scheduler itself, on the ledger of [placement_database], or asks one over HTTP, by
    [conductor] use_scheduler_service. The database of the cell is connection in [cell_NAME].
    Any number may run at once. Options come from configuration files; the environment (OS_<GROUP>__<OPTION>)
    overrides files, and --set overrides both.
    """
    serve_program("cell-conductor", cell_kind(name), source, serving, f"cell conductor of {name}")
