"""The database of a command of `roost db`, by its URL or by the configuration of the services."""

from collections.abc import Callable
from functools import reduce, wraps
from typing import Any, NamedTuple

import click
from oslo_config import cfg

from roost.cli.configuration import placement_source, tell_options
from roost.cli.options import config_files, settings
from roost.model.errors import OperatorError
from roost.nova.options import BridgeOptions
from roost.placement.options import read_options
from roost.process.option_source import MAIN_DATABASE, Source, refused_value
from roost.process.options import OptionStruct, options_of_group
from roost.records.backend import RecordOptions
from roost.server.backup.roles import BRIDGE
from roost.server.neighbours.options import NeighbourOptions
from roost.state.api_database.cell_mappings import CELL0, CellOptions, section_of
from roost.state.api_database.tables import ApiDatabaseOptions
from roost.storage import DatabaseUrl, configured_url

_STRUCTS: dict[str, type[OptionStruct]] = {
    each.group: each for each in (ApiDatabaseOptions, RecordOptions, NeighbourOptions, BridgeOptions)
}
_ROLES = {
    MAIN_DATABASE: "api",
    ApiDatabaseOptions.group: "api",
    RecordOptions.group: "records",
    NeighbourOptions.group: "neighbours",
    BridgeOptions.group: BRIDGE,
}
"""The role of the database of each section. All other sections are those of cells."""

_url_option = click.option(
    "--database",
    "database",
    metavar="URL",
    help="SQLAlchemy URL, as in sqlite:///roost.db; else that of --section.",
)
_section_option = click.option(
    "--section",
    metavar="SECTION",
    help="The section of the configuration whose connection is the database: placement_database, "
    "api_database, cell0, cell_NAME, records, neighbours or nova_bridge.  "
    f"[default: {MAIN_DATABASE}]",
)


class CommandDatabase(NamedTuple):
    """The database of a command. ``role``: the role of its section; None if a URL named it."""

    url: DatabaseUrl
    role: str | None
    source: Source


class DatabaseChoice(NamedTuple):
    """The database that a command line names."""

    database: str | None
    section: str | None
    source: Source

    @property
    def is_named(self) -> bool:
        """Return whether the command line itself names a database."""
        return self.database is not None or self.section is not None

    def find(self, options: str = "--database") -> CommandDatabase:
        """Return the database. ``options``: the command's options that can name one, for messages.

        Raises `OperatorError` if none is named, and `UsageError` if two are.
        """
        if self.database is not None and self.section is not None:
            raise click.UsageError("give either --database or --section")
        tell_options(self.source, "db", schedules=True)
        if self.database is not None:
            return CommandDatabase(DatabaseUrl(self.database), None, self.source)
        section = self.section or MAIN_DATABASE
        role = _ROLES.get(section, "cell")
        if role == "cell" and section != CELL0 and not section.startswith(section_of("")):
            known = ", ".join((*_ROLES, CELL0, section_of("NAME")))
            raise OperatorError(f"--section {section} is not that of a database: {known}")
        url = _configured(self.source, section)
        if url is None:
            raise OperatorError(
                f"no database: give {options}, or set connection in [{section}] of a configuration file "
                "(--config-file) or in the environment"
            )
        return CommandDatabase(url, role, self.source)


def _configured(source: Source, section: str) -> DatabaseUrl | None:
    if section == MAIN_DATABASE:
        url = read_options(source).database
        return url if url is None or isinstance(url, DatabaseUrl) else DatabaseUrl(url)
    conf = source.open()
    source.register(conf, options_of_group(_STRUCTS.get(section, CellOptions), section))
    try:
        return configured_url(conf[section].connection, source, section)
    except (cfg.Error, ValueError) as error:
        raise refused_value(error) from error


def choosing_database(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options to a command, which gets them as ``choice``: `DatabaseChoice`."""

    @wraps(command)
    def with_choice(
        database: str | None,
        section: str | None,
        config_files: tuple[str, ...],
        settings: tuple[str, ...],
        **others: Any,
    ) -> None:
        command(choice=DatabaseChoice(database, section, placement_source(config_files, settings)), **others)

    options = (_url_option, _section_option, config_files, settings)
    return reduce(lambda decorated, option: option(decorated), reversed(options), with_choice)


def with_database(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options to a command, which gets the database as ``named``: `CommandDatabase`."""

    @wraps(command)
    def with_named(choice: DatabaseChoice, **others: Any) -> None:
        command(named=choice.find(), **others)

    return choosing_database(with_named)
