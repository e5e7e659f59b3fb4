"""The configuration of a whole system: the options of all services, and defaults in a data directory.

Options are read from files; the environment (``OS_<GROUP>__<OPTION>``) overrides them.
"""

from pathlib import Path

from msgspec import structs

from roost.model.errors import OperatorError
from roost.placement.unsupported import groups_in
from roost.process.durable_file import why_no_directory
from roost.process.option_source import Setting, Source
from roost.records import RecordQueue, open_records
from roost.server.all_in_one.system import API_DB, SystemOptions
from roost.server.conductor.options import read_conducting_options
from roost.server.scheduler.options import open_conf
from roost.state.api_database.cell_mappings import CELL0, cell_options, section_of


def in_directory(source: Source, directory: Path) -> Source:
    """Return the source with defaults of a data directory.

    Databases that the source does not name are files in the directory. Tokens are checked only if it says so.
    """
    return structs.replace(
        source,
        defaults=(
            *_databases(directory),
            *_records(directory),
            Setting("api", "auth_strategy", "noauth2"),
        ),
    )


def only_in_directory(source: Source, directory: Path) -> Source:
    """Return the source with its own records database, and with all other databases in a data directory."""
    return structs.replace(
        source, settings=(*source.settings, *_databases(directory)), defaults=_records(directory)
    )


def configured_cells(source: Source) -> tuple[str, ...]:
    """Return the cells whose databases the source names, in order of names; cell0, if named, is the last."""
    prefix = section_of("")
    names = sorted(group.removeprefix(prefix) for group in groups_in(source) if group.startswith(prefix))
    return tuple(name for name in (*names, CELL0) if _connection(source, name) is not None)


def read_system_options(source: Source, configured: tuple[str, ...] = (), **others: object) -> SystemOptions:
    """Read the options of a system from a source.

    ``configured``: the cells whose databases the source names; ``others``: further options. Raises
    `OperatorError` for a file or value that cannot be used.
    """
    return SystemOptions(
        **structs.asdict(read_conducting_options(source)),
        configured=frozenset(configured),
        **others,  # type: ignore[arg-type]
    )


async def open_system_records(source: Source, data_dir: Path) -> RecordQueue:
    """Open the records that the configuration names. Raises `OperatorError`."""
    try:
        data_dir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OperatorError(f"data directory {data_dir} cannot be used: {why_no_directory(error)}") from error
    return await open_records(open_conf(source))


def _databases(directory: Path) -> tuple[Setting, ...]:
    url = f"sqlite:///{directory.resolve() / API_DB}"
    return tuple(Setting(group, "connection", url) for group in ("placement_database", "api_database"))


def _records(directory: Path) -> tuple[Setting, ...]:
    files = directory.resolve()
    return (
        Setting("records", "connection", f"sqlite:///{files / 'records.db'}"),
        Setting("records", "path", str(files / "records.jsonl")),
    )


def _connection(source: Source, cell: str) -> str | None:
    conf = source.open()
    source.register(conf, cell_options(section_of(cell)))
    return conf[section_of(cell)].connection  # type: ignore[no-any-return]
