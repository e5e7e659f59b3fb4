"""The connections to Nova's broker, configured from nova.conf."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from oslo_config import cfg

from roost.model.errors import OperatorError
from roost.nova.rpc.oslo import oslo_messaging
from roost.process.option_source import refused_value

EXCHANGE = "nova"
"""The exchange of Nova's services, unless ``[DEFAULT] control_exchange`` says otherwise."""

TOPIC = "scheduler"
"""The topic of Nova's schedulers."""


class NovaTransport(NamedTuple):
    """The transport of calls and casts.

    ``conf``: oslo.config's global options. oslo.messaging registers some of its options there and nowhere
    else, and a server with other options drops each message without a word.
    """

    conf: cfg.ConfigOpts
    rpc: Any

    def target(self, server: str | None = None) -> Any:
        """Return the address of all schedulers, or of the one named ``server``."""
        return oslo_messaging.Target(topic=TOPIC, server=server)

    def close(self) -> None:
        """Close all connections."""
        self.rpc.cleanup()


def open_transport(files: Sequence[str], url: str | None = None) -> NovaTransport:
    """Read the options of oslo.messaging from files, and return a transport that is not connected yet.

    ``url``: of the broker, in place of the one that the files have.

    Raises:
        OperatorError: A file cannot be read, or the broker's URL or an option cannot be used.
    """
    conf = cfg.CONF
    oslo_messaging.set_transport_defaults(EXCHANGE)
    try:
        # Roost reads the files that it is given, and no folders beside them.
        conf(args=[], project=EXCHANGE, default_config_files=list(files), default_config_dirs=[])
        return NovaTransport(conf, oslo_messaging.get_rpc_transport(conf, url=url))
    except cfg.Error as error:
        raise refused_value(error) from error
    except (oslo_messaging.DriverLoadFailure, oslo_messaging.InvalidTransportURL, ValueError) as error:
        # The error's text has the URL, and that the password.
        raise OperatorError(f"transport_url: it cannot be used ({type(error).__name__})") from None
