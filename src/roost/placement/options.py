"""Configuration options under upstream's names. `roost.web.auth` reads the options for Keystone's tokens."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import msgspec
from oslo_config import cfg

from roost.ledger.retention import CommitRetention
from roost.placement.unsupported import describe_unsupported
from roost.process.logs import LogOptions
from roost.process.option_source import MAIN_DATABASE, Source, option_names, refused_value
from roost.process.options import OptionStruct, option, options_by_group
from roost.process.report import masked_options
from roost.process.tracing import TracingOptions
from roost.storage import ANSWER_SECONDS, DatabaseUrl, configured_url
from roost.web.cors import CorsOptions
from roost.web.forwarded import Proxies
from roost.web.health import HealthOptions
from roost.web.limits import Limits

_NOBODY = "00000000-0000-0000-0000-000000000000"


def _breadth_first(strategy: str) -> bool:
    return strategy == "breadth-first"


class PlacementOptions(OptionStruct, frozen=True):
    """The configuration of the Placement service.

    ``database``: a SQLAlchemy URL. ``answer_seconds``: seconds that the database has for each answer.
    ``source``: the source that the options were read from; None: no files, not even policy files.
    """

    logs: LogOptions = LogOptions()
    auth_strategy: Literal["keystone", "tokens", "noauth2"] = option(
        "keystone",
        group="api",
        deprecated_group="DEFAULT",
        help="Keystone checks the tokens of requests, or (tokens) they must be in tokens_file, or (noauth2, "
        "for development) every token is believed. OpenStack Placement does not have tokens.",
    )
    tokens_file: str | None = option(
        None,
        group="api",
        help="The file of service tokens, which 'roost token' writes, for auth_strategy = tokens. OpenStack "
        "Placement does not have this option.",
    )
    randomize_allocation_candidates: bool = option(
        False,
        group="placement",
        help="Allocation candidates are shuffled, and sampled where the request has a limit.",
    )
    max_allocation_candidates: int = option(
        -1,
        group="placement",
        help="At most this many candidates are generated for one request. -1 sets no maximum.",
    )
    breadth_first: bool = option(
        "depth-first",
        group="placement",
        name="allocation_candidates_generation_strategy",
        choices=("depth-first", "breadth-first"),
        parse=_breadth_first,
        help="Candidates come tree after tree (depth-first), or one from each tree in turn (breadth-first).",
    )
    incomplete_consumer_project_id: str = option(
        _NOBODY,
        group="placement",
        help="This project owns the consumers that are written before microversion 1.8, which names none.",
    )
    incomplete_consumer_user_id: str = option(
        _NOBODY,
        group="placement",
        help="This user owns the consumers that are written before microversion 1.8, which names none.",
    )
    database: DatabaseUrl | str | None = option(
        None,
        group="placement_database",
        name="connection",
        secret=True,
        help="This is the SQLAlchemy URL of the database. --database has precedence.",
    )
    connection_parameters: str = option(
        "", group="placement_database", secret=True, help="These are appended to the URL, as in a=1&b=2."
    )
    upgrade_database: bool = option(
        False,
        group="placement_database",
        name="sync_on_startup",
        help="The tables are upgraded at the start.",
    )
    answer_seconds: float = option(
        ANSWER_SECONDS,
        group="placement_database",
        name="answer_timeout",
        min=0.1,
        help="A request that a database server does not answer for this many seconds gets status 503.",
    )
    enforce_new_defaults: bool = option(
        True,
        group="oslo_policy",
        help="The role admin may do what the rules allow. If false, it may do everything.",
    )
    policy_file: str = option(
        "policy.yaml", group="oslo_policy", help="The rules in this file replace the defaults."
    )
    policy_dirs: tuple[str, ...] = option(
        ("policy.d",), group="oslo_policy", multi=True, help="These folders hold further files of rules."
    )
    policy_default_rule: str = option(
        "default", group="oslo_policy", help="This rule applies to operations without a rule."
    )
    enable_proxy_headers_parsing: bool = option(
        False,
        group="oslo_middleware",
        help="Forwarded and X-Forwarded-Proto, -Host, -For and -Prefix are believed, as from a proxy.",
    )
    trusted_proxies: tuple[str, ...] = option(
        (),
        group="oslo_middleware",
        help="Addresses and networks (CIDR) of the proxies that are believed. Without one every client is "
        "believed. OpenStack Placement does not have this option.",
    )
    cors: CorsOptions = CorsOptions()
    health: HealthOptions = HealthOptions()
    retention: CommitRetention = CommitRetention()
    limits: Limits = Limits()
    tracing: TracingOptions = TracingOptions()
    source: Source | None = None

    @property
    def databases(self) -> dict[str, DatabaseUrl | str | None]:
        """The URLs of databases, by the name of the option; they change only with a restart."""
        return {"[placement_database] connection": self.database}

    def shown(self) -> dict[str, object]:
        """Return all options with their values, secrets masked, for the report of a process."""
        source = self.source or Source()
        conf = source.open()
        groups: dict[str, Sequence[cfg.Opt]] = dict(GROUPS)
        if self.auth_strategy == "keystone":
            from roost.web.auth.token_check import known_options

            groups |= known_options(conf, source)
        source.register(conf, groups)
        return masked_options(conf, groups)

    @property
    def proxies(self) -> Proxies | None:
        """The proxies whose headers are believed; None ignores the headers.

        Raises:
            ValueError: one is no address or network.
        """
        return Proxies.parse(self.trusted_proxies) if self.enable_proxy_headers_parsing else None


GROUPS: Mapping[str, Sequence[cfg.Opt]] = options_by_group(PlacementOptions)
"""The options of the Placement service, by group."""


def read_options(source: Source | str | None = None) -> PlacementOptions:
    """Read the options. ``source``: a source, the path of a file, or None for the environment alone.

    Raises `OperatorError` for a file that cannot be read, and for a wrong value.
    """
    if not isinstance(source, Source):
        source = Source((source,) if source else ())
    options = source.read(PlacementOptions, source=source)
    try:
        _ = options.proxies  # refused here, and not at the first use
    except ValueError as error:
        raise refused_value(error) from error
    return msgspec.structs.replace(options, database=_database(options, source))


def unsupported_options(
    source: Source, auth_strategy: str | None, others: Mapping[str, Iterable[cfg.Opt]]
) -> list[str]:
    """Return a line for each option of a source that has no effect.

    Args:
        auth_strategy: How tokens are checked. None: the command checks none.
        others: The options of groups that only other services use.

    Raises:
        OperatorError: An option of the command line has no effect, or a file cannot be read.
    """
    supported: dict[str, set[str]] = {}
    for group, each in (*others.items(), *GROUPS.items()):
        _support(supported, group, each)
    if auth_strategy == "keystone":
        # Imported only here: its import takes as long as all others together.
        from roost.web.auth.token_check import known_options

        for group, of_keystone in known_options(source.open(), source).items():
            _support(supported, group, of_keystone)
        return describe_unsupported(source, supported, {})
    reason = None if auth_strategy is None else "auth_strategy is not keystone"
    return describe_unsupported(source, supported, {"keystone_authtoken": reason})


def proxy_warnings(options: PlacementOptions) -> list[str]:
    """Return a warning if the headers of proxies are believed from every client."""
    if options.proxies is None or options.proxies.trusted:
        return []
    return [
        "warning: Forwarded and X-Forwarded headers of every client are believed; list the proxies in "
        "[oslo_middleware] trusted_proxies"
    ]


def _support(supported: dict[str, set[str]], group: str, options: Iterable[cfg.Opt]) -> None:
    """Add all names of a group's options, also those in other groups, to the names by group."""
    supported.setdefault(group, set())
    for each in options:
        for place, name in option_names(group, each):
            supported.setdefault(place, set()).add(name)


def _database(options: PlacementOptions, source: Source) -> DatabaseUrl | str | None:
    url = options.database
    if isinstance(url, str) and options.connection_parameters:
        url = f"{url}{'&' if '?' in url else '?'}{options.connection_parameters}"
    return configured_url(url, source, MAIN_DATABASE)
