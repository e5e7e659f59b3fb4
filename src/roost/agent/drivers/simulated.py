"""The driver of a simulated host: its inventory, build time and failures follow a script.

Failures are drawn from the script's seed, the host, the instance and the attempt, so that runs with the same
seed fail in the same places, regardless of timing. Guests are files: they outlive the agent, as a hypervisor
does, and stopped ones stay stopped.
"""

import asyncio
import hashlib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import msgspec

from roost.agent.drivers import Hardware, assignment_of
from roost.agent.drivers.simulated_migrations import LiveScript, Migrations, SimulatedNetwork
from roost.agent.drivers.simulated_reshape import Shape, leftover, move, needs_reshape
from roost.agent.drivers.used_hardware import free_pools, used_topology
from roost.agent.errors import (
    BuildFailed,
    CannotStopGuests,
    NoSuchGuest,
    NotMigrated,
    ReshapeNeeded,
    StateUnusable,
)
from roost.agent.provider_tree import ProviderTree
from roost.model.assignment import Assignment, clashes
from roost.model.instance import POWERING_ON, STOPPED, Instance
from roost.model.inventory import Inventory
from roost.model.names import provider_uuid
from roost.model.vocabulary import SHARING_TRAIT


class KeptGuest(msgspec.Struct, frozen=True, omit_defaults=True):
    """A guest that was started: its attempt, its assigned hardware, and whether it runs or is stopped.

    ``beside``: a guest of another size that is kept with it; ``move``: the consumer that holds its hardware.
    """

    attempt: int
    assignment: Assignment | None = None
    runs: bool = True
    beside: "KeptGuest | None" = None
    move: str = ""


class GuestFiles:
    """A folder with one file for each guest that was started, named by the instance."""

    def __init__(self, folder: Path) -> None:
        """Make the folder if need be. Raises `StateUnusable`."""
        self._folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StateUnusable(f"the folder of guests {folder} cannot be used: {error}") from error

    def load(self) -> dict[str, KeptGuest]:
        """Return all guests, by instance. Raises `StateUnusable`."""
        try:
            return {
                path.name: msgspec.json.decode(path.read_bytes(), type=KeptGuest)
                for path in self._folder.iterdir()
                if path.suffix != ".new"
            }
        except (OSError, msgspec.MsgspecError) as error:
            raise StateUnusable(f"the guests in {self._folder} cannot be read: {error}") from error

    def keep(self, instance: str, guest: KeptGuest) -> None:
        """Keep a guest as it is now. Raises OSError."""
        # Replaced as a whole. It need not be durable: no guest outlives its machine.
        fresh = self._folder / f"{instance}.new"
        fresh.write_bytes(msgspec.json.encode(guest))
        fresh.replace(self._folder / instance)

    def destroyed(self, instance: str) -> None:
        """Remove a guest. Raises OSError."""
        (self._folder / instance).unlink(missing_ok=True)


class SimulatedProvider(msgspec.Struct, frozen=True):
    """A provider below the host's root, named ``<host>-<suffix>``.

    ``parent``: the suffix of its parent provider; empty: the root.
    """

    suffix: str
    inventory: dict[str, Inventory]
    traits: tuple[str, ...] = ()
    parent: str = ""


class SimulatedNodes(msgspec.Struct, frozen=True):
    """Equal nodes, each with a root provider that is named by its uuid."""

    count: int
    inventory: dict[str, Inventory]
    traits: tuple[str, ...] = ()


class SimulatedPool(msgspec.Struct, frozen=True):
    """A sharing provider, such as storage, of all hosts with the same ``aggregate``, a uuid."""

    name: str
    aggregate: str
    inventory: dict[str, Inventory]
    traits: tuple[str, ...] = ()


class SimulatedHost(msgspec.Struct, frozen=True):
    """The providers, hardware and metrics of a simulated host.

    ``numa_topology`` and ``pci_device_pools`` are the objects of the empty host in Nova's names, as plain
    data: see `roost.agent.drivers.Hardware`. A host with ``nodes`` has these and nothing else.
    """

    name: str
    inventory: dict[str, Inventory]
    children: tuple[SimulatedProvider, ...] = ()
    traits: tuple[str, ...] = ()
    aggregates: tuple[str, ...] = ()
    metrics: dict[str, float] = {}
    numa_topology: dict[str, object] | None = None
    pci_device_pools: tuple[dict[str, object], ...] = ()
    nodes: tuple[SimulatedNodes, ...] = ()
    pools: tuple[SimulatedPool, ...] = ()


class FailureRule(msgspec.Struct, frozen=True):
    """A share of builds (0..1) that fail, with the reason; on all hosts, or on the named ones."""

    rate: float
    reason: str = "No more IP addresses available on network"
    hosts: frozenset[str] | None = None


class Script(msgspec.Struct, frozen=True):
    """The behaviour of simulated hosts.

    ``build_seconds``: the duration of a build. ``stop_failure_rate``: the share (0..1) of guests that cannot
    be stopped. ``live``: that of migrations of guests that run.
    """

    build_seconds: float = 0.0
    failures: tuple[FailureRule, ...] = ()
    seed: int = 0
    stop_failure_rate: float = 0.0
    live: LiveScript = LiveScript()

    def failure(self, host: str, instance: str, attempt: int) -> str | None:
        """Return the reason why this attempt fails; None if it does not."""
        for number, rule in enumerate(self.failures):
            if rule.hosts is not None and host not in rule.hosts:
                continue
            if _is_drawn(rule.rate, f"{self.seed} {number} {host} {instance} {attempt}"):
                return rule.reason
        return None

    def is_drawn(self, rate: float, words: str) -> bool:
        """Return whether something is of the share ``rate`` (0..1) of its kind."""
        return _is_drawn(rate, f"{self.seed} {words}")

    def can_stop(self, host: str, instance: str, attempt: int) -> bool:
        """Return whether the guest of this attempt can be stopped."""
        return not _is_drawn(self.stop_failure_rate, f"{self.seed} stop {host} {instance} {attempt}")


def _is_drawn(rate: float, words: str) -> bool:
    digest = hashlib.blake2b(words.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") < rate * 2**64


class _Guest(msgspec.Struct):
    """A guest: its attempt, its assigned hardware, and whether it runs; else it is being built or stopped.

    ``comes``: it runs on another host, from which it may come. ``beside`` and ``move``: see `KeptGuest`.
    """

    attempt: int
    assignment: Assignment | None
    runs: bool = False
    comes: bool = False
    beside: KeptGuest | None = None
    move: str = ""


class SimulatedDriver:
    """The driver of one simulated host.

    ``kept``: files that keep its guests beyond the end of the agent, as a hypervisor outlives its agent.
    None: they live in memory, and `recover` brings them back. ``network``: the hosts that its guests reach
    while they run; None: none.
    """

    def __init__(
        self,
        host: SimulatedHost,
        script: Script,
        kept: GuestFiles | None = None,
        network: SimulatedNetwork | None = None,
    ) -> None:
        self._host = host
        self._script = script
        self._kept = kept
        self._has_network = network is not None
        network = network or SimulatedNetwork()
        network.join(host.name, self)
        self._migrations = Migrations(network, script.live, self._leave, script.is_drawn)
        kinds = [kind for kind in host.nodes for _ in range(kind.count)]
        self._nodes = {provider_uuid(f"{host.name}/{number}"): kind for number, kind in enumerate(kinds)}
        there = {} if kept is None else kept.load()
        self._guests = {
            uuid: _Guest(guest.attempt, guest.assignment, guest.runs, beside=guest.beside, move=guest.move)
            for uuid, guest in there.items()
        }

    def nodes(self) -> Mapping[str, str] | None:
        return {node: node for node in self._nodes} or None

    def update_provider_tree(
        self, tree: ProviderTree, nodename: str, allocations: dict[str, dict[str, Any]] | None = None
    ) -> None:
        described = self._nodes.get(nodename, self._host)
        if described is self._host:
            self._reshape(tree, nodename, allocations)
        tree.update_inventory(nodename, described.inventory)
        tree.update_traits(nodename, described.traits)
        if described is not self._host:
            return
        pools = self._host.pools
        tree.update_aggregates(nodename, {*self._host.aggregates, *(each.aggregate for each in pools)})
        for pool in pools:
            # One provider of this name for all hosts, whichever agent made it.
            there = tree.data(pool.name).uuid if pool.name in tree else provider_uuid(pool.name)
            tree.put_root(pool.name, there)
            tree.update_inventory(there, pool.inventory)
            tree.update_traits(there, {*pool.traits, SHARING_TRAIT})
            tree.add_aggregates(there, pool.aggregate)
        for child in self._host.children:
            name = f"{nodename}-{child.suffix}"
            tree.put_child(name, f"{nodename}-{child.parent}" if child.parent else nodename)
            tree.update_inventory(name, child.inventory)
            tree.update_traits(name, child.traits)
        for gone in leftover(tree, nodename, self._shape(nodename)):
            # A removed parent takes its children with it.
            if gone in tree:
                tree.remove(gone)

    def _shape(self, nodename: str) -> Shape:
        children = {f"{nodename}-{child.suffix}": child.inventory for child in self._host.children}
        return {nodename: self._host.inventory, **children}

    def _reshape(
        self, tree: ProviderTree, nodename: str, allocations: dict[str, dict[str, Any]] | None
    ) -> None:
        """Move allocations, if the host had other providers before. Raises `ReshapeNeeded`,
        `ReshapeRefused`."""
        shape = self._shape(nodename)
        if allocations is not None:
            move(tree, nodename, shape, allocations, self._cells_of_guests(nodename))
        elif needs_reshape(tree, nodename, shape):
            raise ReshapeNeeded(f"node {nodename} has another shape in placement")

    def _cells_of_guests(self, nodename: str) -> dict[str, str]:
        """Return the NUMA cell's provider of each guest that is assigned to one cell only."""
        found = {}
        for guest, assignment in self._assigned().items():
            cells = {cell.host for cell in assignment.cells}
            if len(cells) == 1:
                found[guest] = f"{nodename}-numa{cells.pop()}"
        return found

    def metrics(self) -> dict[str, float]:
        return self._host.metrics

    def hardware(self) -> Hardware | None:
        host = self._host
        if host.numa_topology is None and not host.pci_device_pools:
            return None
        counted = self._assigned()
        assigned = [*counted.values()]
        topology = used_topology(host.numa_topology, assigned)
        return Hardware(topology, free_pools(host.pci_device_pools, assigned), counted)

    def guests(self) -> Mapping[str, int]:
        return {uuid: guest.attempt for uuid, guest in self._guests.items() if guest.runs}

    async def recover(self, instances: Collection[Instance]) -> None:
        if self._kept is None:
            for each in instances:
                runs = each.state not in (STOPPED, POWERING_ON)
                self._guests[each.uuid] = _Guest(each.attempt, assignment_of(each), runs=runs)

    async def prepare(self, instance: Instance) -> None:
        # A stopped guest of an earlier attempt would be there again after a restart of the agent.
        await self.destroy(instance.uuid)
        self._take(instance, None)
        await self._make(instance)

    @property
    def resizes_in_place(self) -> bool:
        return True

    async def prepare_beside(self, instance: Instance, attempt: int) -> None:
        there = self._guests.get(instance.uuid)
        if there is not None and there.attempt == instance.attempt:
            await self.destroy_attempt(instance.uuid, instance.attempt)
            there = self._guests.get(instance.uuid)
        if there is None or there.attempt != attempt or there.runs:
            raise NoSuchGuest(f"instance {instance.uuid} has no stopped guest of attempt {attempt}")
        self._take(instance, KeptGuest(attempt, there.assignment, runs=False, move=instance.move or ""))
        self._keep(instance.uuid, self._guests[instance.uuid])
        await self._make(instance)

    async def destroy_attempt(self, instance: str, attempt: int) -> None:
        guest = self._guests.get(instance)
        if guest is None:
            return
        if guest.beside is not None and guest.beside.attempt == attempt:
            guest.beside = None
            self._keep(instance, guest)
        elif guest.attempt == attempt and guest.beside is None:
            await self.destroy(instance)
        elif guest.attempt == attempt and guest.beside is not None:
            self._guests[instance] = _Guest(guest.beside.attempt, guest.beside.assignment)
            self._keep(instance, self._guests[instance])

    async def _make(self, instance: Instance) -> None:
        """Build a guest, whose hardware is taken. Raises `BuildFailed`."""
        if self._script.build_seconds:
            await asyncio.sleep(self._script.build_seconds)
        reason = self._script.failure(self._host.name, instance.uuid, instance.attempt)
        if reason is not None:
            await self.destroy_attempt(instance.uuid, instance.attempt)
            raise BuildFailed(reason)

    async def start(self, instance: Instance) -> None:
        self._switch(instance.uuid, self._guests[instance.uuid], runs=True)

    @property
    def keeps_disks(self) -> bool:
        return True

    @property
    def keeps_shelved(self) -> bool:
        return True

    async def stop(self, instance: str) -> None:
        guest = self._guests.get(instance)
        if guest is None:
            raise NoSuchGuest(f"instance {instance} has no guest")
        if guest.runs and not self._script.can_stop(self._host.name, instance, guest.attempt):
            raise CannotStopGuests(f"the guest of instance {instance} cannot be stopped")
        self._switch(instance, guest, runs=False)

    @property
    def power_off_seconds(self) -> float | None:
        return 1.0

    async def power_off(self, instance: str) -> None:
        if instance in self._guests:
            await self.stop(instance)

    async def start_again(self, instance: Instance) -> None:
        guest = self._guests.get(instance.uuid)
        if guest is not None and guest.beside is not None and guest.beside.attempt == instance.attempt:
            other = KeptGuest(guest.attempt, guest.assignment, runs=False, move=guest.beside.move)
            guest = _Guest(guest.beside.attempt, guest.beside.assignment, beside=other)
            self._guests[instance.uuid] = guest
        if guest is None or guest.attempt != instance.attempt:
            raise NoSuchGuest(f"instance {instance.uuid} has no guest of attempt {instance.attempt}")
        self._switch(instance.uuid, guest, runs=True)

    @property
    def moves_live(self) -> bool:
        return self._has_network

    async def receive(self, instance: Instance) -> None:
        there = self._guests.get(instance.uuid)
        if there is not None and there.attempt == instance.attempt and (there.runs or there.comes):
            return
        await self.prepare(instance)
        self._guests[instance.uuid].comes = True

    async def migrate(self, instance: str, target: Instance) -> None:
        guest = self._guests.get(instance)
        if guest is not None and guest.runs:
            await self._migrations.go(instance, target.host or "", target.attempt)

    async def end_migration(self, instance: str) -> None:
        await self._migrations.end(instance)

    def is_ready(self, instance: str, attempt: int) -> bool:
        """Return whether the host is ready for the guest of an attempt, which comes from another host."""
        guest = self._guests.get(instance)
        return guest is not None and guest.attempt == attempt and guest.comes

    def arrive(self, instance: str) -> None:
        """Have a guest run that comes from another host. Raises OSError."""
        self._switch(instance, self._guests[instance], runs=True)
        self._guests[instance].comes = False

    def _leave(self, instance: str) -> None:
        """Have a guest not run any more, which goes to another host. Raises `NotMigrated`, OSError."""
        guest = self._guests.get(instance)
        if guest is None or not guest.runs:
            raise NotMigrated(f"instance {instance} has no guest that runs")
        self._switch(instance, guest, runs=False)

    def _switch(self, instance: str, guest: _Guest, *, runs: bool) -> None:
        before, guest.runs = guest.runs, runs
        try:
            self._keep(instance, guest)
        except OSError:
            guest.runs = before
            raise

    def _keep(self, instance: str, guest: _Guest) -> None:
        """Keep a guest as it is now. Raises OSError."""
        if self._kept is not None:
            kept = KeptGuest(guest.attempt, guest.assignment, guest.runs, guest.beside, guest.move)
            self._kept.keep(instance, kept)

    async def destroy(self, instance: str) -> None:
        if self._kept is not None:
            self._kept.destroyed(instance)
        self._guests.pop(instance, None)

    def _assigned(self) -> dict[str, Assignment]:
        """Return the hardware of all guests by consumer: the instance, or the move of a guest of before."""
        found = {uuid: guest.assignment for uuid, guest in self._guests.items()}
        found |= {
            guest.beside.move: guest.beside.assignment
            for guest in self._guests.values()
            if guest.beside is not None
        }
        return {consumer: each for consumer, each in found.items() if each is not None}

    def _take(self, instance: Instance, beside: KeptGuest | None) -> None:
        """Give a guest its assigned hardware. Raises `BuildFailed` if another guest has some of it."""
        assignment = assignment_of(instance)
        if beside is not None and assignment is not None and beside.assignment is not None:
            for parts in clashes(assignment, {instance.uuid: beside.assignment}).values():
                raise BuildFailed(f"the guest of attempt {beside.attempt} has {parts}")
        if assignment is not None:
            others = {guest: each for guest, each in self._assigned().items() if guest != instance.uuid}
            for guest, parts in clashes(assignment, others).items():
                raise BuildFailed(f"guest {guest} has {parts}")
        self._guests[instance.uuid] = _Guest(instance.attempt, assignment, beside=beside)
