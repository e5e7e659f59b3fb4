"""The options of `roost neighbours`, in group ``neighbours``."""

from msgspec import structs
from oslo_config import cfg

from roost.placement.options import PlacementOptions, read_options
from roost.placement.options import shown_options as shown_http_options
from roost.process.option_source import Source, refused_value
from roost.process.report import masked_options
from roost.storage import DatabaseUrl, configured_url

GROUP = "neighbours"

OPTIONS = [
    cfg.StrOpt(
        "connection",
        default="sqlite:///neighbours.db",
        secret=True,
        help="The database of `roost neighbours`, the small service of ports and accelerators.",
    ),
]


class NeighbourOptions(PlacementOptions, frozen=True, kw_only=True):
    """The options of the service, with those that all services share. ``database``: the URL of its own."""

    source: Source
    database: DatabaseUrl | str

    @property
    def databases(self) -> dict[str, DatabaseUrl | str | None]:
        return {"[neighbours] connection": self.database}


def read_neighbour_options(source: Source, database: str | None = None) -> NeighbourOptions:
    """Read the options. ``database``: the URL of the command line. Raises `OperatorError`."""
    conf = source.open()
    source.register(conf, GROUP, OPTIONS)
    try:
        url = database or configured_url(conf[GROUP].connection, source, GROUP)
    except (cfg.Error, ValueError) as error:
        raise refused_value(error) from error
    assert url is not None  # the option has a default
    return NeighbourOptions(**structs.asdict(structs.replace(read_options(source), database=url)))


def shown_options(options: NeighbourOptions) -> dict[str, object]:
    """Return all options with their values, secrets masked, for the report of a process."""
    conf = options.source.open()
    options.source.register(conf, GROUP, OPTIONS)
    return {**shown_http_options(options), **masked_options(conf, {GROUP: OPTIONS})}
