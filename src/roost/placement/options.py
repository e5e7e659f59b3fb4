"""Configuration, by upstream's names: a file, and over it the environment, read by oslo.config.

The environment names an option as ``OS_<GROUP>__<OPTION>``, such as ``OS_API__AUTH_STRATEGY``.
"""

import msgspec
from oslo_config import cfg

from roost.model.errors import OperatorError

_NOBODY = "00000000-0000-0000-0000-000000000000"

_API = [
    cfg.StrOpt(
        "auth_strategy",
        default="keystone",
        choices=("keystone", "noauth2"),
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
]
_POLICY = [
    cfg.BoolOpt(
        "enforce_new_defaults",
        default=True,
        help="Whether a reshape needs the role service; else the role admin does as well.",
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


class CorsOptions(msgspec.Struct, frozen=True):
    """Which origins may ask for what. ``max_age``: seconds that a browser may remember it."""

    allowed_origin: tuple[str, ...] = ()
    allow_credentials: bool = True
    expose_headers: tuple[str, ...] = ()
    allow_methods: tuple[str, ...] = ()
    allow_headers: tuple[str, ...] = ()
    max_age: int = 3600


class PlacementOptions(msgspec.Struct, frozen=True):
    """What is configured."""

    auth_strategy: str = "keystone"
    randomize_allocation_candidates: bool = False
    max_allocation_candidates: int = -1
    breadth_first: bool = False
    incomplete_consumer_project_id: str = _NOBODY
    incomplete_consumer_user_id: str = _NOBODY
    enforce_new_defaults: bool = True
    database: str | None = None
    cors: CorsOptions = CorsOptions()


def read_options(config_file: str | None = None) -> PlacementOptions:
    """The options in a file and the environment. Raises `OperatorError` for a file or value that is wrong."""
    conf = cfg.ConfigOpts()
    conf.register_opts(_API, group="api")
    conf.register_opts(_PLACEMENT, group="placement")
    conf.register_opts(_DATABASE, group="placement_database")
    conf.register_opts(_POLICY, group="oslo_policy")
    conf.register_opts(_CORS, group="cors")
    try:
        conf(args=[], project="placement", default_config_files=[config_file] if config_file else [])
        placement = conf.placement
        return PlacementOptions(
            auth_strategy=conf.api.auth_strategy,
            randomize_allocation_candidates=placement.randomize_allocation_candidates,
            max_allocation_candidates=placement.max_allocation_candidates,
            breadth_first=placement.allocation_candidates_generation_strategy == "breadth-first",
            incomplete_consumer_project_id=placement.incomplete_consumer_project_id,
            incomplete_consumer_user_id=placement.incomplete_consumer_user_id,
            enforce_new_defaults=conf.oslo_policy.enforce_new_defaults,
            database=conf.placement_database.connection,
            cors=_cors(conf),
        )
    except (cfg.Error, ValueError) as error:
        raise OperatorError(f"configuration: {error}") from error


def _cors(conf: cfg.ConfigOpts) -> CorsOptions:
    group = conf.cors
    return CorsOptions(
        allowed_origin=tuple(group.allowed_origin),
        allow_credentials=group.allow_credentials,
        expose_headers=tuple(group.expose_headers),
        allow_methods=tuple(group.allow_methods),
        allow_headers=tuple(group.allow_headers),
        max_age=group.max_age,
    )
