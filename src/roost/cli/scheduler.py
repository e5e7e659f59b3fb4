"""``roost scheduler``: the scheduler by itself."""

import click

from roost.cli.options import placement_database
from roost.cli.serving_programs import ServingOptions, serve_program, serving_at
from roost.process.option_source import Source
from roost.server.scheduler.server import scheduler_kind

PORT = 8779


@click.command(epilog="Example: roost scheduler --database sqlite:///placement.db --config-file roost.conf")
@placement_database
@serving_at(PORT)
def scheduler(serving: ServingOptions, source: Source, database: str | None) -> None:
    """Serve the scheduler: it chooses hosts for instances and claims them in placement.

    With a database it decides on the ledger there. Without one it asks a placement service over HTTP, Roost's
    or OpenStack's own, by the options of keystoneauth1 in [placement]. Options come from configuration files;
    the environment (OS_<GROUP>__<OPTION>) overrides files, and --set overrides both.
    """
    serve_program("scheduler", scheduler_kind(database), source, serving)
