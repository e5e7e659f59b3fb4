"""The watchdog of a machine: a timer of the kernel or the hardware that resets it unless it is touched.

It works where an agent cannot: when the agent has ended, stands still, or cannot stop its guests.
Source: ``Documentation/watchdog/watchdog-api.rst`` of Linux.
"""

import errno
import fcntl
import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Protocol

from roost.model.errors import OperatorError

_SET_TIMEOUT: Final = 0xC0045706
"""``WDIOC_SETTIMEOUT``: takes whole seconds, and answers those that the device can do."""

_DISARM: Final = b"V"
"""The byte after which closing the device stops its timer, unless the kernel forbids that."""


class Watchdog(Protocol):
    """A watchdog that is armed."""

    async def touch(self) -> None:
        """Begin its time anew. Raises OSError."""

    def disarm(self) -> None:
        """Stop its timer. Raises OSError."""

    def leave(self) -> None:
        """Let its timer run on: the machine is reset, unless another agent arms it anew before."""


class NoWatchdog:
    """Is in the place of a watchdog where there is none."""

    async def touch(self) -> None:
        """Do nothing."""

    def disarm(self) -> None:
        """Do nothing."""

    def leave(self) -> None:
        """Do nothing."""


class DeviceWatchdog:
    """A watchdog device of Linux, such as ``/dev/watchdog``; armed by opening it.

    ``seconds``: whole seconds after the last touch in which the machine must be reset. ``ioctl``: as
    `fcntl.ioctl`. Raises `OperatorError` if there is no such device or it takes longer.
    """

    def __init__(self, path: Path, seconds: int, ioctl: Callable[..., Any] = fcntl.ioctl) -> None:
        self._path = path
        try:
            self._device: int | None = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
        except OSError as error:
            raise OperatorError(f"the watchdog {path} cannot be opened: {error.strerror}") from error
        try:
            [granted] = struct.unpack("i", ioctl(self._device, _SET_TIMEOUT, struct.pack("i", seconds)))
        except OSError as error:
            self._close_disarmed()
            raise OperatorError(f"the watchdog {path} takes no timeout: {error.strerror}") from error
        if granted > seconds:
            self._close_disarmed()
            raise OperatorError(
                f"the watchdog {path} resets the machine after {granted} seconds at the earliest, and not "
                f"after {seconds}: set fence_stop_seconds to {2 * granted} or more"
            )

    async def touch(self) -> None:
        """Begin its time anew. Raises OSError."""
        os.write(self._opened(), b"\0")

    def disarm(self) -> None:
        """Stop its timer. Raises OSError."""
        try:
            os.write(self._opened(), _DISARM)
        finally:
            self.leave()

    def leave(self) -> None:
        """Let its timer run on."""
        device, self._device = self._device, None
        if device is not None:
            os.close(device)

    def _opened(self) -> int:
        if self._device is None:
            raise OSError(errno.EBADF, f"the watchdog {self._path} is closed")
        return self._device

    def _close_disarmed(self) -> None:
        try:
            self.disarm()
        except OSError as error:
            raise OperatorError(
                f"the watchdog {self._path} cannot be stopped, so the machine may be reset: {error.strerror}"
            ) from error
