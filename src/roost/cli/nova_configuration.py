"""The options of nova.conf: those that `roost nova-scheduler` takes, and those that have no effect.

One nova.conf serves all of Nova's services. Options that only other services read are counted and not
reported. An option that nova-scheduler reads and Roost does not is reported, with the reason.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Set
from typing import Final, NamedTuple

from oslo_config import cfg

from roost.cli.configuration import READ_GROUPS, print_warnings, system_options
from roost.nova.options import BridgeOptions, NovaOptions
from roost.placement.options import GROUPS
from roost.placement.unsupported import (
    NO_EFFECT,
    describe_unsupported,
    options_in_files,
    why_without_effect,
)
from roost.process.option_source import Source, option_names
from roost.process.options import options_by_group

_POOL = "connections are few and look after themselves"
_POOLS = dict.fromkeys(("max_pool_size", "max_overflow", "pool_timeout", "connection_recycle_time"), _POOL)
_ONE_PROCESS = "one process with one event loop decides all calls"
_PERIODIC = "no task of the bridge is periodic by these options"

NOT_TAKEN: Final[Mapping[str, Mapping[str, str]]] = {
    "DEFAULT": {
        "servicegroup_driver": "signs of life are read from the table of services",
        "cell_worker_thread_pool_size": "all cells are read at once",
        "default_green_pool_size": _ONE_PROCESS,
        "default_thread_pool_size": _ONE_PROCESS,
        "concurrency_backend": _ONE_PROCESS,
        "periodic_enable": _PERIODIC,
        "periodic_fuzzy_delay": _PERIODIC,
        "enable_new_services": "the bridge's row in the table of services is enabled",
    },
    "filter_scheduler": {
        "track_instance_changes": "instances are read from the cells' databases, and casts are hints to read",
    },
    "scheduler": {
        "workers": _ONE_PROCESS,
        "discover_hosts_in_cells_interval": "the bridge maps no hosts: run 'nova-manage cell_v2 "
        "discover_hosts' by cron",
    },
    "upgrade_levels": {
        "scheduler": "it limits what Nova's API and conductors send, and not what a scheduler takes",
    },
    "workarounds": {
        "disable_compute_service_check_for_ffu": "computes of an old version are warned about, not refused",
    },
    "database": _POOLS,
    "api_database": _POOLS,
}
"""Options of nova-scheduler that the bridge does not take: by group, each with the reason."""

_OWN: Final[Set[str]] = READ_GROUPS["nova-scheduler"] - {
    "DEFAULT", "api", "api_database", "compute", "cors", "database", "healthcheck", "keystone_authtoken",
    "neutron", "oslo_middleware", "oslo_policy", "pci", "placement", "profiler", "workarounds",
}  # fmt: skip
"""Groups of which no other service of Nova reads an option: an unknown one can only be a mistake."""

_MESSAGING: Final = frozenset({"control_exchange", "rpc_ping_enabled", "executor_thread_pool_size"})
"""Options of oslo.messaging in [DEFAULT], beside those of `NovaOptions`."""

OF_MESSAGING: Final = "oslo_messaging_"
"""The groups of oslo.messaging begin so."""


class NovaConf(NamedTuple):
    """The options of the files of a bridge.

    ``taken``: by group. ``ignored``: a line for each option without effect that nova-scheduler reads.
    ``unknown``: a line for each option that nobody reads. ``others``: the number of options that only other
    services of Nova read, by group.
    """

    taken: Mapping[str, tuple[str, ...]]
    ignored: tuple[str, ...]
    unknown: tuple[str, ...]
    others: Mapping[str, int]


def is_nova_conf(source: Source) -> bool:
    """Return whether the options are those of a Nova cloud: a message broker and [api_database] connection.

    Raises `OperatorError` for a file that cannot be read.
    """
    nova = source.read(NovaOptions)
    return nova.transport_url is not None and nova.api_database is not None


def nova_conf(source: Source) -> NovaConf:
    """Sort the options of files by who reads them. Raises `OperatorError` for a file that cannot be read."""
    known = _known(source)
    taken: dict[str, dict[str, None]] = {}
    ignored: list[str] = []
    unknown: list[str] = []
    others: Counter[str] = Counter()
    for file, group, option in options_in_files(source):
        reason = NOT_TAKEN.get(group, {}).get(option) or NO_EFFECT.get(group, {}).get(option)
        where = f"{file}: [{group}] {option} is ignored"
        if option in known.get(group, ()) or group.startswith(OF_MESSAGING):
            taken.setdefault(group, {})[option] = None
        elif reason is not None:
            ignored.append(f"{where}: {reason}")
        elif group in _OWN:
            unknown.append(f"{where}: {why_without_effect(group, option, known)}")
        else:
            others[group] += 1
    names = {group: tuple(each) for group, each in taken.items()}
    return NovaConf(names, tuple(dict.fromkeys(ignored)), tuple(dict.fromkeys(unknown)), others)


def tell_nova_options(source: Source) -> None:
    """Print a line for each option that has no effect, without those of Nova's other services.

    Raises `OperatorError` for a file that cannot be read, and an option of the command line that is unknown.
    """
    beside = describe_unsupported(Source(settings=source.settings), _known(source), {})
    found = nova_conf(source)
    print_warnings([*found.ignored, *found.unknown, *beside])


def _known(source: Source) -> dict[str, set[str]]:
    """Return the names of the options that the bridge has, by group. Raises `OperatorError`."""
    # Imported only here: these imports take as long as all others together.
    from roost.web.auth.keystone_credentials import client_options
    from roost.web.auth.token_check import known_options

    notified = {"notification_format", "versioned_notifications_topics"}
    known: dict[str, set[str]] = {"DEFAULT": set(_MESSAGING), "notifications": notified}
    read = READ_GROUPS["nova-scheduler"]
    for options in (system_options(), GROUPS, options_by_group(NovaOptions), options_by_group(BridgeOptions)):
        for group, each in options.items():
            if group in read:
                _add(known, group, each)
    for group in ("placement", "neutron"):
        _add(known, group, client_options(source, group))
    for group, each in known_options(source.open(), source).items():
        _add(known, group, each)
    return known


def _add(known: dict[str, set[str]], group: str, options: Iterable[cfg.Opt]) -> None:
    for option in options:
        for place, name in option_names(group, option):
            known.setdefault(place, set()).add(name)
