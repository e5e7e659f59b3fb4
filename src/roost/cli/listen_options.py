"""The address where a service listens, and its TLS: options of all commands that serve."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, wraps
from pathlib import Path
from typing import Any

import click

from roost.cli.numbers import WholeNumber
from roost.model.errors import OperatorError
from roost.server.workers.listeners import Address, UnixAddress
from roost.server.workers.tls import Tls

_HERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}
"""Addresses of this machine instead of those that mean all of them."""


@dataclass(frozen=True)
class ListenOptions:
    """The address of a service, and its TLS, by the command line."""

    address: Address | UnixAddress
    tls: Tls | None

    @property
    def host(self) -> str | None:
        """The host; None for a UNIX socket, which other machines cannot reach."""
        return self.address.host if isinstance(self.address, Address) else None

    @property
    def url(self) -> str | None:
        """The URL at which people on this machine reach it; None for a UNIX socket."""
        where = self.address
        if not isinstance(where, Address):
            return None
        here = Address(_HERE.get(where.host, where.host), where.port)
        return f"{'http' if self.tls is None else 'https'}://{here}"

    def __str__(self) -> str:
        """Return the URL for messages; for a UNIX socket its path."""
        if isinstance(self.address, UnixAddress):
            return f"the UNIX socket {self.address}"
        return f"{'http' if self.tls is None else 'https'}://{self.address}"


class _Mode(click.ParamType[int]):
    name = "mode"

    def convert(self, value: str | int, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        try:
            mode = int(value, 8)
        except ValueError:
            mode = -1
        if not 0 <= mode <= 0o777:
            self.fail(f"{value!r} is not an octal mode such as 660", param, ctx)
        return mode


_FILE = click.Path(path_type=Path)
_OPTIONS = (
    click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on."),
    click.option("--uds", type=_FILE, help="Listen on a UNIX socket at this path, instead of a port."),
    click.option(
        "--uds-mode", type=_Mode(), default="660", show_default=True, help="Mode of the UNIX socket, octal."
    ),
    click.option("--tls-cert", type=_FILE, help="Certificate and its chain, in PEM: serve HTTPS."),
    click.option("--tls-key", type=_FILE, help="Private key of the certificate, in PEM, not encrypted."),
    click.option(
        "--tls-client-ca", type=_FILE, help="Clients must have a certificate of these authorities, in PEM."
    ),
)


def listening_at(port: int, shown: str = "") -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that adds the options to a command, which gets them as ``listening``.

    ``port``: the default of the port. ``shown``: the words for it in the help.
    """
    return partial(_listening, port, shown)


def _listening(default: int, shown: str, command: Callable[..., None]) -> Callable[..., None]:

    @wraps(command)
    def with_listening(
        port: int,
        host: str,
        uds: Path | None,
        uds_mode: int,
        tls_cert: Path | None,
        tls_key: Path | None,
        tls_client_ca: Path | None,
        **others: Any,
    ) -> None:
        address = Address(host, port) if uds is None else UnixAddress(uds.absolute(), uds_mode)
        command(listening=ListenOptions(address, _tls(tls_cert, tls_key, tls_client_ca)), **others)

    for option in reversed((_port(default, shown), *_OPTIONS)):
        with_listening = option(with_listening)
    return with_listening


listening = listening_at(8778)
"""The options of a service with the port of OpenStack's Placement."""


def _port(default: int, shown: str) -> Callable[..., Any]:
    return click.option(
        "--port", type=WholeNumber(1, 65535), default=default, show_default=shown or True, help="Port."
    )


def _tls(certificate: Path | None, key: Path | None, client_authority: Path | None) -> Tls | None:
    """Return the files of TLS; None if none is given. Raises `OperatorError` if one is missing or wrong."""
    if certificate is None and key is None and client_authority is None:
        return None
    if certificate is None or key is None:
        missing = "--tls-cert" if certificate is None else "--tls-key"
        raise OperatorError(f"TLS needs a certificate and its key: {missing} is missing")
    tls = Tls(certificate.absolute(), key.absolute(), client_authority and client_authority.absolute())
    tls.check()
    return tls
