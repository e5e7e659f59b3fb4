"""Validation of tokens with keystonemiddleware, which blocks.

keystonemiddleware is WSGI middleware. Operators know its options, its cache (in memory or memcached), its
service tokens and its access rules, so it is used as a whole: it gets the WSGI environment of a request with
nothing but the tokens, and wraps an application that accepts every identity.
"""

import importlib.util
import io
import time
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from keystoneauth1 import exceptions, loading
from keystonemiddleware import auth_token
from oslo_config import cfg

from roost.model.errors import OperatorError
from roost.process.option_source import Source
from roost.web.auth.identity import Identity, IdentityUnavailable, read_identity

GROUP = "keystone_authtoken"
TOKEN_HEADERS = ("x-auth-token", "x-storage-token", "x-service-token")

_CREDENTIALS = (
    ("password", ("username", "user_id")),
    ("password", ("password",)),
    ("token", ("token",)),
)
"""Pairs of a plugin's option and of options. If the plugin has the former, one of the latter must be set."""

_TOKENLESS = ("none", "http_basic")
"""Plugins of keystoneauth1 that send no token. Keystone refuses to validate the tokens of others for them."""

_ANSWER_SECONDS = 30
"""Seconds to wait for Keystone's answer, if http_connect_timeout is not set."""

Environment = dict[str, Any]


class TokenRequest(NamedTuple):
    """A request with tokens. ``path`` is the whole path, ``headers`` have lower-case names."""

    method: str
    path: str
    headers: Mapping[str, str]


class ValidatedToken(NamedTuple):
    """The identity that a token proves.

    - ``for_any_request``: whether the token is valid for every method and path, and not only for those of the
      request that it was validated for.
    - ``expires``: seconds since the epoch.
    """

    identity: Identity
    for_any_request: bool
    expires: float


class TokenCheck:
    """Validates the tokens of requests. A call may take seconds; several threads may call at once."""

    def __init__(self, source: Source) -> None:
        """Read the options. Raises `OperatorError` if no token can be validated with them."""
        conf = source.open()
        source.register(conf, known_options(conf, source))
        conf.set_default("http_connect_timeout", _ANSWER_SECONDS, GROUP)
        section = conf[GROUP]
        if not (section.auth_type or section.auth_section):
            raise OperatorError(
                f"[{GROUP}] has no auth_type: set auth_type, auth_url, username, password, project_name, "
                "user_domain_name and project_domain_name there; or, for development, believe every token "
                "with auth_strategy = noauth2 in [api] or OS_API__AUTH_STRATEGY=noauth2"
            )
        _check_cache(section)
        self.cache_seconds: int = section.token_cache_time
        try:
            self._middleware = auth_token.AuthProtocol(_accept, {"oslo_config_config": conf})
        except (exceptions.ClientException, auth_token.ConfigurationError, cfg.Error, ValueError) as error:
            raise OperatorError(f"[{GROUP}]: {error}") from error
        _check_credentials(conf)

    @property
    def challenge(self) -> str:
        """The value of the header WWW-Authenticate in a 401. It does not block after the first refusal."""
        return f'Keystone uri="{self._middleware.www_authenticate_uri}"'

    def __call__(self, request: TokenRequest) -> ValidatedToken | None:
        """Validate the tokens of a request. Returns None if they prove no identity.

        Raises:
            IdentityUnavailable: Keystone does not answer, or refuses the credentials of this service.
        """
        environment = _environment(request)
        status = ""

        def start_response(answered: str, *_: object) -> None:
            nonlocal status
            status = answered

        try:
            for _ in self._middleware(environment, start_response):
                pass
        except Exception as error:
            raise IdentityUnavailable(f"tokens cannot be validated: {error!r}") from error
        if status.startswith("401"):
            return None
        identity = _identity(environment)
        if identity is None or not status.startswith("204"):
            raise IdentityUnavailable(f"tokens cannot be validated: {status}")
        return _validated(identity, environment)


def known_options(conf: cfg.ConfigOpts, source: Source) -> dict[str, list[cfg.Opt]]:
    """Return the options that keystonemiddleware reads, by group: its own and those of the plugin."""
    found = {group: list(options) for group, options in auth_token.list_opts()}
    for option in found[GROUP]:
        if option.dest in ("auth_type", "auth_section"):
            source.register(conf, {GROUP: [option]})
    section = conf[GROUP].auth_section or GROUP
    if section != GROUP:
        source.register(conf, {section: [each for each in found[GROUP] if each.dest == "auth_type"]})
    if kind := conf[section].auth_type:
        try:
            of_kind = loading.get_auth_plugin_conf_options(loading.get_plugin_loader(kind))
        except exceptions.NoMatchingPlugin as error:
            raise OperatorError(f"[{section}] auth_type: {error}") from error
        found[section] = [*found.get(section, []), *of_kind]
    return found


def _check_credentials(conf: cfg.ConfigOpts) -> None:
    """Raise `OperatorError` if the plugin has options for credentials that are not set.

    keystoneauth1 only asks for the URL: without credentials, no token could ever be validated.
    """
    section = conf[GROUP].auth_section or GROUP
    kind = conf[section].auth_type
    if kind in _TOKENLESS:
        raise OperatorError(
            f"[{section}] has auth_type = {kind}, which gives this service no token, so that Keystone would "
            "validate none of others: set auth_type = password and its credentials"
        )
    options = {
        option.dest for option in loading.get_auth_plugin_conf_options(loading.get_plugin_loader(kind))
    }
    for marker, choices in _CREDENTIALS:
        if marker in options and not any(conf[section][each] for each in choices if each in options):
            raise OperatorError(f"[{section}] has auth_type = {kind}, but no {' or '.join(choices)}")


def _check_cache(section: Any) -> None:
    """Raise `OperatorError` if the cache needs a package that is not installed."""
    needed = section.memcached_servers and (section.memcache_sasl_enabled or section.memcache_tls_enabled)
    if needed and importlib.util.find_spec("bmemcached") is None:
        raise OperatorError(
            f"[{GROUP}] memcached with TLS or SASL: install python-binary-memcached beside Roost"
        )


def _accept(environment: Environment, start_response: Any) -> Iterable[bytes]:
    """The WSGI application behind the middleware: it answers 204 if the middleware found an identity."""
    start_response("401 Unauthorized" if _identity(environment) is None else "204 No Content", [])
    return []


def _environment(request: TokenRequest) -> Environment:
    """Make the WSGI environment of a request, without headers that could pass for the middleware's."""
    environment: Environment = {
        "REQUEST_METHOD": request.method,
        "SCRIPT_NAME": "",
        "PATH_INFO": request.path,
        "SERVER_NAME": "placement",
        "SERVER_PORT": "80",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "HTTP_ACCEPT": "application/json",
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": "http",
        "wsgi.input": io.BytesIO(),
        "wsgi.errors": io.StringIO(),
        "wsgi.multithread": True,
        "wsgi.multiprocess": True,
        "wsgi.run_once": False,
    }
    for name in TOKEN_HEADERS:
        if name in request.headers:
            environment[_variable(name)] = request.headers[name]
    return environment


def _variable(header: str) -> str:
    return "HTTP_" + header.upper().replace("-", "_")


def _identity(environment: Environment) -> Identity | None:
    """Return the identity that the middleware found, None if it found none."""
    if environment.get(_variable("x-identity-status")) != "Confirmed":
        return None
    return read_identity(
        {
            name.removeprefix("HTTP_").lower().replace("_", "-"): value
            for name, value in environment.items()
            if name.startswith("HTTP_") and value is not None
        }
    )


def _validated(identity: Identity, environment: Environment) -> ValidatedToken:
    token = environment["keystone.token_info"].get("token", {})
    limited = (token.get("application_credential") or {}).get("access_rules") is not None
    with_service = _variable("x-service-token") in environment
    try:
        expires = datetime.fromisoformat(token["expires_at"]).timestamp()
    except (KeyError, ValueError):
        expires = time.time()
    return ValidatedToken(identity, not (limited or with_service or token.get("bind")), expires)
