"""Messages to systemd about the state of the service, by the protocol of sd_notify(3)."""

import os
import socket
import time
from collections.abc import Mapping
from typing import Final

import structlog

_LOG = structlog.get_logger()

READY: Final = "READY=1"
STOPPING: Final = "STOPPING=1"


class Notifier:
    """Sends messages to the socket that systemd names in ``NOTIFY_SOCKET``; none if it is not set."""

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        path = environment.get("NOTIFY_SOCKET", "")
        # systemd writes @ for the NUL with which abstract addresses begin.
        self._address = "\0" + path[1:] if path.startswith("@") else path

    def ready(self) -> None:
        """Tell that the service serves, with its current configuration."""
        self._send(READY)

    def reloading(self) -> None:
        """Tell that the service reads a new configuration. `ready` tells the end of the reload."""
        self._send(f"RELOADING=1\nMONOTONIC_USEC={time.monotonic_ns() // 1000}")

    def stopping(self) -> None:
        """Tell that the service ends."""
        self._send(STOPPING)

    def _send(self, message: str) -> None:
        if not self._address:
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
                sender.sendto(message.encode(), self._address)
        except OSError as error:
            _LOG.warning("systemd could not be notified", error=str(error), message=message)
