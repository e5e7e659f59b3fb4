"""`LibvirtConnection`: libvirt's blocking calls in threads, over a connection that is reopened when lost."""

import asyncio
import importlib
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, Final, TypeVar

from roost.agent.errors import BuildFailed, HypervisorAway
from roost.model.errors import OperatorError

T = TypeVar("T")

FAILED: Final = "HypervisorFailed"
UNSUPPORTED: Final = "UnsupportedGuest"
"""The codes of builds that fail in libvirt, or that libvirt refuses."""

_THREADS: Final = 8
_KEEPALIVE: Final = (5, 3)
"""Seconds between two keepalive messages, and the number of missed ones that loses the connection."""


@cache
def bindings() -> Any:
    """Return libvirt's Python module, with its event loop in a thread, which detects dead connections.

    Raises `OperatorError` if it is not installed.
    """
    try:
        libvirt: Any = importlib.import_module("libvirt")
    except ImportError as error:
        raise OperatorError(f"the driver libvirt needs the extra roost[libvirt]: {error}") from error
    # Errors are raised; the default handler would print them, too.
    libvirt.registerErrorHandler(lambda *_: None, None)
    libvirt.virEventRegisterDefaultImpl()
    threading.Thread(target=_run_events, args=(libvirt,), name="libvirt events", daemon=True).start()
    return libvirt


def _run_events(libvirt: Any) -> None:
    while True:
        libvirt.virEventRunDefaultImpl()


class LibvirtConnection:
    """A connection to one hypervisor. ``seconds``: timeout of a read."""

    def __init__(self, uri: str, seconds: float) -> None:
        self.uri = uri
        self._seconds = seconds
        self._libvirt = bindings()
        self._open: Any = None
        self._lock = threading.Lock()
        self._threads = ThreadPoolExecutor(_THREADS, "libvirt")

    async def call(self, work: Callable[[Any], T]) -> T:
        """Return the result of a function of the open connection; it may run again after a lost one.

        A cancelled caller waits for its end too, so that it has no effect later. Raises `HypervisorAway`,
        `BuildFailed` and what the function raises.
        """
        task = asyncio.get_running_loop().run_in_executor(self._threads, self.call_now, work)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            await asyncio.wait([task])
            raise

    async def read(self, work: Callable[[Any], T]) -> T:
        """Do as `call`, with a timeout, for a function that changes nothing."""
        try:
            async with asyncio.timeout(self._seconds):
                return await asyncio.get_running_loop().run_in_executor(self._threads, self.call_now, work)
        except TimeoutError:
            raise HypervisorAway(f"{self.uri} does not answer within {self._seconds:g} seconds") from None

    def call_now(self, work: Callable[[Any], T]) -> T:
        """Do as `call`, in this thread."""
        error: Exception | None = None
        for _ in range(2):
            opened = self._opened()
            try:
                return work(opened)
            except self._libvirt.libvirtError as failed:
                error = failed
                if self._is_alive(opened):
                    raise self._told(failed) from failed
                self._forget(opened)
        raise HypervisorAway(f"{self.uri} is lost: {error}") from error

    def unless_unsupported(self, work: Callable[[], T]) -> T | None:
        """Return a function's result; None if the hypervisor does not support the call."""
        try:
            return work()
        except self._libvirt.libvirtError as error:
            if error.get_error_code() in self._unsupported():
                return None
            raise

    def unless_gone(self, work: Callable[[], T]) -> T | None:
        """Return a function's result; None if the domain or device does not exist."""
        try:
            return work()
        except self._libvirt.libvirtError as error:
            gone = (self._libvirt.VIR_ERR_NO_DOMAIN, self._libvirt.VIR_ERR_NO_NODE_DEVICE)
            if error.get_error_code() in gone:
                return None
            raise

    def constant(self, name: str) -> int:
        """Return a constant of libvirt by its name; 0 if these bindings do not have it."""
        return int(getattr(self._libvirt, name, 0))

    def close(self) -> None:
        """Close the connection and end the threads."""
        self._threads.shutdown()
        with self._lock:
            if self._open is not None:
                self._open.close()
                self._open = None

    def _opened(self) -> Any:
        with self._lock:
            if self._open is None:
                try:
                    self._open = self._libvirt.open(self.uri)
                except self._libvirt.libvirtError as error:
                    raise HypervisorAway(f"{self.uri} cannot be opened: {error}") from error
                # A hypervisor in this process supports no keepalive, and cannot be lost.
                self.unless_unsupported(lambda: self._open.setKeepAlive(*_KEEPALIVE))
            return self._open

    def _is_alive(self, opened: Any) -> bool:
        try:
            return bool(opened.isAlive())
        except self._libvirt.libvirtError:
            return False

    def _forget(self, opened: Any) -> None:
        with self._lock:
            if self._open is opened:
                self._open = None

    def _told(self, error: Any) -> BuildFailed:
        """Return the failure of a build by an error of libvirt. It is retryable on another host."""
        unsupported = {*self._unsupported(), self._libvirt.VIR_ERR_XML_ERROR}
        code = UNSUPPORTED if error.get_error_code() in unsupported else FAILED
        return BuildFailed(f"libvirt: {error}", code)

    def _unsupported(self) -> set[int]:
        names = ("NO_SUPPORT", "CONFIG_UNSUPPORTED", "OPERATION_UNSUPPORTED", "ARGUMENT_UNSUPPORTED")
        return {getattr(self._libvirt, f"VIR_ERR_{name}") for name in names}
