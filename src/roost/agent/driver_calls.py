"""The driver of a host as its agent calls it, and the service that passes the calls to a `Driver`."""

import asyncio
from collections.abc import Collection, Coroutine
from typing import Any, Protocol

from roost.agent.drivers import (
    BUILT,
    CapableDriver,
    Driver,
    Hardware,
    LiveDriver,
    PortDriver,
    ResizingDriver,
    SharingDriver,
    ShelvingDriver,
    StoppingDriver,
    fencing_driver,
    live_driver,
    resizing_driver,
    stopping_driver,
)
from roost.agent.errors import BuildEnded, BuildFailed, NotMigrated
from roost.agent.protocol.types import PortsReleased
from roost.agent.provider_config import ProviderConfig
from roost.agent.provider_tree import ProviderTree
from roost.model.instance import Instance
from roost.model.node import YES
from roost.model.vocabulary import NODE_TRAIT

ConsumerRecords = dict[str, dict[str, Any]]
"""Allocations by consumer, each in the form of ``GET /allocations/{consumer}``."""


class DriverCalls(Protocol):
    """The driver of a host, as its agent calls it. Each call raises what the driver raises."""

    async def fill_tree(self, tree: ProviderTree, node: str) -> ProviderTree:
        """Have the driver change the tree of a node, which begins as placement has it. Returns the tree.

        Raises `ReshapeNeeded`.
        """

    async def reshape_tree(
        self, tree: ProviderTree, node: str, allocations: ConsumerRecords
    ) -> tuple[ProviderTree, ConsumerRecords]:
        """Have the driver change the tree of a node and its consumers' allocations. Returns both.

        Raises `ReshapeRefused`.
        """

    async def nodes(self) -> dict[str, str] | None:
        """Return the root provider of each node by the node's name; None if the host is its only node."""

    async def guests(self) -> dict[str, int]:
        """Return the guests that run on the host: instance -> attempt."""

    async def metrics(self) -> dict[str, float]:
        """Return named numbers for the metrics weigher."""

    async def hardware(self) -> Hardware | None:
        """Return the NUMA cells and PCI devices of the host; None if the driver reports none."""

    async def disk_store(self) -> str | None:
        """Return the store of disks, on all hosts of which a guest finds its own; None: there is none."""

    async def keeps_shelved(self) -> bool:
        """Return whether the disks of guests that are shelved stay in their store."""

    async def moves_live(self) -> bool:
        """Return whether guests can move to other hosts while they run."""

    async def recover(self, instances: Collection[Instance]) -> None:
        """Tell the driver after a start of the agent which instances the cell has on the host.

        Those that are lost, being rebuilt or moving have ports, and may have no guest.
        """

    async def resizes_in_place(self) -> bool:
        """Return whether the driver keeps two sizes of a guest."""

    async def prepare(self, instance: Instance, beside: int | None = None) -> None:
        """Prepare a guest up to its start. ``beside``: the attempt whose stopped guest stays.

        Raises `BuildFailed`, `BuildEnded`.
        """

    async def start(self, instance: Instance) -> None:
        """Start a guest that is prepared. Raises `BuildFailed`, `BuildEnded`."""

    async def destroy(self, instance: str, ports: PortsReleased = "host", attempt: int | None = None) -> None:
        """Remove every trace of an instance. ``ports``: those that it loses. ``attempt``: of this one alone.

        A prepare or start of it that is under way ends first (`BuildEnded`).
        """

    async def remove_disks(self, instance: str) -> None:
        """Remove the disks of an instance that has ended, if hosts share them."""

    async def stop(self, instance: str) -> None:
        """Stop the guest of an instance. Raises `CannotStopGuests`, `NoSuchGuest`."""

    async def power_off(self, instance: str) -> None:
        """Stop the guest of an instance at once, without anything from outside the host. Raises
        `CannotStopGuests`, `NoSuchGuest`."""

    async def start_again(self, instance: Instance, over: int = 0) -> None:
        """Start the stopped guest of an instance. ``over``: see `StartGuest`.

        Raises `CannotStopGuests`, `BuildFailed`, `NoSuchGuest`.
        """

    async def receive(self, instance: Instance) -> None:
        """Prepare for a guest that runs on another host. Raises `BuildFailed`, `BuildEnded`."""

    async def migrate(self, instance: str, target: Instance) -> None:
        """Have a running guest go to the host of ``target``. Raises `NotMigrated`."""

    async def end_migration(self, instance: str) -> None:
        """End the migration of a guest that is under way."""


class DriverService:
    """Passes the calls to a driver, and ends builds whose instances are destroyed."""

    def __init__(self, driver: Driver, config: ProviderConfig | None = None) -> None:
        """``config``: inventories and traits that operators add to those of the driver."""
        self._driver = driver
        self._config = config or ProviderConfig()
        self._building: dict[str, asyncio.Task[None]] = {}

    async def fill_tree(self, tree: ProviderTree, node: str) -> ProviderTree:
        """Have the driver change the tree of a node."""
        self._driver.update_provider_tree(tree, node)
        return self._completed(tree, node)

    async def reshape_tree(
        self, tree: ProviderTree, node: str, allocations: ConsumerRecords
    ) -> tuple[ProviderTree, ConsumerRecords]:
        """Have the driver change the tree of a node and its consumers' allocations."""
        self._driver.update_provider_tree(tree, node, allocations)
        return self._completed(tree, node), allocations

    async def nodes(self) -> dict[str, str] | None:
        """Return the root provider of each node."""
        nodes = self._driver.nodes()
        return None if nodes is None else dict(nodes)

    async def guests(self) -> dict[str, int]:
        """Return the guests that run on the host."""
        return dict(self._driver.guests())

    async def metrics(self) -> dict[str, float]:
        """Return named numbers for the metrics weigher."""
        return dict(self._driver.metrics())

    async def hardware(self) -> Hardware | None:
        """Return the NUMA cells and PCI devices of the host."""
        return self._driver.hardware()

    async def disk_store(self) -> str | None:
        """Return the store of disks, on all hosts of which a guest finds its own."""
        driver = self._driver
        if not isinstance(driver, StoppingDriver) or not driver.keeps_disks:
            return None
        return driver.disk_store if isinstance(driver, SharingDriver) else YES

    async def keeps_shelved(self) -> bool:
        """Return whether the disks of guests that are shelved stay in their store."""
        return isinstance(self._driver, ShelvingDriver) and self._driver.keeps_shelved

    async def moves_live(self) -> bool:
        """Return whether guests can move to other hosts while they run."""
        return isinstance(self._driver, LiveDriver) and self._driver.moves_live

    async def recover(self, instances: Collection[Instance]) -> None:
        """Tell the driver which instances the cell has on the host."""
        if isinstance(self._driver, PortDriver):
            await self._driver.recover_with_ports(instances)
        else:
            await self._driver.recover([each for each in instances if each.state in BUILT])

    async def resizes_in_place(self) -> bool:
        """Return whether the driver keeps two sizes of a guest."""
        return isinstance(self._driver, ResizingDriver) and self._driver.resizes_in_place

    async def prepare(self, instance: Instance, beside: int | None = None) -> None:
        """Prepare a guest up to its start."""
        if beside is None:
            await self._check_disks(instance)
            await self._build(instance.uuid, self._driver.prepare(instance))
        else:
            driver = resizing_driver(self._driver)
            await self._build(instance.uuid, driver.prepare_beside(instance, beside))

    async def start(self, instance: Instance) -> None:
        """Start a guest that is prepared."""
        await self._build(instance.uuid, self._driver.start(instance))

    def _completed(self, tree: ProviderTree, node: str) -> ProviderTree:
        """Add a compute node's trait, the driver's capabilities and the operators' configuration to a tree.

        Source: ``_get_traits`` of Nova's ``compute/resource_tracker.py``.
        """
        tree.add_traits(node, NODE_TRAIT)
        if isinstance(self._driver, CapableDriver):
            capabilities = self._driver.capabilities()
            tree.add_traits(node, *(trait for trait, can in capabilities.items() if can))
            tree.remove_traits(node, *(trait for trait, can in capabilities.items() if not can))
        self._config.apply(tree, node)
        return tree

    async def _check_disks(self, instance: Instance) -> None:
        """Refuse an instance whose disks a driver that makes them anew would not find."""
        if instance.finds_disks and await self.disk_store() is None:
            raise BuildFailed("the driver of the host does not keep the disks of guests that move")

    async def _build(self, instance: str, work: Coroutine[Any, Any, None]) -> None:
        task = self._building[instance] = asyncio.create_task(work)
        # Removed only at its end: a cancelled driver may take time to clean up, and `destroy` waits for it.
        task.add_done_callback(lambda _: self._ended(instance, task))
        try:
            await asyncio.wait([task])
        finally:
            # Reached also when the time for the build is over, or when the agent ends.
            _end(task)
        if task.cancelled():
            raise BuildEnded("the build was ended")
        task.result()

    def _ended(self, instance: str, task: asyncio.Task[None]) -> None:
        if self._building.get(instance) is task:
            del self._building[instance]

    async def destroy(self, instance: str, ports: PortsReleased = "host", attempt: int | None = None) -> None:
        """End the build of an instance, and remove every trace of it."""
        if (task := self._building.get(instance)) is not None:
            _end(task)
            await asyncio.wait([task])
        if attempt is not None:
            await resizing_driver(self._driver).destroy_attempt(instance, attempt)
        elif isinstance(self._driver, PortDriver):
            await self._driver.destroy_with_ports(instance, ports)
        else:
            await self._driver.destroy(instance)

    async def remove_disks(self, instance: str) -> None:
        """Remove the disks of an instance that has ended, if hosts share them."""
        if isinstance(self._driver, SharingDriver):
            await self._driver.remove_disks(instance)

    async def stop(self, instance: str) -> None:
        """Stop the guest of an instance."""
        await stopping_driver(self._driver).stop(instance)

    async def power_off(self, instance: str) -> None:
        """Stop the guest of an instance at once."""
        await fencing_driver(self._driver).power_off(instance)

    async def start_again(self, instance: Instance, over: int = 0) -> None:
        """Start the stopped guest of an instance."""
        if isinstance(self._driver, PortDriver):
            await self._driver.start_with_ports(instance, over)
        else:
            await stopping_driver(self._driver).start_again(instance)

    async def receive(self, instance: Instance) -> None:
        """Prepare for a guest that runs on another host."""
        await self._check_disks(instance)
        try:
            driver = live_driver(self._driver)
        except NotMigrated as error:
            raise BuildFailed(str(error)) from error
        await self._build(instance.uuid, driver.receive(instance))

    async def migrate(self, instance: str, target: Instance) -> None:
        """Have a running guest go to the host of ``target``."""
        await live_driver(self._driver).migrate(instance, target)

    async def end_migration(self, instance: str) -> None:
        """End the migration of a guest that is under way."""
        await live_driver(self._driver).end_migration(instance)


def _end(task: asyncio.Task[None]) -> None:
    """Cancel a task once: a second time would interrupt what it cleans up."""
    if not task.cancelling():
        task.cancel()
