"""What is asked of a BMC: one request at a time, in a thread.

Many BMCs answer several requests at once badly or not at all, and a connection of sushy is for one thread.
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


class Seen(NamedTuple):
    """What a BMC tells of a machine. ``on``: None while it changes, and where the BMC does not know.

    Amounts are None where the BMC tells none.
    """

    on: bool | None
    cpus: int | None = None
    memory_mb: int | None = None


class Bmc:
    """A connection to a BMC, for one thread at a time. It logs in at the first request.

    ``seconds``: how long one request may take. Everything raises `BmcFailed`.
    """

    def __init__(self, bmc: BmcNodes, seconds: float) -> None:
        self._bmc = bmc
        self._seconds = seconds
        self._root: Any = None
        self._systems: dict[str, Any] = {}

    def look_at(self, system: str) -> Seen:
        """What there is to see of one machine."""

        def look(system: Any) -> Seen:
            system.refresh(force=True)
            states = {sushy.PowerState.ON: True, sushy.PowerState.OFF: False}
            memory = system.memory_summary
            size = None if memory is None else memory.size_gib
            return Seen(
                states.get(system.power_state), _count(system), None if size is None else int(size * 1024)
            )

        return self._with(system, look)

    def set_boot(self, system: str, boot: Boot, url: str | None) -> None:
        """Have the next boot, and that alone, come from somewhere."""

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
        """Have the next boot come from where it usually does, and take an image out."""

        def unset(system: Any) -> None:
            off = sushy.BootSourceOverrideEnabled.DISABLED
            try:
                system.set_system_boot_options(enabled=off)
            except exceptions.BadRequestError:
                # Some take no change without a target.
                system.set_system_boot_options(sushy.BootSource.HDD, enabled=off)
            if boot.source == "virtual-media":
                device = _image_device(system)
                if device.inserted:
                    device.eject_media()

        self._with(system, unset)

    def switch_on(self, system: str) -> None:
        """Ask for the power to be switched on."""
        self._with(system, lambda system: system.reset_system(sushy.ResetType.ON))

    def switch_off(self, system: str, *, force: bool) -> None:
        """Ask the system to end, or with ``force`` take its power."""
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
            # Without a session every machine gets the same answer.
            self._forget()
            raise BmcSilent(f"{self._bmc.endpoint} refuses the login: {_text(error)}") from None
        except OSError as error:
            # Such as authorities that cannot be read: nothing was asked.
            self._forget()
            raise BmcSilent(f"{self._bmc.endpoint} cannot be asked: {_text(error)}") from None
        # Sushy lets what a BMC sends and nobody expects through as what it causes.
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


class Line:
    """The line to a BMC, for the event loop: one request at a time, each in a thread of ``threads``."""

    def __init__(self, bmc: BmcNodes, seconds: float, threads: Executor) -> None:
        self._bmc = Bmc(bmc, seconds)
        self._threads = threads
        self._lock = asyncio.Lock()

    async def ask(self, work: Callable[[Bmc], T]) -> T:
        """Have a thread do something. Raises `BmcFailed`.

        Who is cancelled waits no longer, but the line is taken until the thread is done: what is asked next
        comes after it at the BMC as well.
        """
        asked = asyncio.ensure_future(self._ask(work))
        asked.add_done_callback(_seen)
        return await asyncio.shield(asked)

    async def _ask(self, work: Callable[[Bmc], T]) -> T:
        async with self._lock:
            return await asyncio.get_running_loop().run_in_executor(self._threads, work, self._bmc)


def _seen(asked: "asyncio.Future[Any]") -> None:
    """Who was cancelled does not take the error: it is not to be reported as forgotten."""
    if not asked.cancelled():
        asked.exception()


def _image_device(system: Any) -> Any:
    """The device of a machine that images are put into. Raises `BmcFailed`."""
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
