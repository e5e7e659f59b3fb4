"""``roost serve``: the Placement API by itself."""

import click

from roost.model.errors import OperatorError
from roost.placement.http.server import check_address, check_options, prepare_database
from roost.placement.http.server import serve as serve_placement
from roost.placement.options import read_options


@click.command(
    epilog="Example: OS_API__AUTH_STRATEGY=noauth2 roost serve --port 8778 --database sqlite:///placement.db"
)
@click.option("--port", type=click.IntRange(1, 65535), default=8778, show_default=True, help="Port.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--database", metavar="URL", help="SQLAlchemy URL; else [placement_database] connection.")
@click.option("--workers", type=click.IntRange(1), default=1, show_default=True, help="Processes.")
@click.option("--config-file", type=click.Path(), help="A file with options by upstream's names.")
def serve(port: int, host: str, database: str | None, workers: int, config_file: str | None) -> None:
    """Serve the Placement API, microversions 1.0 to 1.39.

    An empty SQLite file is set up by itself; other databases need 'roost db upgrade' first. Options come
    from the configuration file and, over it, from the environment as OS_<GROUP>__<OPTION>.
    """
    options = read_options(config_file)
    check_options(options)
    url = database or options.database
    if url is None:
        raise OperatorError(
            "no database: give --database, or set connection in [placement_database] of a configuration file"
        )
    check_address(host, port)
    prepare_database(url)
    click.echo(f"roost: Placement API on http://{host}:{port} with {workers} worker(s)", err=True)
    serve_placement(host, port, workers, url, options)
