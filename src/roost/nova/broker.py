"""The addresses of Nova's message broker, and the options of its connections.

Source: ``TransportURL`` of oslo.messaging 18.3, and the options of its driver of RabbitMQ.
"""

from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from roost.model.errors import OperatorError
from roost.process.options import OptionStruct, option

BROKER_PORT = 5672
"""The port of RabbitMQ where the URL names none."""


class BrokerAddress(NamedTuple):
    """A broker of a ``transport_url``, and the credentials there."""

    host: str
    port: int
    user: str
    password: str


class RabbitOptions(OptionStruct, frozen=True, group="oslo_messaging_rabbit"):
    """The options of oslo.messaging that the connection of shadow mode reads."""

    ssl: bool = option(
        False, deprecated_name="rabbit_use_ssl", help="Connections to the broker are encrypted."
    )
    ssl_ca_file: str | None = option(None, help="The certificates of authorities that sign the broker's.")
    ssl_cert_file: str | None = option(None, help="The certificate that is shown to the broker.")
    ssl_key_file: str | None = option(None, help="The key of that certificate.")
    control_exchange: str = option("nova", group="DEFAULT", help="The exchange of Nova's services.")
    rabbit_login_method: str = option("AMQPLAIN", help="The method of the login.")

    @property
    def tls(self) -> dict[str, Any] | bool:
        """The settings of TLS as kombu has them; False without TLS."""
        if not self.ssl:
            return False
        import ssl

        given = {
            "ca_certs": self.ssl_ca_file,
            "certfile": self.ssl_cert_file,
            "keyfile": self.ssl_key_file,
            "cert_reqs": ssl.CERT_REQUIRED if self.ssl_ca_file else None,
        }
        return {name: value for name, value in given.items() if value is not None} or True


def broker_addresses(url: str) -> list[BrokerAddress]:
    """Return the brokers of a ``transport_url``, which may name several.

    Raises: `OperatorError` for a port that is not a number, or a host in brackets that do not close.
    """
    try:
        return _addresses(url)
    except ValueError:
        # The error's text may have a part of the URL, and that the password.
        raise OperatorError("transport_url: the host or the port of a broker cannot be read") from None


def _addresses(url: str) -> list[BrokerAddress]:
    found = []
    for part in urlsplit(url).netloc.split(","):
        one = urlsplit(f"//{part}")
        if one.hostname:
            user, password = unquote(one.username or ""), unquote(one.password or "")
            found.append(BrokerAddress(one.hostname, one.port or BROKER_PORT, user, password))
    return found


def virtual_host(url: str) -> str:
    """Return the virtual host of a ``transport_url``, by default ``/``."""
    return unquote(urlsplit(url).path[1:]) or "/"
