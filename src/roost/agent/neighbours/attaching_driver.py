"""A driver that attaches guests to neighbours (ports, accelerators) around the calls of another driver."""

import asyncio
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import msgspec
import structlog

from roost.agent.drivers import (
    BUILT,
    Attached,
    Driver,
    Hardware,
    LiveDriver,
    PluggingDriver,
    ResizingDriver,
    SharingDriver,
    ShelvingDriver,
    StoppingDriver,
    fencing_driver,
    live_driver,
    power_off_seconds,
    resizing_driver,
    stopping_driver,
)
from roost.agent.errors import BuildFailed, StateUnusable
from roost.agent.neighbours import Neighbour
from roost.agent.protocol.types import PortsReleased
from roost.agent.provider_tree import ProviderTree
from roost.model.instance import Instance
from roost.model.node import YES
from roost.model.text import error_text
from roost.process.durable_file import replace_file
from roost.web.auth.json_service import ServiceAway

AWAY = "NeighbourAway"
"""The code of builds for which a neighbour did not answer. It may answer another host."""

_FILE = "attached.json"
_log = structlog.get_logger()


class AttachingDriver:
    """A driver, and the neighbours of its host, in the order in which guests are attached to them.

    ``folder``: keeps the list of instances that may be attached: from before the first neighbour is asked
    until the last one has detached. A detach that failed is tried again with every build and every end of a
    guest, and after a start. A `PluggingDriver` gets the ports and devices of its guest. Raises
    `StateUnusable`.
    """

    def __init__(self, driver: Driver, neighbours: Sequence[Neighbour], folder: Path) -> None:
        self._driver = driver
        self._neighbours = neighbours
        self._path = folder / _FILE
        self._attached = _kept(self._path)
        self._left: dict[str, PortsReleased] = {}
        self._early: dict[str, Attached] = {}
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def nodes(self) -> Mapping[str, str] | None:
        return self._driver.nodes()

    def update_provider_tree(
        self, tree: ProviderTree, nodename: str, allocations: dict[str, dict[str, Any]] | None = None
    ) -> None:
        self._driver.update_provider_tree(tree, nodename, allocations)
        traits = [trait for neighbour in self._neighbours for trait in neighbour.traits]
        tree.add_traits(nodename, *traits)

    def metrics(self) -> dict[str, float]:
        return self._driver.metrics()

    def hardware(self) -> Hardware | None:
        return self._driver.hardware()

    def guests(self) -> Mapping[str, int]:
        return self._driver.guests()

    async def recover(self, instances: Collection[Instance]) -> None:
        await self.recover_with_ports(instances)

    async def recover_with_ports(self, instances: Collection[Instance]) -> None:
        await self._driver.recover([each for each in instances if each.state in BUILT])
        guests = self._driver.guests()
        there = {*guests, *(each.uuid for each in instances)}
        # A build that goes on attaches its guest again.
        self._left |= dict.fromkeys(self._attached - there, "host")
        # The folder may be a new one.
        self._keep(self._attached | {each.uuid for each in instances if self._is_wanted(each)})
        await self._detach_left()

    async def prepare(self, instance: Instance) -> None:
        await self._detach_left(but=instance.uuid)
        # The ports of a guest that moves may be those of the guest that still runs on its source.
        now = [each for each in self._neighbours if not _waits_for_ports(instance) or not each.follows]
        attached = await self._attach(instance, now) if self._is_wanted(instance) else Attached()
        self._early[instance.uuid] = attached
        if isinstance(self._driver, PluggingDriver):
            await self._driver.prepare_attached(instance, attached)
        else:
            await self._driver.prepare(instance)

    async def start(self, instance: Instance) -> None:
        early = self._early.get(instance.uuid, Attached())
        late = self._following(instance)
        if _waits_for_ports(instance) and late:
            ports = (await self._attach(instance, late)).ports
            if isinstance(self._driver, PluggingDriver):
                await self._driver.prepare_attached(instance, msgspec.structs.replace(early, ports=ports))
        await self._driver.start(instance)
        self._early.pop(instance.uuid, None)

    @property
    def keeps_disks(self) -> bool:
        return isinstance(self._driver, StoppingDriver) and self._driver.keeps_disks

    @property
    def disk_store(self) -> str | None:
        return self._driver.disk_store if isinstance(self._driver, SharingDriver) else YES

    async def remove_disks(self, instance: str) -> None:
        if isinstance(self._driver, SharingDriver):
            await self._driver.remove_disks(instance)

    @property
    def keeps_shelved(self) -> bool:
        return isinstance(self._driver, ShelvingDriver) and self._driver.keeps_shelved

    @property
    def moves_live(self) -> bool:
        return isinstance(self._driver, LiveDriver) and self._driver.moves_live

    async def receive(self, instance: Instance) -> None:
        await live_driver(self._driver).receive(instance)

    async def migrate(self, instance: str, target: Instance) -> None:
        await live_driver(self._driver).migrate(instance, target)

    async def end_migration(self, instance: str) -> None:
        await live_driver(self._driver).end_migration(instance)

    @property
    def resizes_in_place(self) -> bool:
        return isinstance(self._driver, ResizingDriver) and self._driver.resizes_in_place

    async def prepare_beside(self, instance: Instance, attempt: int) -> None:
        # Nothing with ports or accelerators is resized on its host.
        await resizing_driver(self._driver).prepare_beside(instance, attempt)

    async def destroy_attempt(self, instance: str, attempt: int) -> None:
        await resizing_driver(self._driver).destroy_attempt(instance, attempt)

    async def stop(self, instance: str) -> None:
        await stopping_driver(self._driver).stop(instance)

    @property
    def power_off_seconds(self) -> float | None:
        return power_off_seconds(self._driver)

    async def power_off(self, instance: str) -> None:
        # Ports stay bound: the host on which the guest is started again takes them.
        await fencing_driver(self._driver).power_off(instance)

    async def start_again(self, instance: Instance) -> None:
        await self.start_with_ports(instance, 0)

    async def start_with_ports(self, instance: Instance, over: int) -> None:
        driver = stopping_driver(self._driver)
        if late := self._following(instance):
            await self._attach(instance, late, over)
        await driver.start_again(instance)

    async def destroy(self, instance: str) -> None:
        await self.destroy_with_ports(instance, "host")

    async def destroy_with_ports(self, instance: str, ports: PortsReleased) -> None:
        await self._driver.destroy(instance)
        self._early.pop(instance, None)
        if instance in self._attached or ports == "every":
            self._left[instance] = ports
            await self._detach(instance)
        await self._detach_left()

    def _following(self, instance: Instance) -> list[Neighbour]:
        return [each for each in self._neighbours if each.follows and each.serves(instance)]

    async def _attach(
        self, instance: Instance, neighbours: Sequence[Neighbour], over: int | None = None
    ) -> Attached:
        async with self._lock(instance.uuid):
            self._left.pop(instance.uuid, None)
            self._keep({*self._attached, instance.uuid})
            try:
                parts = [await neighbour.attach(instance, over) for neighbour in neighbours]
            except ServiceAway as error:
                raise BuildFailed(error_text(error), AWAY) from error
        ports = tuple(port for part in parts for port in part.ports)
        return Attached(ports, tuple(device for part in parts for device in part.devices))

    def _is_wanted(self, instance: Instance) -> bool:
        return any(neighbour.serves(instance) for neighbour in self._neighbours)

    def _lock(self, instance: str) -> asyncio.Lock:
        """Return the lock of an instance: its attaching and detaching do not overlap."""
        return self._locks.setdefault(instance, asyncio.Lock())

    async def _detach_left(self, but: str | None = None) -> None:
        """Repeat detaches that failed; one that fails again is tried later."""
        for instance in sorted(self._left.keys() - {but}):
            try:
                await self._detach(instance)
            except Exception as error:
                values = {"instance": instance, "error": error_text(error)}
                _log.warning("what a guest was attached to cannot be freed now", **values)
                break

    async def _detach(self, instance: str) -> None:
        async with self._lock(instance):
            ports = self._left.get(instance)
            if ports is None:
                return
            for neighbour in reversed(self._neighbours):
                await neighbour.detach(instance, ports)
            self._left.pop(instance, None)
            if ports != "none":
                # Ports that stay go with the instance later, also if no guest of it is built here again.
                self._keep(self._attached - {instance})

    def _keep(self, attached: set[str]) -> None:
        if attached == self._attached:
            return
        try:
            replace_file(self._path, msgspec.json.encode(sorted(attached)))
        except OSError as error:
            raise StateUnusable(f"{self._path}: {error}") from error
        self._attached = attached


def _waits_for_ports(instance: Instance) -> bool:
    """Return whether a build leaves the ports to the source of a move until it starts its guest."""
    return instance.move is not None and instance.starts


def _kept(path: Path) -> set[str]:
    try:
        return set(msgspec.json.decode(path.read_bytes(), type=list[str]))
    except FileNotFoundError:
        return set()
    except (OSError, msgspec.MsgspecError) as error:
        raise StateUnusable(f"{path}: {error}") from error
