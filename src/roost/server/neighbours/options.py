"""The options of `roost neighbours`, in group ``neighbours``."""

from msgspec import structs

from roost.placement.options import PlacementOptions, read_options
from roost.process.option_source import Source
from roost.process.options import option, options_of_group
from roost.process.report import masked_options
from roost.storage import DatabaseUrl, configured_url


class NeighbourOptions(PlacementOptions, frozen=True, kw_only=True, group="neighbours"):
    """The options of the service, with those that all services share. ``database``: the URL of its own."""

    source: Source
    database: DatabaseUrl | str = option(
        "sqlite:///neighbours.db",
        name="connection",
        secret=True,
        help="The database of `roost neighbours`, the small service of ports and accelerators.",
    )

    @property
    def databases(self) -> dict[str, DatabaseUrl | str | None]:
        return {"[neighbours] connection": self.database}

    def shown(self) -> dict[str, object]:
        conf = self.source.open()
        own = options_of_group(NeighbourOptions)
        self.source.register(conf, own)
        return {**super().shown(), **masked_options(conf, own)}


def read_neighbour_options(source: Source, database: str | None = None) -> NeighbourOptions:
    """Read the options. ``database``: the URL of the command line. Raises `OperatorError`."""
    shared = structs.asdict(read_options(source))
    del shared["database"]
    options = source.read(NeighbourOptions, **shared)
    url = database or configured_url(options.database, source, NeighbourOptions.group)
    assert url is not None  # the option has a default
    return structs.replace(options, database=url)
