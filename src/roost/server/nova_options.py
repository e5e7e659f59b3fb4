"""The options of `roost nova-scheduler`, with those of all that it is made of."""

import socket

from msgspec import structs

from roost.model.errors import OperatorError
from roost.nova.database.urls import usable_url
from roost.nova.options import CLOSE_SECONDS, BridgeOptions, NovaOptions
from roost.process.option_source import Setting, Source
from roost.process.options import options_by_group
from roost.process.report import masked_options
from roost.server.options import SchedulingOptions, read_scheduling_options
from roost.storage import DatabaseUrl, configured_url

NOVA_FILTERS = (
    "ComputeFilter",
    "ComputeCapabilitiesFilter",
    "ImagePropertiesFilter",
    "ServerGroupAntiAffinityFilter",
    "ServerGroupAffinityFilter",
)
"""The default of ``enabled_filters`` in Nova 34.0."""

NOVA_MAX_RESULTS = 1000
"""The default of ``max_placement_results`` in Nova."""

NO_LIMIT_SECONDS = 10_000_000
"""Seconds of the calls in work at the end, where there is no limit: months."""


class NovaSchedulerOptions(SchedulingOptions, frozen=True, kw_only=True, group="nova_bridge"):
    """The configuration of the bridge to Nova, with the options of a scheduler service.

    ``api_database`` is the bridge's own database, which has the tables of an API database. ``nova_api`` and
    ``nova_main`` are the URLs of Nova's ``[api_database]`` and ``[database]``; None: Nova has no such option
    set. ``host``: the name of this scheduler in Nova.
    """

    bridge: BridgeOptions = BridgeOptions()
    nova: NovaOptions = NovaOptions()
    nova_api: DatabaseUrl
    nova_main: DatabaseUrl | None = None
    host: str

    @property
    def is_shadow(self) -> bool:
        """True if calls are compared and not answered."""
        return self.bridge.mode == "shadow"

    def drain_seconds(self, others: float) -> float:
        """Return the seconds that a worker has to end: for the calls in work, and then for all else.

        ``others``: seconds for all else.
        """
        if self.is_shadow:
            return others
        calls = self.nova.graceful_shutdown_timeout or NO_LIMIT_SECONDS
        return calls + max(others, CLOSE_SECONDS)

    @property
    def databases(self) -> dict[str, DatabaseUrl | str | None]:
        urls = super().databases
        urls["[nova_bridge] connection"] = urls.pop("[api_database] connection")
        return urls

    def shown(self) -> dict[str, object]:
        conf = self.source.open()
        groups = options_by_group(BridgeOptions)
        self.source.register(conf, groups)
        return {**super().shown(), **masked_options(conf, groups)}


def read_nova_options(source: Source, database: DatabaseUrl | str | None = None) -> NovaSchedulerOptions:
    """Read the options of the bridge from nova.conf and the files beside it.

    ``database``: the URL of the ledger on the command line. Options of Nova that Roost's scheduler has in
    another section, or with another default, count as Nova has them.

    Raises `OperatorError` for a file that cannot be read, a wrong value, or a database that is not named.
    """
    bridge, nova = source.read(BridgeOptions), source.read(NovaOptions)
    if bridge.connection is None:
        raise OperatorError(
            "no database for the bridge: set connection in [nova_bridge] to one of its own; those of Nova's "
            "[database] and [api_database] stay Nova's"
        )
    if nova.api_database is None:
        raise OperatorError("no API database of Nova: give its nova.conf by --config-file")
    ours = configured_url(bridge.connection, source, BridgeOptions.group)
    theirs = configured_url(usable_url(nova.api_database), source, "api_database")
    named = nova.main_database
    main = configured_url(named and usable_url(named), source, "database")
    assert ours is not None and theirs is not None
    if ours.parsed in (theirs.parsed, None if main is None else main.parsed):
        raise OperatorError(
            "[nova_bridge] connection: it is a database of Nova; give the bridge one of its own"
        )
    filters = ",".join(NOVA_FILTERS)
    defaults = (
        Setting("records", "connection", bridge.connection),
        Setting("filter_scheduler", "enabled_filters", filters),
        Setting("filter_scheduler", "service_down_time", str(nova.service_down_time)),
        Setting("filter_scheduler", "default_availability_zone", nova.default_availability_zone),
        Setting("scheduler", "max_placement_results", str(NOVA_MAX_RESULTS)),
    )
    source = structs.replace(source, defaults=(*source.defaults, *defaults))
    scheduling = read_scheduling_options(source, database, hosts_needed=False)
    given = {name: getattr(scheduling, name) for name in SchedulingOptions.__struct_fields__}
    return NovaSchedulerOptions(
        **{
            **given,
            "source": source,
            "api_database": ours,
            "bridge": bridge,
            "nova": nova,
            "nova_api": theirs,
            "nova_main": main,
            "host": nova.host or socket.gethostname(),
        }
    )
