"""Configuration options under upstream's names. `roost.web.auth` reads the options for Keystone's tokens."""

from collections.abc import Iterable, Mapping, Sequence

import msgspec
from oslo_config import cfg

from roost.ledger.retention import GROUP as LEDGER
from roost.ledger.retention import OPTIONS as LEDGER_OPTIONS
from roost.ledger.retention import CommitRetention, retention_from
from roost.placement.unsupported import describe_unsupported
from roost.process.logs import LogOptions
from roost.process.logs.options import OPTIONS as LOG_OPTIONS
from roost.process.logs.options import log_options_from
from roost.process.option_source import MAIN_DATABASE, Source, option_names, refused_value
from roost.process.report import masked_options
from roost.process.tracing import TracingOptions
from roost.process.tracing.options import GROUP as TRACING
from roost.process.tracing.options import OPTIONS as TRACING_OPTIONS
from roost.process.tracing.options import tracing_options_from
from roost.storage import ANSWER_SECONDS, DatabaseUrl, configured_url
from roost.web.cors import CorsOptions
from roost.web.forwarded import Proxies
from roost.web.health import GROUP as HEALTHCHECK
from roost.web.health import OPTIONS as HEALTH_OPTIONS
from roost.web.health import HealthOptions, health_options
from roost.web.limits import GROUP as OVERLOAD
from roost.web.limits import OPTIONS as OVERLOAD_OPTIONS
from roost.web.limits import Limits, limits_from

_NOBODY = "00000000-0000-0000-0000-000000000000"

_API = [
    cfg.StrOpt(
        "auth_strategy",
        default="keystone",
        choices=("keystone", "tokens", "noauth2"),
        deprecated_group="DEFAULT",
        help="Keystone checks the tokens of requests, or (tokens) they must be in tokens_file, or (noauth2, "
        "for development) every token is believed. OpenStack Placement does not have tokens.",
    ),
    cfg.StrOpt(
        "tokens_file",
        help="The file of service tokens, which 'roost token' writes, for auth_strategy = tokens. OpenStack "
        "Placement does not have this option.",
    ),
]
_PLACEMENT = [
    cfg.BoolOpt(
        "randomize_allocation_candidates",
        default=False,
        help="Allocation candidates are shuffled, and sampled where the request has a limit.",
    ),
    cfg.IntOpt(
        "max_allocation_candidates",
        default=-1,
        help="At most this many candidates are generated for one request. -1 sets no maximum.",
    ),
    cfg.StrOpt(
        "allocation_candidates_generation_strategy",
        default="depth-first",
        choices=("depth-first", "breadth-first"),
        help="Candidates come tree after tree (depth-first), or one from each tree in turn (breadth-first).",
    ),
    cfg.StrOpt(
        "incomplete_consumer_project_id",
        default=_NOBODY,
        help="This project owns the consumers that are written before microversion 1.8, which names none.",
    ),
    cfg.StrOpt(
        "incomplete_consumer_user_id",
        default=_NOBODY,
        help="This user owns the consumers that are written before microversion 1.8, which names none.",
    ),
]
_DATABASE = [
    cfg.StrOpt(
        "connection",
        secret=True,
        help="This is the SQLAlchemy URL of the database. --database has precedence.",
    ),
    cfg.StrOpt(
        "connection_parameters",
        default="",
        secret=True,
        help="These are appended to the URL, as in a=1&b=2.",
    ),
    cfg.BoolOpt(
        "sync_on_startup",
        default=False,
        help="The tables are upgraded at the start.",
    ),
    cfg.FloatOpt(
        "answer_timeout",
        default=ANSWER_SECONDS,
        min=0.1,
        help="A request that a database server does not answer for this many seconds gets status 503.",
    ),
]
_POLICY = [
    cfg.BoolOpt(
        "enforce_new_defaults",
        default=True,
        help="The role admin may do what the rules allow. If false, it may do everything.",
    ),
    cfg.StrOpt("policy_file", default="policy.yaml", help="The rules in this file replace the defaults."),
    cfg.MultiStrOpt("policy_dirs", default=["policy.d"], help="These folders hold further files of rules."),
    cfg.StrOpt(
        "policy_default_rule", default="default", help="This rule applies to operations without a rule."
    ),
]
_MIDDLEWARE = [
    cfg.BoolOpt(
        "enable_proxy_headers_parsing",
        default=False,
        help="Forwarded and X-Forwarded-Proto, -Host, -For and -Prefix are believed, as from a proxy.",
    ),
    cfg.ListOpt(
        "trusted_proxies",
        default=[],
        help="Addresses and networks (CIDR) of the proxies that are believed. Without one every client is "
        "believed. OpenStack Placement does not have this option.",
    ),
]
_CORS = [
    cfg.ListOpt(
        "allowed_origin",
        default=[],
        help="Pages of these origins may call the API. Without one there is no CORS. With * browsers "
        "may not send credentials.",
    ),
    cfg.BoolOpt("allow_credentials", default=True, help="These pages may send credentials."),
    cfg.ListOpt(
        "expose_headers",
        default=[
            "X-Auth-Token",
            "X-Openstack-Request-Id",
            "X-Subject-Token",
            "X-Service-Token",
            "OpenStack-API-Version",
            "Idempotent-Replayed",
        ],
        help="These pages may read these headers of responses.",
    ),
    cfg.ListOpt(
        "allow_methods",
        default=["GET", "PUT", "POST", "DELETE", "PATCH"],
        help="They may use these methods.",
    ),
    cfg.ListOpt(
        "allow_headers",
        default=[
            "X-Auth-Token",
            "X-Openstack-Request-Id",
            "X-Identity-Status",
            "X-Roles",
            "X-Service-Catalog",
            "X-User-Id",
            "X-Tenant-Id",
            "OpenStack-API-Version",
            "Idempotency-Key",
        ],
        help="These pages may send these headers.",
    ),
    cfg.IntOpt("max_age", default=3600, help="A browser may remember for this many seconds what is allowed."),
]
GROUPS: dict[str, Sequence[cfg.Opt]] = {
    "DEFAULT": LOG_OPTIONS,
    "api": _API,
    "placement": _PLACEMENT,
    "placement_database": _DATABASE,
    "oslo_policy": _POLICY,
    "oslo_middleware": _MIDDLEWARE,
    "cors": _CORS,
    HEALTHCHECK: HEALTH_OPTIONS,
    LEDGER: LEDGER_OPTIONS,
    OVERLOAD: OVERLOAD_OPTIONS,
    TRACING: TRACING_OPTIONS,
}


class PlacementOptions(msgspec.Struct, frozen=True):
    """The configuration of the Placement service.

    - ``max_allocation_candidates``: -1 sets no maximum.
    - ``proxies``: None ignores the headers of proxies.
    - ``database``: a SQLAlchemy URL.
    - ``answer_seconds``: seconds that the database has for each answer.
    - ``source``: the source that the options were read from; None: no files, not even policy files.
    - ``tokens_file``: the file of service tokens, for the auth_strategy ``tokens``.
    """

    auth_strategy: str = "keystone"
    tokens_file: str | None = None
    randomize_allocation_candidates: bool = False
    max_allocation_candidates: int = -1
    breadth_first: bool = False
    incomplete_consumer_project_id: str = _NOBODY
    incomplete_consumer_user_id: str = _NOBODY
    enforce_new_defaults: bool = True
    proxies: Proxies | None = None
    database: DatabaseUrl | str | None = None
    upgrade_database: bool = False
    answer_seconds: float = ANSWER_SECONDS
    retention: CommitRetention = CommitRetention()
    logs: LogOptions = LogOptions()
    limits: Limits = Limits()
    tracing: TracingOptions = TracingOptions()
    cors: CorsOptions = CorsOptions()
    health: HealthOptions = HealthOptions()
    source: Source | None = None

    @property
    def databases(self) -> dict[str, DatabaseUrl | str | None]:
        """The URLs of databases, by the name of the option; they change only with a restart."""
        return {"[placement_database] connection": self.database}


def read_options(source: Source | str | None = None) -> PlacementOptions:
    """Read the options. ``source``: a source, the path of a file, or None for the environment alone.

    Raises `OperatorError` for a file that cannot be read, and for a wrong value.
    """
    if not isinstance(source, Source):
        source = Source((source,) if source else ())
    conf = source.open()
    for group, options in GROUPS.items():
        source.register(conf, group, options)
    try:
        placement = conf.placement
        return PlacementOptions(
            auth_strategy=conf.api.auth_strategy,
            tokens_file=conf.api.tokens_file,
            randomize_allocation_candidates=placement.randomize_allocation_candidates,
            max_allocation_candidates=placement.max_allocation_candidates,
            breadth_first=placement.allocation_candidates_generation_strategy == "breadth-first",
            incomplete_consumer_project_id=placement.incomplete_consumer_project_id,
            incomplete_consumer_user_id=placement.incomplete_consumer_user_id,
            enforce_new_defaults=conf.oslo_policy.enforce_new_defaults,
            proxies=_proxies(conf.oslo_middleware),
            database=_database(conf.placement_database, source),
            upgrade_database=conf.placement_database.sync_on_startup,
            answer_seconds=conf.placement_database.answer_timeout,
            retention=retention_from(conf),
            logs=log_options_from(conf),
            limits=limits_from(conf),
            tracing=tracing_options_from(conf),
            cors=_cors(conf.cors),
            health=health_options(conf),
            source=source,
        )
    except (cfg.Error, ValueError) as error:
        raise refused_value(error) from error


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


def shown_options(options: PlacementOptions) -> dict[str, object]:
    """Return all options with their values, secrets masked, for a report of a process."""
    source = options.source or Source()
    conf = source.open()
    groups: dict[str, Sequence[cfg.Opt]] = dict(GROUPS)
    if options.auth_strategy == "keystone":
        from roost.web.auth.token_check import known_options

        groups |= known_options(conf, source)
    for group, of_group in groups.items():
        source.register(conf, group, of_group)
    return masked_options(conf, groups)


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
    for option in options:
        for place, name in option_names(group, option):
            supported.setdefault(place, set()).add(name)


def _database(group: cfg.ConfigOpts.GroupAttr, source: Source) -> DatabaseUrl | None:
    text: str | None = group.connection
    if text is not None and group.connection_parameters:
        text = f"{text}{'&' if '?' in text else '?'}{group.connection_parameters}"
    return configured_url(text, source, MAIN_DATABASE)


def _proxies(group: cfg.ConfigOpts.GroupAttr) -> Proxies | None:
    if not group.enable_proxy_headers_parsing:
        return None
    return Proxies.parse(group.trusted_proxies)


def _cors(group: cfg.ConfigOpts.GroupAttr) -> CorsOptions:
    return CorsOptions(
        allowed_origin=tuple(group.allowed_origin),
        allow_credentials=group.allow_credentials,
        expose_headers=tuple(group.expose_headers),
        allow_methods=tuple(group.allow_methods),
        allow_headers=tuple(group.allow_headers),
        max_age=group.max_age,
    )
