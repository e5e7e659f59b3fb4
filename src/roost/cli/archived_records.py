"""``roost archive-records`` and ``roost restore-records``: old runs into an archive, and back."""

import asyncio
import time
from pathlib import Path

import click

from roost.cli.numbers import Number
from roost.cli.output import document_as_json, print_json
from roost.cli.record_sources import open_backend
from roost.records.archive import archive, restore
from roost.records.records import SECONDS_PER_DAY

data_dir = click.option(
    "--data-dir",
    type=click.Path(path_type=Path),
    help="Data directory of roost up or roost replay.  [default: what the configuration names]",
)
config_file = click.option(
    "--config-file",
    type=click.Path(path_type=Path),
    help="A file whose section [records] names the records.",
)


@click.command(
    epilog="Example: roost archive-records --data-dir ./roost-data/up --older-than 30 old.jsonl.gz"
)
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--older-than",
    "days",
    type=Number(min=0),
    required=True,
    help="Days since the start of a run, from which on it goes to the archive.",
)
@data_dir
@config_file
@document_as_json
def archive_records(
    file: Path, days: float, data_dir: Path | None, config_file: Path | None, as_json: bool
) -> None:
    """Move old runs of the scheduler into a new FILE of compressed JSON lines.

    The runs are removed from the records once the file is complete. `roost records --archive FILE` searches
    it.
    """

    async def work() -> int:
        records = await open_backend(data_dir, config_file)
        try:
            return await archive(records, file, time.time() - days * SECONDS_PER_DAY)
        finally:
            await records.close()

    moved = asyncio.run(work())
    if as_json:
        print_json({"archived": moved, "file": str(file) if moved else None})
    elif moved:
        click.echo(f"{moved:,} runs are in {file}")
    else:
        click.echo("no run is that old; no file was made")


@click.command(epilog="Example: roost restore-records --data-dir ./roost-data/up old.jsonl.gz")
@click.argument("file", type=click.Path(path_type=Path))
@data_dir
@config_file
@document_as_json
def restore_records(file: Path, data_dir: Path | None, config_file: Path | None, as_json: bool) -> None:
    """Write the runs of an archive back into the records.

    Runs that are there already stay as they are. Runs that are older than [records] retention_days are
    removed again by the next running scheduler.
    """

    async def work() -> int:
        records = await open_backend(data_dir, config_file)
        try:
            return await restore(records, file)
        finally:
            await records.close()

    restored = asyncio.run(work())
    if as_json:
        print_json({"restored": restored})
    else:
        click.echo(f"{restored:,} runs of {file} are in the records")
