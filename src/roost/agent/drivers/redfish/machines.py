"""Switches machines on and off."""

import asyncio
import time

import msgspec

from roost.agent.drivers.redfish.errors import BmcFailed, BmcSilent, BmcTooSlow
from roost.agent.drivers.redfish.nodes_file import Boot
from roost.agent.drivers.redfish.power_watch import WatchedNode


class PowerTimes(msgspec.Struct, frozen=True, kw_only=True):
    """Times of a machine, in seconds.

    ``grace``: longest time of a graceful shutdown before the power is cut; 0: it is cut at once. ``power``:
    longest time until the machine is on, or off, after the request to the BMC. ``poll``: between two reads of
    the power meanwhile.
    """

    grace: float = 60.0
    power: float = 120.0
    poll: float = 1.0


class Machines:
    """Switches machines on and off and sets their boot source. All methods raise `RedfishError`."""

    def __init__(self, times: PowerTimes) -> None:
        self._times = times

    async def set_boot(self, machine: WatchedNode, boot: Boot, url: str | None) -> None:
        """Set the boot source of the next boot only."""
        await machine.bmc.ask(lambda bmc: bmc.set_boot(machine.node.system, boot, url))

    async def unset_boot(self, machine: WatchedNode, boot: Boot) -> None:
        """Undo `set_boot`: the next boot is the usual one."""
        await machine.bmc.ask(lambda bmc: bmc.unset_boot(machine.node.system, boot))

    async def switch_on(self, machine: WatchedNode) -> None:
        """Switch a machine on, unless it is, and wait until it is on."""
        if await machine.look() is not True:
            machine.was_on = False
            await machine.bmc.ask(lambda bmc: bmc.switch_on(machine.node.system))
            await self._until(machine, True)

    async def switch_off(self, machine: WatchedNode, *, force: bool = False) -> None:
        """Switch a machine off, by force after the grace time, and wait until it is off."""
        if await machine.look() is False:
            return
        if not force and self._times.grace and await self._ends_itself(machine):
            return
        await machine.bmc.ask(lambda bmc: bmc.switch_off(machine.node.system, force=True))
        await self._until(machine, False)

    async def settle(self, machine: WatchedNode) -> None:
        """Wait for the end of an interrupted switching on: the machine is on by then, or never."""
        await self.becomes(machine, True, self._times.power)

    async def becomes(self, machine: WatchedNode, on: bool, seconds: float) -> bool:
        """Return whether the machine is on, or off, within some seconds. A silent BMC is asked again."""
        until = time.monotonic() + seconds
        while True:
            try:
                if await machine.look() is on or (on and machine.was_on):
                    return True
            except BmcFailed as error:
                machine.error = str(error)
            if time.monotonic() >= until:
                return False
            await asyncio.sleep(self._times.poll)

    async def _ends_itself(self, machine: WatchedNode) -> bool:
        try:
            await machine.bmc.ask(lambda bmc: bmc.switch_off(machine.node.system, force=False))
        except BmcSilent:
            raise
        except BmcFailed:
            # Not every machine supports it, and not in every state.
            return False
        return await self.becomes(machine, False, self._times.grace)

    async def _until(self, machine: WatchedNode, on: bool) -> None:
        if not await self.becomes(machine, on, self._times.power):
            last = "" if machine.error is None else f"; {machine.error}"
            word = "on" if on else "off"
            raise BmcTooSlow(f"the machine was not seen {word} within {self._times.power:g} s{last}")
