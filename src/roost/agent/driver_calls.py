"""Calls of a host's machine to its driver, and the service that carries them out by a `Driver`."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from roost.agent.drivers import CapableDriver, Driver
from roost.agent.errors import BuildEnded
from roost.agent.hardware import Hardware
from roost.agent.provider_config import ProviderConfig
from roost.agent.provider_tree import ProviderTree
from roost.model.instance import Instance
from roost.model.vocabulary import NODE_TRAIT
from roost.process.context import Call, UnknownService

T = TypeVar("T")


class FillTree(Call[ProviderTree], frozen=True):
    """Have the driver change the tree of a node, which begins as placement has it. Answers the tree.

    Raises `ReshapeNeeded`.
    """

    tree: ProviderTree
    node: str


ConsumerRecords = dict[str, dict[str, Any]]
"""Allocations by consumer, each in the form of ``GET /allocations/{consumer}``."""


class ReshapeTree(Call[tuple[ProviderTree, ConsumerRecords]], frozen=True):
    """Have the driver change the tree of a node and its consumers' allocations. Answers both.

    Raises `ReshapeRefused`.
    """

    tree: ProviderTree
    node: str
    allocations: ConsumerRecords


class ListNodes(Call[dict[str, str] | None], frozen=True):
    """The root provider of each node of the host, by the node's name; None if the host is its only node."""


class Guests(Call[dict[str, int]], frozen=True):
    """The guests that run on the host: instance -> attempt."""


class ReadMetrics(Call[dict[str, float]], frozen=True):
    """Named numbers for the metrics weigher."""


class ReadHardware(Call[Hardware | None], frozen=True):
    """The NUMA cells and PCI devices of the host; None if the driver reports none."""


class Recover(Call[None], frozen=True):
    """Tell the driver after a start of the agent which instances the cell has on the host."""

    instances: tuple[Instance, ...]


class Prepare(Call[None], frozen=True):
    """Prepare a guest up to its start. Raises `BuildFailed`, `BuildEnded`."""

    instance: Instance


class StartGuest(Call[None], frozen=True):
    """Start a guest that is prepared. Raises `BuildFailed`, `BuildEnded`."""

    instance: Instance


class DestroyGuest(Call[None], frozen=True):
    """Remove every trace of an instance.

    A prepare or start of it that is under way ends first (`BuildEnded`).
    """

    instance: str


class DriverService:
    """Answers the questions about one host by calling its driver."""

    def __init__(self, driver: Driver, config: ProviderConfig | None = None) -> None:
        """``config``: inventories and traits that operators add to those of the driver."""
        self._driver = driver
        self._config = config or ProviderConfig()
        self._building: dict[str, asyncio.Task[None]] = {}

    async def ask(self, question: Call[Any]) -> Any:
        """Return the answer. Raises what the driver raises, and `UnknownService` for another question."""
        match question:
            case FillTree(tree, node):
                self._driver.update_provider_tree(tree, node)
                return self._completed(tree, node)
            case ReshapeTree(tree, node, allocations):
                self._driver.update_provider_tree(tree, node, allocations)
                return self._completed(tree, node), allocations
            case ListNodes():
                nodes = self._driver.nodes()
                return None if nodes is None else dict(nodes)
            case Guests():
                return dict(self._driver.guests())
            case ReadMetrics():
                return dict(self._driver.metrics())
            case ReadHardware():
                return self._driver.hardware()
            case Recover(instances):
                return await self._driver.recover(instances)
            case Prepare(instance):
                return await self._build(instance.uuid, self._driver.prepare(instance))
            case StartGuest(instance):
                return await self._build(instance.uuid, self._driver.start(instance))
            case DestroyGuest(instance):
                return await self._destroy(instance)
        raise UnknownService(f"a driver does not answer {type(question).__name__}")

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

    async def _build(self, instance: str, work: Coroutine[Any, Any, None]) -> None:
        task = self._building[instance] = asyncio.create_task(work)
        # Removed only at its end: a cancelled driver may take time to clean up, and `_destroy` waits for it.
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

    async def _destroy(self, instance: str) -> None:
        if (task := self._building.get(instance)) is not None:
            _end(task)
            await asyncio.wait([task])
        await self._driver.destroy(instance)


def _end(task: asyncio.Task[None]) -> None:
    """Cancel a task once: a second time would interrupt what it cleans up."""
    if not task.cancelling():
        task.cancel()
