"""Switches machines on and off."""

import asyncio
import time

import msgspec

from roost.agent.drivers.redfish.errors import BmcFailed, BmcSilent, TooSlow
from roost.agent.drivers.redfish.nodes_file import Boot
from roost.agent.drivers.redfish.power_watch import Watched


class PowerTimes(msgspec.Struct, frozen=True, kw_only=True):
    """Times of a machine, in seconds.

    ``grace``: how long its system may take to end before its power is taken; 0 takes it at once. ``power``:
    until it is seen on, or off, after the BMC was asked. ``poll``: between two looks meanwhile.
    """

    grace: float = 60.0
    power: float = 120.0
    poll: float = 1.0


class Machines:
    """What can be done with a machine. Everything raises `RedfishError`."""

    def __init__(self, times: PowerTimes) -> None:
        self._times = times

    async def set_boot(self, machine: Watched, boot: Boot, url: str | None) -> None:
        """Have the next boot, and that alone, come from somewhere."""
        await machine.line.ask(lambda bmc: bmc.set_boot(machine.node.system, boot, url))

    async def unset_boot(self, machine: Watched, boot: Boot) -> None:
        """Have the next boot come from where it usually does."""
        await machine.line.ask(lambda bmc: bmc.unset_boot(machine.node.system, boot))

    async def switch_on(self, machine: Watched) -> None:
        """Switch on, and wait until the machine is seen on, by whom ever."""
        if await machine.look() is not True:
            machine.was_on = False
            await machine.line.ask(lambda bmc: bmc.switch_on(machine.node.system))
            await self._until(machine, True)

    async def switch_off(self, machine: Watched, *, force: bool = False) -> None:
        """Switch off, after the time of grace by force, and wait until the machine is seen off."""
        if await machine.look() is False:
            return
        if not force and self._times.grace and await self._ends_itself(machine):
            return
        await machine.line.ask(lambda bmc: bmc.switch_off(machine.node.system, force=True))
        await self._until(machine, False)

    async def settle(self, machine: Watched) -> None:
        """Wait for a switching on whose end nobody saw: the machine is on by then, or never."""
        await self.becomes(machine, True, self._times.power)

    async def becomes(self, machine: Watched, on: bool, seconds: float) -> bool:
        """Whether the machine is seen on, or off, within some seconds. A BMC that is silent meanwhile is
        asked again."""
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

    async def _ends_itself(self, machine: Watched) -> bool:
        try:
            await machine.line.ask(lambda bmc: bmc.switch_off(machine.node.system, force=False))
        except BmcSilent:
            raise
        except BmcFailed:
            # Not every machine can, and not in every state.
            return False
        return await self.becomes(machine, False, self._times.grace)

    async def _until(self, machine: Watched, on: bool) -> None:
        if not await self.becomes(machine, on, self._times.power):
            last = "" if machine.error is None else f"; {machine.error}"
            word = "on" if on else "off"
            raise TooSlow(f"the machine was not seen {word} within {self._times.power:g} s{last}")
