"""The driver of a host whose nodes are bare metal machines behind BMCs."""

import asyncio
from collections.abc import Collection, Mapping
from pathlib import Path

import msgspec
import structlog

from roost.agent.drivers import Hardware
from roost.agent.drivers.redfish.book import CARRYING, Book, Entry, Phase
from roost.agent.drivers.redfish.cleaning import Cleaner
from roost.agent.drivers.redfish.errors import RedfishError
from roost.agent.drivers.redfish.machines import Machines, PowerTimes
from roost.agent.drivers.redfish.node_statuses import statuses, why_not
from roost.agent.drivers.redfish.power_watch import Rack, WatchedNode
from roost.agent.drivers.redfish.words import NodeStatuses, take_orders, write_statuses
from roost.agent.errors import BuildFailed, NoSuchGuest, StateUnusable
from roost.agent.provider_tree import ProviderTree
from roost.model.errors import OperatorError
from roost.model.instance import Instance
from roost.model.inventory import Inventory

TAKEN = "NodeTaken"
"""The code of builds on a node that is not free."""
BMC = "BmcFailed"
"""The code of builds whose BMC failed."""

_log = structlog.get_logger()


class RedfishDriver:
    """The driver of one host.

    ``folder``: the folder of its book. ``look_seconds``: seconds between two reads of all nodes' power.
    ``first_seconds``: longest wait of a start for the first read. Raises `StateUnusable`, and `OperatorError`
    if the book has an instance on a node that the file does not name.
    """

    def __init__(
        self, rack: Rack, folder: Path, times: PowerTimes, *, look_seconds: float, first_seconds: float
    ) -> None:
        self._rack = rack
        self._folder = folder
        self._book = Book(folder / "book")
        self._machines = Machines(times)
        self._cleaner = Cleaner(self._book, self._machines)
        self._look_seconds = look_seconds
        self._first_seconds = first_seconds
        self._written: NodeStatuses | None = None
        self._watching: asyncio.Task[None] | None = None
        for node, entry in self._book.entries.items():
            if entry.phase in CARRYING and node not in rack.nodes:
                raise OperatorError(
                    f"node {node} has instance {entry.instance}, and the file of nodes does not name it"
                )

    def nodes(self) -> Mapping[str, str] | None:
        return {node: node for node in self._rack.nodes}

    def update_provider_tree(
        self, tree: ProviderTree, nodename: str, allocations: Mapping[str, object] | None = None
    ) -> None:
        machine = self._rack.nodes[nodename]
        entry = machine.node.entry
        reserved = 0 if why_not(machine, self._book[nodename]) is None else 1
        tree.update_inventory(nodename, {entry.resource_class: Inventory(1, reserved=reserved, max_unit=1)})
        tree.update_traits(nodename, entry.traits)

    def metrics(self) -> dict[str, float]:
        return {}

    def hardware(self) -> Hardware | None:
        return None

    def guests(self) -> Mapping[str, int]:
        # A guest whose machine somebody switched off is still there, with its disks and its claim. One that
        # was stopped runs if somebody has switched its machine on.
        return {
            entry.instance: entry.attempt
            for node, entry in self._book.entries.items()
            if entry.phase in ("running", "ending")
            or (entry.phase == "stopped" and node in self._rack.nodes and self._rack.nodes[node].on)
        }

    async def recover(self, instances: Collection[Instance]) -> None:
        if self._watching is None:
            first = asyncio.Event()
            self._watching = asyncio.create_task(self._watch(first))
            try:
                async with asyncio.timeout(self._first_seconds):
                    await first.wait()
            except TimeoutError:
                # Some BMC is silent. Its nodes are reserved until their power is known.
                _log.warning("the first look at the nodes takes long", seconds=self._first_seconds)
        for node, entry in dict(self._book.entries).items():
            if entry.phase == "starting" and self._rack.nodes[node].on:
                # Switched on before the end of the agent, which had no time to record it.
                self._book.put(node, msgspec.structs.replace(entry, phase="running"))

    async def prepare(self, instance: Instance) -> None:
        machine = self._rack.nodes.get(instance.node or "")
        if machine is None:
            raise BuildFailed(f"this host has no node {instance.node}")
        try:
            await self._end_others(instance)
            # An instance that is rebuilt has the machine again once that is clean.
            await self._cleaner.wait(machine, instance.uuid)
            if await self._take(machine, instance):
                image = None if instance.spec is None else instance.spec.image
                boot, node = machine.node.boot, machine.node.uuid
                url = boot.url_for(node, instance.uuid, (image and image.id) or "")
                await self._machines.set_boot(machine, boot, url)
        except RedfishError as error:
            raise BuildFailed(f"node {machine.node.entry.name}: {error}", BMC) from error

    async def start(self, instance: Instance) -> None:
        machine = self._rack.nodes[instance.node or ""]
        if self._phase_of(machine, instance) != "running":
            await self._switch_on(machine, instance)

    async def _switch_on(self, machine: WatchedNode, instance: Instance) -> None:
        """Switch a machine on for an attempt that has it. Raises `BuildFailed`, `StateUnusable`."""
        node = machine.node.uuid
        # Before the BMC is asked, so that a machine found on later has a known instance.
        self._book.put(node, Entry("starting", instance.uuid, instance.attempt))
        try:
            await self._machines.switch_on(machine)
        except RedfishError as error:
            raise BuildFailed(f"node {machine.node.entry.name}: {error}", BMC) from error
        self._book.put(node, Entry("running", instance.uuid, instance.attempt))

    @property
    def keeps_disks(self) -> bool:
        # They are in the machine.
        return False

    async def stop(self, instance: str) -> None:
        found = self._book.nodes_of(instance)
        if not found:
            raise NoSuchGuest(f"no node of this host has instance {instance}")
        for node in found:
            entry, machine = self._book[node], self._rack.nodes[node]
            if entry is None or entry.phase == "ending":
                continue
            try:
                if entry.phase == "starting" and await machine.look() is not True:
                    # The BMC may still switch it on: that must not happen after the stop.
                    await self._machines.settle(machine)
                if entry.phase != "building":
                    await self._machines.switch_off(machine)
            except RedfishError as error:
                raise BuildFailed(f"node {machine.node.entry.name}: {error}", BMC) from error
            self._book.put(node, msgspec.structs.replace(entry, phase="stopped"))

    async def start_again(self, instance: Instance) -> None:
        machine = self._rack.nodes.get(instance.node or "")
        if machine is None or self._phase_of(machine, instance) not in ("starting", "running", "stopped"):
            raise NoSuchGuest(f"no node of this host has attempt {instance.attempt} of {instance.uuid}")
        await self._switch_on(machine, instance)

    async def destroy(self, instance: str) -> None:
        for node in self._book.nodes_of(instance):
            await self._end(self._rack.nodes[node])

    def _phase_of(self, machine: WatchedNode, instance: Instance) -> Phase | None:
        """Return the phase of this attempt on a machine; None if the book has no such attempt there."""
        entry = self._book[machine.node.uuid]
        ours = entry is not None and (entry.instance, entry.attempt) == (instance.uuid, instance.attempt)
        return entry.phase if ours and entry is not None else None

    async def _take(self, machine: WatchedNode, instance: Instance) -> bool:
        """Take a machine for an attempt, unless it may have been switched on for it already.

        Returns whether it is off and must be prepared. Raises `BuildFailed`, `RedfishError`, `StateUnusable`.
        """
        phase = self._phase_of(machine, instance)
        if phase in ("starting", "running"):
            return False
        # A machine that is on before it was switched on is used by somebody else.
        await machine.look()
        node = machine.node.uuid
        reason = why_not(machine, None if phase == "building" else self._book[node])
        if reason is None:
            self._book.put(node, Entry("building", instance.uuid, instance.attempt))
            return True
        if phase == "building":
            self._book.remove(node)
        raise BuildFailed(f"node {machine.node.entry.name}: {reason}", TAKEN)

    async def _end_others(self, instance: Instance) -> None:
        """End earlier attempts at the instance: the build outranks their orders to destroy."""
        for node in self._book.nodes_of(instance.uuid):
            entry = self._book[node]
            if entry is not None and entry.attempt > instance.attempt:
                raise BuildFailed(f"attempt {entry.attempt} is on node {node}", TAKEN)
            if entry is not None and entry.attempt < instance.attempt:
                await self._end(self._rack.nodes[node])

    async def _end(self, machine: WatchedNode) -> None:
        """Take a machine from its instance. A machine that was never switched on for it is not switched off.

        May be interrupted and repeated. Raises `RedfishError`, `StateUnusable`.
        """
        node = machine.node.uuid
        entry = self._book[node]
        if entry is None or entry.phase not in CARRYING:
            return
        if entry.phase == "building":
            try:
                await self._machines.unset_boot(machine, machine.node.boot)
            except RedfishError as error:
                # The machine was never switched on, and the next build sets its own boot.
                _log.warning("the boot of a node could not be set back", node=node, error=str(error))
            self._book.remove(node)
            return
        if entry.phase == "starting" and await machine.look() is not True:
            # The BMC may still switch it on: that must not happen after the end.
            await self._machines.settle(machine)
        self._book.put(node, msgspec.structs.replace(entry, phase="ending"))
        await self._machines.switch_off(machine)
        await self._machines.unset_boot(machine, machine.node.boot)
        self._cleaner.begin(machine, entry.instance, entry.attempt)

    # The loop

    async def _watch(self, first: asyncio.Event) -> None:
        while True:
            await self._rack.look()
            first.set()
            try:
                self._take_orders()
                self._clean_all()
                self._write_statuses()
            except (OSError, StateUnusable) as error:
                # A disk that is full for a while ends no host.
                _log.error(
                    "the state of the nodes cannot be kept", folder=str(self._folder), error=str(error)
                )
            await asyncio.sleep(self._look_seconds)

    def _clean_all(self) -> None:
        for node, entry in self._book.entries.items():
            machine = self._rack.nodes.get(node)
            if entry.phase == "cleaning" and machine is not None:
                self._cleaner.go_on(machine)

    def _take_orders(self) -> None:
        for node, order in take_orders(self._folder):
            entry, machine = self._book[node], self._rack.nodes.get(node)
            if entry is None or machine is None or entry.phase != "uncleaned":
                _log.warning("a word of an operator has no meaning any more", node=node, word=order)
            elif order == "clean":
                self._book.put(node, Entry("cleaning", entry.instance, entry.attempt))
            else:
                self._book.remove(node)

    def _write_statuses(self) -> None:
        current = NodeStatuses(statuses(self._rack, self._book))
        if current != self._written:
            write_statuses(self._folder, current)
            self._written = current
