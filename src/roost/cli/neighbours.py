"""``roost neighbours``: ports and accelerators for platforms without a cloud's own."""

import click

from roost.cli.serving_programs import ServingOptions, serve_program, serving_at
from roost.process.option_source import Source
from roost.server.neighbours.program import neighbours_kind

PORT = 9696


@click.command(epilog="Example: roost neighbours --database sqlite:///neighbours.db --config-file roost.conf")
@click.option("--database", metavar="URL", help="SQLAlchemy URL; else [neighbours] connection.")
@serving_at(PORT)
def neighbours(serving: ServingOptions, source: Source, database: str | None) -> None:
    """Serve ports and accelerators, for platforms without Neutron and Cyborg.

    It has the parts of their APIs that agents use: networks with pools of addresses and ports below /v2.0,
    device profiles and accelerator requests below /v2. Agents use it, or the real ones, by [neutron] and
    [cyborg] of their configuration. It keeps the books and switches nothing.
    """
    serve_program("neighbours", neighbours_kind(database), source, serving)
