"""`LibvirtDriver`: the driver of one host with libvirt."""

import asyncio
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from typing import Any, Final

from roost.agent.drivers import Attached, Hardware, assignment_of
from roost.agent.drivers.libvirt import machinery
from roost.agent.drivers.libvirt.connection import LibvirtConnection
from roost.agent.drivers.libvirt.domain import GuestParts, domain_name, domain_xml, mdev_uuid, stays_behind
from roost.agent.drivers.libvirt.guest_options import DriverOptions, guest_options, shared_of_cell
from roost.agent.drivers.libvirt.guests import Domain
from roost.agent.drivers.libvirt.held_by_guests import HeldByGuests, HostProviders, move, what_moves
from roost.agent.drivers.libvirt.images import DISK_FAILED, Disk, make_disk, remove_folder
from roost.agent.drivers.libvirt.inventory import (
    DISK,
    Amounts,
    MdevSource,
    mdev_sources,
    numa_topology,
    root_inventory,
)
from roost.agent.drivers.libvirt.pci import pci_pools
from roost.agent.drivers.libvirt.providers import ENCRYPTIONS, encryption_providers, fill, mdev_provider
from roost.agent.drivers.libvirt.shared_disks import SharedDisks, folder_id
from roost.agent.drivers.libvirt.traits import host_traits
from roost.agent.drivers.libvirt.view import LibvirtView, read_view
from roost.agent.drivers.used_hardware import free_pools, used_topology
from roost.agent.errors import BuildFailed, HypervisorAway, NoSuchGuest, ReshapeNeeded
from roost.agent.provider_tree import ProviderTree
from roost.model.assignment import Assignment, clashes
from roost.model.instance import Instance
from roost.model.names import provider_uuid
from roost.model.spec import RequestSpec

AWAY: Final = "HypervisorAway"
FOREIGN: Final = "ForeignDomain"
"""Codes of builds on a host whose hypervisor is away, or has a foreign domain of the guest's name."""

POWER_OFF_SECONDS = 20.0
"""Seconds in which libvirt destroys the processes of domains. Source: ``virProcessKillPainfully``."""

_NO_FLAVOR = "the instance has no flavor: it was stored by an earlier version"


class LibvirtDriver:
    """The driver of one host.

    It answers from the last snapshot of the hypervisor, updated with its own changes since. A new snapshot is
    read in a thread when the driver is asked and the last one is older than ``options.refresh_seconds``;
    after a failed read, the driver raises its error until the next. The hypervisor has the guests: no state
    is kept here.
    """

    def __init__(self, host: str, options: DriverOptions, connection: LibvirtConnection) -> None:
        """Read the first snapshot, in this thread. Raises `HypervisorAway`, `UnusableOptions`, and others."""
        self._host = host
        self._options = options
        self._connection = connection
        self._shared = SharedDisks(options.disks, host) if options.disks.shared else None
        self._store: str | None = None
        self._view = self._connection.call_now(self._read)
        self._cpus = options.cpu_sets.of(self._view.host)
        self._looked = _now()
        self._looking: asyncio.Task[None] | None = None
        self._trouble: Exception | None = None
        self._changes = 0
        self._taken: dict[str, Assignment] = {}

    def nodes(self) -> Mapping[str, str] | None:
        return None

    def update_provider_tree(
        self, tree: ProviderTree, nodename: str, allocations: dict[str, dict[str, Any]] | None = None
    ) -> None:
        view, options = self._current(), self._options
        others = sum(each.memory_mb for each in self._others(view))
        # If a sharing provider with disk serves the host, the guests' disks are there.
        disk_gb = None if tree.has_sharing_provider(DISK) else options.disk_gb()
        amounts = Amounts(view.memory_mb, disk_gb, others)
        there = tree.data(nodename).inventory
        inventory = root_inventory(self._cpus, amounts, options.reserved, options.ratios, there)
        traits = host_traits(
            view.host, view.guests, view.features, with_images=options.disks.images is not None
        )
        children = [mdev_provider(each) for each in mdev_sources(view.devices, options.mdevs)]
        children += encryption_providers(view.guests.memory_encryption)
        host, held = HostProviders(inventory, children, self._cpus.dedicated), self._held(view)
        if allocations is not None:
            move(tree, nodename, host, held, allocations)
        elif (moves := what_moves(tree, nodename, host, held)) is not None:
            raise ReshapeNeeded(moves)
        fill(tree, nodename, inventory, traits, children)

    def metrics(self) -> dict[str, float]:
        return {}

    def hardware(self) -> Hardware | None:
        view = self._current()
        counted = self._assigned()
        others = self._others(view)
        pinned = frozenset[int]().union(*(each.pinned for each in others))
        topology = numa_topology(view.host, self._cpus, pinned_by_others=pinned)
        taken = frozenset[str]().union(*(each.addresses for each in others))
        pools = pci_pools(view.devices.pci, self._options.device_specs, taken)
        assigned = [*counted.values()]
        return Hardware(used_topology(topology, assigned), free_pools(pools, assigned), counted)

    def guests(self) -> Mapping[str, int]:
        return {
            each.own.instance: each.own.attempt
            for each in self._current().domains.values()
            if each.own is not None and each.active
        }

    async def recover(self, instances: Collection[Instance]) -> None:
        await self._look()
        if self._trouble is not None:
            raise self._trouble
        if self._shared is not None:
            for name, each in self._view.domains.items():
                if each.own is not None and each.active:
                    await asyncio.to_thread(self._shared.keep, name, each.own.attempt)

    async def prepare(self, instance: Instance) -> None:
        await self.prepare_attached(instance, Attached())

    async def prepare_attached(self, instance: Instance, attached: Attached) -> None:
        name = domain_name(instance.uuid)
        if instance.spec is None:
            raise BuildFailed(_NO_FLAVOR)
        there = self._view.domains.get(name)
        if there is not None and there.own is not None and there.own.attempt != instance.attempt:
            # A stopped guest, whose devices nothing would remove later.
            await self.destroy(instance.uuid)
        self._take(instance)
        view = self._view
        mdevs = self._mdevs(instance, view)
        disk = await self._disk(name, instance, instance.spec)
        parts = GuestParts(
            disk=None if disk is None else disk.path,
            disk_format="qcow2" if disk is None else disk.format,
            console=self._options.disks.instances / name / "console.log",
            mdevs=tuple(uuid for uuid, _ in mdevs),
            encryption=self._encryption(instance),
            attached=attached,
        )
        options = guest_options(self._options, view, self._cpus)
        text = domain_xml(instance, view.guests, options, parts, shared_of_cell(view, self._cpus))

        def define(opened: Any) -> None:
            machinery.define(self._connection, opened, name, text)
            # After the domain, which names them, so that no unknown device is left behind.
            for uuid, source in mdevs:
                machinery.make_mdev(opened, source.device, source.type, uuid)

        await self._change(name, define)

    async def start(self, instance: Instance) -> None:
        name = domain_name(instance.uuid)
        await self._grow(name, instance)
        await self._change(name, lambda opened: machinery.start(self._connection, opened, name))
        if self._shared is not None:
            await _on_disks(self._shared.keep, name, instance.attempt)

    async def _grow(self, name: str, instance: Instance) -> None:
        if self._shared is not None and instance.spec is not None:
            await self._shared.grow(name, instance, instance.spec)

    async def _disk(self, name: str, instance: Instance, spec: RequestSpec) -> Disk | None:
        if self._shared is None:
            return await make_disk(self._options.disks, name, spec)
        if instance.finds_disks:
            stays_behind(spec)
        return await self._shared.prepare(name, instance, spec)

    @property
    def keeps_disks(self) -> bool:
        # In a folder of its own it makes disks from the image, and removes them with the guest.
        return self.disk_store is not None

    @property
    def keeps_shelved(self) -> bool:
        return self.disk_store is not None

    @property
    def disk_store(self) -> str | None:
        return self._store

    async def remove_disks(self, instance: str) -> None:
        if self._shared is not None:
            await _on_disks(self._shared.remove, domain_name(instance))

    async def stop(self, instance: str) -> None:
        name = domain_name(instance)
        await self._change(name, lambda opened: machinery.stop(self._connection, opened, name))
        there = self._view.domains.get(name)
        if self._shared is not None and there is not None and there.own is not None:
            # The guest of a stopped instance is prepared, and not started.
            await _on_disks(self._shared.keep, name, there.own.attempt)

    @property
    def power_off_seconds(self) -> float | None:
        return POWER_OFF_SECONDS

    async def power_off(self, instance: str) -> None:
        # Without the files of shared disks: their store may be what the host is cut off from.
        name = domain_name(instance)
        with suppress(NoSuchGuest):
            await self._change(name, lambda opened: machinery.stop(self._connection, opened, name))

    async def start_again(self, instance: Instance) -> None:
        name = domain_name(instance.uuid)
        await self._grow(name, instance)
        await self._change(
            name, lambda opened: machinery.start_again(self._connection, opened, name, instance.attempt)
        )

    async def destroy(self, instance: str) -> None:
        name = domain_name(instance)
        await self._change(name, lambda opened: machinery.remove(self._connection, opened, name))
        if self._shared is None:
            await _on_disks(remove_folder, self._options.disks, name)
        else:
            await _on_disks(self._shared.leave, name)
        self._taken.pop(instance, None)

    # Snapshots

    def _read(self, opened: Any) -> LibvirtView:
        if self._shared is not None:
            self._store = folder_id(self._options.disks.instances)
        return read_view(self._connection, opened, self._options.virt_type, self._options.machine)

    def _current(self) -> LibvirtView:
        """Return the last snapshot; begin a new read if it is old. Raises the error of the last read."""
        if self._looking is None and _now() - self._looked >= self._options.refresh_seconds:
            self._looking = asyncio.get_running_loop().create_task(self._look())
        if self._trouble is not None:
            raise self._trouble
        return self._view

    async def _look(self) -> None:
        changes = self._changes
        try:
            view = await self._connection.read(self._read)
            # The snapshot may lack a change that was made meanwhile; the next one has it.
            if changes == self._changes:
                self._view = view
            self._trouble = None
        except Exception as error:
            self._trouble = error
        finally:
            self._looked, self._looking = _now(), None

    async def _change(self, name: str, work: Callable[[Any], None]) -> None:
        """Change a domain, and update it in the snapshot. Raises `BuildFailed`."""

        def change_and_look(opened: Any) -> Domain | None:
            work(opened)
            return machinery.find(self._connection, opened, name)

        self._changes += 1
        try:
            changed = await self._connection.call(change_and_look)
        except HypervisorAway as error:
            raise BuildFailed(str(error), AWAY) from error
        except machinery.ForeignDomain as error:
            raise BuildFailed(f"the domain {error} on {self._host} was made by others", FOREIGN) from error
        finally:
            self._changes += 1
        # Only this domain: another change may have ended since it was read.
        others = {each: there for each, there in self._view.domains.items() if each != name}
        domains = others if changed is None else {**others, name: changed}
        self._view = self._view._replace(domains=domains)

    # Hardware of guests

    def _others(self, view: LibvirtView) -> list[Domain]:
        return view.others if self._options.counts_others else []

    def _held(self, view: LibvirtView) -> HeldByGuests:
        """Return the host CPUs and devices of guests."""
        cpus = {
            guest: frozenset(
                cpu for cell in each.cells for cpu in (*(host for _, host in cell.pinned), *cell.reserved)
            )
            for guest, each in self._assigned().items()
        }
        parents = {each.uuid: each.parent for each in view.devices.mediated}
        devices = {
            each.own.instance: frozenset(parents[uuid] for uuid in each.mdevs if uuid in parents)
            for each in view.domains.values()
            if each.own is not None
        }
        return HeldByGuests({guest: each for guest, each in cpus.items() if each}, devices)

    def _assigned(self) -> dict[str, Assignment]:
        """Return the assignments of all guests, also of those that are being built."""
        there = {
            each.own.instance: each.own.assignment
            for each in self._view.domains.values()
            if each.own is not None and each.own.assignment is not None
        }
        return {**there, **self._taken}

    def _take(self, instance: Instance) -> None:
        """Give a guest its assigned hardware. Raises `BuildFailed` if another guest has some of it."""
        assignment = assignment_of(instance)
        if assignment is None:
            return
        others = {guest: each for guest, each in self._assigned().items() if guest != instance.uuid}
        for guest, parts in clashes(assignment, others).items():
            raise BuildFailed(f"guest {guest} has {parts}")
        self._taken[instance.uuid] = assignment

    def _claimed(self, instance: Instance, suffix: str) -> dict[str, int]:
        """Return the amounts claimed of a provider below the root."""
        if instance.selection is None:
            return {}
        return instance.selection.allocations.get(provider_uuid(f"{self._host}_{suffix}"), {})

    def _mdevs(self, instance: Instance, view: LibvirtView) -> list[tuple[str, MdevSource]]:
        """Return the mediated devices of a guest: their uuids and sources."""
        return [
            (mdev_uuid(instance, source.device, number), source)
            for source in mdev_sources(view.devices, self._options.mdevs)
            for number in range(self._claimed(instance, source.device).get(source.resource_class, 0))
        ]

    def _encryption(self, instance: Instance) -> str | None:
        return next(
            (kind for kind, (suffix, _) in ENCRYPTIONS.items() if self._claimed(instance, suffix)), None
        )


async def _on_disks(work: Callable[..., None], *given: object) -> None:
    """Change files of disks in a thread. Raises `BuildFailed`."""
    try:
        await asyncio.to_thread(work, *given)
    except OSError as error:
        raise BuildFailed(f"the disks of a guest cannot be changed: {error}", DISK_FAILED) from error


def _now() -> float:
    return time.monotonic()
