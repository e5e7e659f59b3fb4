"""Requests to a BMC: one at a time, in a thread.

Many BMCs answer concurrent requests badly or not at all, and a connection of sushy is for one thread.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any, NamedTuple, TypeVar

from roost.agent.drivers.redfish.errors import BmcFailed, BmcSilent
from roost.agent.drivers.redfish.nodes_file import BmcNodes, Boot
from roost.model.errors import OperatorError
from roost.model.text import error_text

try:
    import sushy
    from sushy import exceptions
except ImportError as _error:
    raise OperatorError(f"the driver redfish needs sushy, install roost[redfish]: {_error}") from _error

T = TypeVar("T")

_MODES = {
    "uefi": sushy.BootSourceOverrideMode.UEFI,
    "legacy": sushy.BootSourceOverrideMode.LEGACY,
    None: None,
}
_IMAGE_DEVICES = (sushy.VirtualMediaType.CD, sushy.VirtualMediaType.DVD)


class SystemState(NamedTuple):
    """The state of a machine as its BMC reports it. ``on``: None while it changes, or if it is not known.

    Amounts are None if the BMC does not report them.
    """

    on: bool | None
    cpus: int | None = None
    memory_mb: int | None = None


class Bmc:
    """A connection to a BMC, for one thread at a time. It logs in at the first request.

    ``seconds``: timeout of one request. All methods raise `BmcFailed`.
    """

    def __init__(self, bmc: BmcNodes, seconds: float) -> None:
        self._bmc = bmc
        self._seconds = seconds
        self._root: Any = None
        self._systems: dict[str, Any] = {}

    def look_at(self, system: str) -> SystemState:
        """Read the state of one machine."""

        def look(system: Any) -> SystemState:
            system.refresh(force=True)
            states = {sushy.PowerState.ON: True, sushy.PowerState.OFF: False}
            memory = system.memory_summary
            size = None if memory is None else memory.size_gib
            return SystemState(
                states.get(system.power_state), _count(system), None if size is None else int(size * 1024)
            )

        return self._with(system, look)

    def set_boot(self, system: str, boot: Boot, url: str | None) -> None:
        """Set the boot source of the next boot only."""

        def set_it(system: Any) -> None:
            if boot.source == "virtual-media":
                device = _image_device(system)
                if device.inserted:
                    device.eject_media()
                device.insert_media(url)
            target = {
                "pxe": sushy.BootSource.PXE,
                "http": sushy.BootSource.UEFI_HTTP,
                "virtual-media": sushy.BootSource.CD,
                "disk": sushy.BootSource.HDD,
            }[boot.source]
            system.set_system_boot_options(
                target,
                enabled=sushy.BootSourceOverrideEnabled.ONCE,
                mode=_MODES[boot.mode],
                http_boot_uri=url if boot.source == "http" else None,
            )

        self._with(system, set_it)

    def unset_boot(self, system: str, boot: Boot) -> None:
        """Undo `set_boot`: the next boot is the usual one, and an inserted image is ejected."""

        def unset(system: Any) -> None:
            off = sushy.BootSourceOverrideEnabled.DISABLED
            try:
                system.set_system_boot_options(enabled=off)
            except exceptions.BadRequestError:
                # Some BMCs take no change without a target.
                system.set_system_boot_options(sushy.BootSource.HDD, enabled=off)
            if boot.source == "virtual-media":
                device = _image_device(system)
                if device.inserted:
                    device.eject_media()

        self._with(system, unset)

    def switch_on(self, system: str) -> None:
        """Request that the power is switched on."""
        self._with(system, lambda system: system.reset_system(sushy.ResetType.ON))

    def switch_off(self, system: str, *, force: bool) -> None:
        """Request a graceful shutdown, or with ``force`` a power-off."""
        kind = sushy.ResetType.FORCE_OFF if force else sushy.ResetType.GRACEFUL_SHUTDOWN
        self._with(system, lambda system: system.reset_system(kind))

    def _with(self, path: str, work: Callable[[Any], T]) -> T:
        try:
            if self._root is None:
                bmc = self._bmc
                self._root = sushy.Sushy(
                    bmc.endpoint,
                    username=bmc.username or "",
                    password="" if bmc.password is None else bmc.password.value,
                    verify=bmc.verify,
                    server_side_retries=1,
                    server_side_retries_delay=1,
                    read_timeout=self._seconds,
                )
            system = self._systems.get(path)
            if system is None:
                system = self._systems[path] = self._root.get_system(path)
            return work(system)
        except exceptions.ConnectionError as error:
            self._forget()
            raise BmcSilent(f"{self._bmc.endpoint} does not answer: {_text(error)}") from None
        except exceptions.AccessError as error:
            # Without a session every machine of the BMC fails alike.
            self._forget()
            raise BmcSilent(f"{self._bmc.endpoint} refuses the login: {_text(error)}") from None
        except OSError as error:
            # Such as an unreadable file of authorities: no request was sent.
            self._forget()
            raise BmcSilent(f"{self._bmc.endpoint} cannot be asked: {_text(error)}") from None
        # An unexpected answer of a BMC leaves sushy as any of these errors.
        except (
            exceptions.SushyError,
            ValueError,
            KeyError,
            TypeError,
            AttributeError,
            RecursionError,
        ) as error:
            self._systems.pop(path, None)
            raise BmcFailed(f"{self._bmc.endpoint}{path}: {_text(error)}") from None

    def _forget(self) -> None:
        self._root = None
        self._systems.clear()


class BmcClient:
    """Requests to a BMC from the event loop: one at a time, each in a thread of ``threads``."""

    def __init__(self, bmc: BmcNodes, seconds: float, threads: Executor) -> None:
        self._bmc = Bmc(bmc, seconds)
        self._threads = threads
        self._lock = asyncio.Lock()

    async def ask(self, work: Callable[[Bmc], T]) -> T:
        """Run a function of the BMC in a thread. Raises `BmcFailed`.

        A cancelled caller waits no longer, but the next request waits until the thread is done, so that the
        BMC gets requests in their order.
        """
        asked = asyncio.ensure_future(self._ask(work))
        asked.add_done_callback(_seen)
        return await asyncio.shield(asked)

    async def _ask(self, work: Callable[[Bmc], T]) -> T:
        async with self._lock:
            return await asyncio.get_running_loop().run_in_executor(self._threads, work, self._bmc)


def _seen(asked: "asyncio.Future[Any]") -> None:
    """Retrieve the error of a request whose caller was cancelled, so that asyncio does not log it."""
    if not asked.cancelled():
        asked.exception()


def _image_device(system: Any) -> Any:
    """Return the virtual CD or DVD drive of a machine. Raises `BmcFailed`."""
    for holder in (system, *system.managers):
        try:
            devices = holder.virtual_media.get_members()
        except exceptions.MissingAttributeError:
            continue
        for device in devices:
            if set(device.media_types or ()) & set(_IMAGE_DEVICES):
                device.refresh(force=True)
                return device
    raise BmcFailed("it has no virtual CD or DVD drive")


def _count(system: Any) -> int | None:
    processors = (system.json.get("ProcessorSummary") or {}).get("Count")
    return processors if isinstance(processors, int) else None


def _text(error: Exception) -> str:
    return " ".join(error_text(error).split())[:400]
