"""Connections: the options of commands for the address of a service, and tokens, which Keystone may issue."""

import os
import ssl
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import click

from roost.cli.profiles import FoundProfile, Service, chosen_profile
from roost.model.errors import OperatorError
from roost.model.secrets import safe_url

DEFAULTS: Mapping[Service, str] = {
    "conductor": "http://127.0.0.1:8780",
    "scheduler": "http://127.0.0.1:8779",
    "placement": "http://127.0.0.1:8778",
}
"""The address of each service that is started without further options."""

_END = "-----END CERTIFICATE-----\n"

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class ServiceConnection:
    """The address of a service, the credentials for it, and the authorities that are trusted.

    ``origin``: where the address is from, as text. ``by_option``: it is from the command line;
    ``by_default``: it is one of `DEFAULTS`. ``keystone``: options with which Keystone issues a token if
    ``token`` is None. ``socket``: the path of the UNIX socket at which the service listens. ``certificate``:
    if there is no ``ca_file``, a file with the one trusted certificate, whose names are not checked.
    """

    service: Service
    url: str
    origin: str
    token: str | None = None
    ca_file: Path | None = None
    keystone: Mapping[str, str] = field(default_factory=dict)
    by_option: bool = True
    by_default: bool = False
    socket: Path | None = None
    certificate: Path | None = None

    def __str__(self) -> str:
        the = "" if self.service == "placement" else "the "
        return f"{the}{self.service} at {self.place} ({self.origin})"

    @property
    def place(self) -> str:
        """The address as messages show it."""
        return safe_url(self.url) if self.socket is None else f"the UNIX socket {self.socket}"

    def bearer(self) -> str:
        """Return the token. Raises `OperatorError` if there is none that a header can carry."""
        token = self.token or keystone_token(self.keystone)
        if not (token.isascii() and token.isprintable()):
            raise OperatorError("the token has characters that a header cannot carry, such as line ends")
        return token

    def headers(self) -> dict[str, str]:
        """Return the headers of a request. Raises `OperatorError` as `bearer` does."""
        return {"x-auth-token": self.bearer()}

    def trusted(self) -> ssl.SSLContext | bool:
        """Return the trusted authorities for httpx. Raises `OperatorError` for a file that has none."""
        if self.ca_file is None and self.certificate is not None:
            return _trusting(self.certificate)
        if self.ca_file is None:
            return True
        try:
            return ssl.create_default_context(cafile=self.ca_file)
        except OSError as error:
            raise OperatorError(f"{self.ca_file} has no authorities that can be read: {error}") from error

    def way(self, trusted: ssl.SSLContext | bool | None = None) -> dict[str, Any]:
        """Return the options of an httpx client for the service. ``trusted``: a result of `trusted`.

        Raises `OperatorError` as `trusted` does.
        """
        trusted = self.trusted() if trusted is None else trusted
        if self.socket is None:
            return {"verify": trusted}
        import httpx  # takes longer than most commands

        return {"transport": httpx.HTTPTransport(verify=trusted, uds=str(self.socket))}

    def async_way(self) -> dict[str, Any]:
        """Return the options of `way` for an asynchronous client."""
        if self.socket is None:
            return {"verify": self.trusted()}
        import httpx

        return {"transport": httpx.AsyncHTTPTransport(verify=self.trusted(), uds=str(self.socket))}


def connection_to(
    service: Service,
    url: str | None = None,
    token: str | None = None,
    ca_file: Path | None = None,
    profile: str | None = None,
    environment: Mapping[str, str] | None = None,
) -> ServiceConnection:
    """Return the connection by options, the environment and profiles, in this order of precedence.

    ``profile`` counts as an option. A profile that no option names is not used if the address is from an
    option or the environment, so that its token goes to its own addresses only.

    Raises:
        OperatorError: an address is invalid, or the profile does not exist or cannot be read.
    """
    environment = os.environ if environment is None else environment
    named = next((name for name in _variables(service) if environment.get(name)), None)
    found = None
    if profile is not None or (url is None and named is None):
        found = chosen_profile(profile or environment.get("ROOST_PROFILE") or None, environment)
    if url is not None:
        address, origin = url, "--url"
    elif found is not None:
        address, origin = _address(found, service), str(found)
    elif named is not None:
        address, origin = environment[named], named
    else:
        address, origin = DEFAULTS[service], "the default; --url, ROOST_URL or a profile names another"
    _check(address, origin)
    from_profile = _Access() if found is None else _access(found)
    from_environment = _Access(
        environment.get("ROOST_TOKEN") or None,
        Path(ca) if (ca := environment.get("ROOST_CA_FILE")) else None,
        keystone_options(environment),
    )
    # A profile named by an option precedes the environment; a default profile follows it.
    first, second = (from_profile, from_environment)[:: -1 if profile is None else 1]
    access = second if first.proves_nobody else first
    return ServiceConnection(
        service,
        address.rstrip("/"),
        origin,
        token or access.token,
        ca_file or first.ca_file or second.ca_file,
        access.keystone,
        by_option=url is not None or profile is not None,
        by_default=url is None and found is None and named is None,
        socket=_socket(found, service) if url is None and found is not None else None,
        certificate=None if url is not None or found is None else _certificate(found),
    )


@dataclass(frozen=True)
class _Access:
    """Credentials and trusted authorities from one origin: options, the environment or a profile."""

    token: str | None = None
    ca_file: Path | None = None
    keystone: Mapping[str, str] = field(default_factory=dict)

    @property
    def proves_nobody(self) -> bool:
        return self.token is None and not ({"auth_url", "token"} & self.keystone.keys())


def _access(found: FoundProfile) -> _Access:
    profile = found.profile
    ca_file = None if profile.ca_file is None else found.path(profile.ca_file)
    return _Access(found.token(), ca_file, profile.keystone)


def _socket(found: FoundProfile, service: Service) -> Path | None:
    path = found.profile.socket_of(service)
    return None if path is None else found.path(path)


def _certificate(found: FoundProfile) -> Path | None:
    path = found.profile.certificate
    return None if path is None else found.path(path)


def _trusting(certificate: Path) -> ssl.SSLContext:
    """Return a context that trusts the first certificate of a file. Raises `OperatorError` without one."""
    try:
        [first, *_] = certificate.read_text().partition(_END)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        # Only this certificate is trusted, not an authority, so its names need no check.
        context.check_hostname = False
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        context.load_verify_locations(cadata=first + _END)
    except (OSError, ValueError) as error:
        raise OperatorError(f"{certificate} has no certificate that can be read: {error}") from error
    return context


def _address(found: FoundProfile, service: Service) -> str:
    address = found.profile.address(service)
    if address is None:
        raise OperatorError(f"{found} has no address of the {service}: set {service} or url in it")
    return address


def _variables(service: Service) -> tuple[str, str]:
    """Return the environment variables with the address of a service, in order of precedence."""
    return f"ROOST_{service.upper()}_URL", "ROOST_URL"


def connected_to(service: Service, *names: str) -> Callable[[F], F]:
    """Add the options of a service to a command, which gets the argument ``connection``.

    ``names``: older names of its option ``--url``.
    """
    return _with_options(service, names, lambda *chosen: {"connection": connection_to(service, *chosen)})


def connected_to_all(service: Service, *, others_needed: bool = True) -> Callable[[F], F]:
    """Add the options of a service to a command, which gets ``connections``, one for each service.

    An address by option is that of all services, as `roost up` serves them. ``others_needed``: a profile must
    name the address of each; otherwise those that it does not name are left out.
    """

    def connections(*chosen: Any) -> Mapping[str, Any]:
        found = {service: connection_to(service, *chosen)}
        for each in DEFAULTS.keys() - {service}:
            with suppress(*(() if others_needed else (OperatorError,))):
                found[each] = connection_to(each, *chosen)
        return {"connections": {each: found[each] for each in DEFAULTS if each in found}}

    return _with_options(service, (), connections)


def _with_options(
    service: Service, names: Sequence[str], arguments_of: Callable[..., Mapping[str, Any]]
) -> Callable[[F], F]:
    """Add the options of a service to a command, which gets the arguments that they result in."""
    options = (
        click.option(
            "--url",
            *names,
            "url",
            metavar="URL",
            help=f"Where the {service} is; or {' or '.join(_variables(service))}, or a profile.  "
            f"[default: {DEFAULTS[service]}]",
        ),
        click.option(
            "--token",
            help="A token; or ROOST_TOKEN, or a profile. Without one Keystone is asked, as OS_AUTH_URL and "
            "the like say; without these it is OS_TOKEN, or `admin`.",
        ),
        click.option(
            "--ca-file",
            type=click.Path(path_type=Path),
            help="Authorities of its certificate, in PEM; or ROOST_CA_FILE, or a profile.",
        ),
        click.option(
            "--profile", metavar="NAME", help="A profile of ~/.config/roost/config.toml; or ROOST_PROFILE."
        ),
    )

    def decorate(command: F) -> F:
        @wraps(command)
        def run(
            *arguments: Any,
            url: str | None,
            token: str | None,
            ca_file: Path | None,
            profile: str | None,
            **named: Any,
        ) -> Any:
            return command(*arguments, **arguments_of(url, token, ca_file, profile), **named)

        decorated: Any = run
        for option in reversed(options):
            decorated = option(decorated)
        return decorated  # type: ignore[no-any-return]

    return decorate


def _check(address: str, origin: str) -> None:
    """Raise `OperatorError` for an address that is not an HTTP URL."""
    try:
        parts = urlsplit(address)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable or not address.isprintable() or " " in address:
        raise OperatorError(
            f"{safe_url(address)!r} of {origin} is no URL: it is written with http:// or https://, as "
            f"{DEFAULTS['placement']}"
        )


SECONDS = 60.0
"""Seconds that Keystone has for a response."""

NO_TOKEN = "admin"
"""The token for services that do not check tokens."""


def keystone_options(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the options in the environment variables OS_AUTH_URL, OS_USERNAME and so on."""
    return {
        name[3:].lower(): value for name, value in environment.items() if name.startswith("OS_") and value
    }


def keystone_token(options: Mapping[str, str]) -> str:
    """Return a token of Keystone for these options.

    Without `auth_url`, or with `token` and no other secret, return the option `token`, else `NO_TOKEN`.
    Raises `OperatorError` if Keystone issues no token.
    """
    secrets = ("auth_type", "password", "application_credential_secret")
    if "auth_url" not in options or ("token" in options and not any(name in options for name in secrets)):
        return options.get("token", NO_TOKEN)
    # Imported only here: the import is slow.
    from keystoneauth1 import exceptions, loading, session

    url = options["auth_url"]
    kind = options.get("auth_type", "password" if "password" in options else "v3applicationcredential")
    try:
        loader: Any = loading.get_plugin_loader(kind)
        known = {option.dest for option in loader.get_options()}
        values = {name: value for name, value in options.items() if name in known}
        plugin = loader.load_from_options(**values)
        verify = options.get("cacert", True)
        token = plugin.get_token(session.Session(auth=plugin, verify=verify, timeout=SECONDS))
    except (exceptions.ClientException, TypeError, ValueError) as error:
        raise OperatorError(f"Keystone at {url} gives no token: {error}") from error
    if token is None:
        raise OperatorError(f"Keystone at {url} gives no token")
    return str(token)
