"""Cleans machines after their instances: each boots an image that switches it off when it is done.

A cleaning that the end of the agent has interrupted begins anew. After a failed one the node stays reserved
until an operator decides.
"""

import asyncio

import structlog

from roost.agent.drivers.redfish.book import Book, Entry
from roost.agent.drivers.redfish.errors import BmcTooSlow, RedfishError
from roost.agent.drivers.redfish.machines import Machines
from roost.agent.drivers.redfish.power_watch import WatchedNode
from roost.agent.errors import StateUnusable

_log = structlog.get_logger()


class Cleaner:
    """Cleans the machines that the book has in ``cleaning``, each in a task of its own."""

    def __init__(self, book: Book, machines: Machines) -> None:
        self._book = book
        self._machines = machines
        self._tasks: dict[str, asyncio.Task[None]] = {}

    def begin(self, machine: WatchedNode, instance: str, attempt: int) -> None:
        """Begin to clean a machine, which is off; it is free at once if no cleaning is configured.

        Raises `StateUnusable`.
        """
        node = machine.node
        if node.cleaning.boot is None:
            self._book.remove(node.uuid)
            return
        self._book.put(node.uuid, Entry("cleaning", instance, attempt))
        self.go_on(machine)

    def go_on(self, machine: WatchedNode) -> None:
        """Clean a machine that the book has in ``cleaning``, unless its task runs."""
        node = machine.node.uuid
        if node not in self._tasks:
            task = self._tasks[node] = asyncio.create_task(self._clean(machine))
            task.add_done_callback(lambda _: self._tasks.pop(node))

    async def wait(self, machine: WatchedNode, instance: str) -> None:
        """Wait for the end of the cleaning of a machine after an instance, if it is under way."""
        node = machine.node.uuid
        entry = self._book[node]
        if entry is not None and (entry.phase, entry.instance) == ("cleaning", instance):
            self.go_on(machine)
            await asyncio.wait([self._tasks[node]])

    async def _clean(self, machine: WatchedNode) -> None:
        node = machine.node
        entry = self._book[node.uuid]
        if entry is None or entry.phase != "cleaning":
            return
        try:
            await self._boot_image(machine)
        except RedfishError as error:
            reason = str(error)
        else:
            reason = ""
        try:
            # Also if the image was late: it must not run on unobserved.
            await self._machines.switch_off(machine, force=True)
            if node.cleaning.boot is not None:
                await self._machines.unset_boot(machine, node.cleaning.boot)
        except RedfishError as error:
            reason = reason or str(error)
        try:
            if reason:
                _log.error("a node was not cleaned and stays reserved", node=node.entry.name, error=reason)
                self._book.put(node.uuid, Entry("uncleaned", entry.instance, entry.attempt, reason))
            else:
                self._book.remove(node.uuid)
        except StateUnusable as error:
            # The node stays in ``cleaning``, and is cleaned again.
            _log.error("the end of a cleaning cannot be kept", node=node.entry.name, error=str(error))

    async def _boot_image(self, machine: WatchedNode) -> None:
        cleaning = machine.node.cleaning
        if cleaning.boot is None:
            # The file of nodes has changed since the cleaning began.
            return
        await self._machines.switch_off(machine, force=True)
        await self._machines.set_boot(machine, cleaning.boot, cleaning.boot.url_for(machine.node.uuid))
        await self._machines.switch_on(machine)
        if not await self._machines.becomes(machine, False, cleaning.seconds):
            raise BmcTooSlow(f"the image did not switch the machine off within {cleaning.seconds:g} s")
