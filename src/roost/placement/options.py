"""Configuration, by upstream's names. The options of Keystone's tokens are read in the room ``auth``."""

from collections.abc import Iterable, Sequence

import msgspec
from oslo_config import cfg

from roost.auth import Source
from roost.ledger.retention import GROUP as LEDGER
from roost.ledger.retention import OPTIONS as LEDGER_OPTIONS
from roost.ledger.retention import Retention, retention_from
from roost.model.errors import OperatorError
from roost.placement.ignored import describe_ignored
from roost.storage import ANSWER_SECONDS

_NOBODY = "00000000-0000-0000-0000-000000000000"

_DEFAULT = [
    cfg.BoolOpt("debug", default=False, help="Log everything, not only warnings and errors."),
]
_API = [
    cfg.StrOpt(
        "auth_strategy",
        default="keystone",
        choices=("keystone", "noauth2"),
        deprecated_group="DEFAULT",
        help="How tokens are checked: by Keystone, or believed (for development).",
    )
]
_PLACEMENT = [
    cfg.BoolOpt(
        "randomize_allocation_candidates",
        default=False,
        help="Shuffle allocation candidates; under a limit, sample them.",
    ),
    cfg.IntOpt(
        "max_allocation_candidates",
        default=-1,
        help="At most this many candidates are generated for one request; -1: no maximum.",
    ),
    cfg.StrOpt(
        "allocation_candidates_generation_strategy",
        default="depth-first",
        choices=("depth-first", "breadth-first"),
        help="All candidates of a tree before the next tree's, or one of each tree in turn.",
    ),
    cfg.StrOpt(
        "incomplete_consumer_project_id",
        default=_NOBODY,
        help="The project of consumers that are written before microversion 1.8, which names none.",
    ),
    cfg.StrOpt(
        "incomplete_consumer_user_id",
        default=_NOBODY,
        help="The user of consumers that are written before microversion 1.8, which names none.",
    ),
]
_DATABASE = [
    cfg.StrOpt("connection", secret=True, help="SQLAlchemy URL of the database."),
    cfg.StrOpt("connection_parameters", default="", help="Parameters to append to it: a=1&b=2."),
    cfg.BoolOpt("sync_on_startup", default=False, help="Upgrade the tables at start-up."),
    cfg.FloatOpt(
        "answer_timeout",
        default=ANSWER_SECONDS,
        min=0.1,
        help="Seconds that a request waits for a database server that does not answer, until status 503.",
    ),
]
_POLICY = [
    cfg.BoolOpt(
        "enforce_new_defaults",
        default=True,
        help="Whether the role admin needs what the rules say; else it may do everything.",
    ),
    cfg.StrOpt("policy_file", default="policy.yaml", help="Rules that replace the defaults."),
    cfg.MultiStrOpt("policy_dirs", default=["policy.d"], help="Folders with more of them."),
    cfg.StrOpt("policy_default_rule", default="default", help="What holds for a rule that is nowhere."),
]
_MIDDLEWARE = [
    cfg.BoolOpt(
        "enable_proxy_headers_parsing",
        default=False,
        help="Whether a proxy is before the service, whose Forwarded or X-Forwarded-... is to be believed.",
    )
]
_CORS = [
    cfg.ListOpt("allowed_origin", default=[], help="Origins whose pages may call the API; none: no CORS."),
    cfg.BoolOpt("allow_credentials", default=True, help="Whether they may send credentials."),
    cfg.ListOpt(
        "expose_headers",
        default=[
            "X-Auth-Token",
            "X-Openstack-Request-Id",
            "X-Subject-Token",
            "X-Service-Token",
            "OpenStack-API-Version",
        ],
        help="Headers of answers that they may read.",
    ),
    cfg.ListOpt(
        "allow_methods", default=["GET", "PUT", "POST", "DELETE", "PATCH"], help="Methods that they may use."
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
        ],
        help="Headers that they may send.",
    ),
    cfg.IntOpt("max_age", default=3600, help="Seconds that a browser may remember what is allowed."),
]
_GROUPS: dict[str, Sequence[cfg.Opt]] = {
    "DEFAULT": _DEFAULT,
    "api": _API,
    "placement": _PLACEMENT,
    "placement_database": _DATABASE,
    "oslo_policy": _POLICY,
    "oslo_middleware": _MIDDLEWARE,
    "cors": _CORS,
    LEDGER: LEDGER_OPTIONS,
}


class CorsOptions(msgspec.Struct, frozen=True):
    """Which origins may ask for what. ``max_age``: seconds that a browser may remember it."""

    allowed_origin: tuple[str, ...] = ()
    allow_credentials: bool = True
    expose_headers: tuple[str, ...] = ()
    allow_methods: tuple[str, ...] = ()
    allow_headers: tuple[str, ...] = ()
    max_age: int = 3600


class PlacementOptions(msgspec.Struct, frozen=True):
    """What is configured. ``source`` is where it was read; None: nowhere, and there are no policy files."""

    auth_strategy: str = "keystone"
    randomize_allocation_candidates: bool = False
    max_allocation_candidates: int = -1
    breadth_first: bool = False
    incomplete_consumer_project_id: str = _NOBODY
    incomplete_consumer_user_id: str = _NOBODY
    enforce_new_defaults: bool = True
    behind_proxy: bool = False
    database: str | None = None
    upgrade_database: bool = False
    answer_seconds: float = ANSWER_SECONDS
    retention: Retention = Retention()
    debug: bool = False
    cors: CorsOptions = CorsOptions()
    source: Source | None = None


def read_options(source: Source | str | None = None) -> PlacementOptions:
    """The options of a source, or of a file and the environment, or of the environment.

    Raises `OperatorError` for a file or value that is wrong.
    """
    if not isinstance(source, Source):
        source = Source((source,) if source else ())
    conf = source.open()
    for group, options in _GROUPS.items():
        source.register(conf, group, options)
    try:
        placement = conf.placement
        return PlacementOptions(
            auth_strategy=conf.api.auth_strategy,
            randomize_allocation_candidates=placement.randomize_allocation_candidates,
            max_allocation_candidates=placement.max_allocation_candidates,
            breadth_first=placement.allocation_candidates_generation_strategy == "breadth-first",
            incomplete_consumer_project_id=placement.incomplete_consumer_project_id,
            incomplete_consumer_user_id=placement.incomplete_consumer_user_id,
            enforce_new_defaults=conf.oslo_policy.enforce_new_defaults,
            behind_proxy=conf.oslo_middleware.enable_proxy_headers_parsing,
            database=_database(conf.placement_database),
            upgrade_database=conf.placement_database.sync_on_startup,
            answer_seconds=conf.placement_database.answer_timeout,
            retention=retention_from(conf),
            debug=conf.debug,
            cors=_cors(conf.cors),
            source=source,
        )
    except (cfg.Error, ValueError) as error:
        raise OperatorError(f"configuration: {error}") from error


def ignored_options(options: PlacementOptions) -> list[str]:
    """A line for each option of the source that does nothing. Raises `OperatorError`."""
    source = options.source or Source()
    honoured = {group: set(_names(each)) for group, each in _GROUPS.items()}
    honoured["DEFAULT"].add("auth_strategy")
    if options.auth_strategy != "keystone":
        return describe_ignored(source, honoured, {"keystone_authtoken": "auth_strategy is not keystone"})
    # Imported only here: it takes as long as all the rest.
    from roost.auth.token_check import known_options

    for group, of_keystone in known_options(source.open(), source).items():
        honoured.setdefault(group, set()).update(_names(of_keystone))
    return describe_ignored(source, honoured, {})


def _names(options: Iterable[cfg.Opt]) -> Iterable[str]:
    """All names of options, older ones included."""
    for option in options:
        yield option.dest
        for older in option.deprecated_opts:
            if older.name:
                yield older.name.replace("-", "_")


def _database(group: cfg.ConfigOpts.GroupAttr) -> str | None:
    url: str | None = group.connection
    if url is None or not group.connection_parameters:
        return url
    return f"{url}{'&' if '?' in url else '?'}{group.connection_parameters}"


def _cors(group: cfg.ConfigOpts.GroupAttr) -> CorsOptions:
    return CorsOptions(
        allowed_origin=tuple(group.allowed_origin),
        allow_credentials=group.allow_credentials,
        expose_headers=tuple(group.expose_headers),
        allow_methods=tuple(group.allow_methods),
        allow_headers=tuple(group.allow_headers),
        max_age=group.max_age,
    )
