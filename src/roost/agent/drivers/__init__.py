"""The interface of drivers, by which a kind of host reports its resources, builds and destroys guests.

Its values are here too: the hardware of a host, and the ports and accelerators of a guest.

driver_loader        loads a driver by its name or entry point
used_hardware        NUMA cells and PCI devices with the use of guests
libvirt/             hosts with libvirt
redfish/             bare metal machines behind BMCs
simulated            the driver of simulated hosts
simulated_options    its options, in group ``simulated``
simulated_migrations guests that go to other simulated hosts while they run
simulated_profiles   providers of simulated hosts, from TOML files
simulated_reshape    moves claims when a simulated host's providers change
"""

from collections.abc import Collection, Mapping
from typing import Any, Final, Protocol, runtime_checkable

import msgspec

from roost.agent.errors import BuildFailed, CannotStopGuests, NotMigrated
from roost.agent.protocol.types import PortsReleased
from roost.agent.provider_tree import ProviderTree
from roost.model.assignment import Assignment
from roost.model.instance import (
    ACTIVE,
    DELETING,
    POWERING_OFF,
    POWERING_ON,
    SHELVING,
    STOPPED,
    Instance,
)


class AttachedPort(msgspec.Struct, frozen=True, kw_only=True):
    """A port that is bound to the host.

    ``kind`` (``binding:vif_type``) says how it is plugged in, ``details`` (``binding:vif_details``) where.
    ``address``: the PCI device that serves it; None: no device does.

    Source: Neutron's port bindings, and ``nova/network/model.py``.
    """

    id: str
    network_id: str
    mac: str
    kind: str
    details: dict[str, Any] = {}
    address: str | None = None


class AttachedDevice(msgspec.Struct, frozen=True):
    """A bound accelerator request, with the ``kind`` and ``handle`` of its attach handle.

    Source: Cyborg's API v2, ``attach_handle_type`` and ``attach_handle_info``.
    """

    id: str
    kind: str
    handle: dict[str, str] = {}


class Attached(msgspec.Struct, frozen=True):
    """All ports and devices of one guest, in the order of the request."""

    ports: tuple[AttachedPort, ...] = ()
    devices: tuple[AttachedDevice, ...] = ()


class Hardware(msgspec.Struct, frozen=True):
    """The NUMA topology and PCI devices of a host at one moment, with their use.

    ``numa_topology`` is Nova's ``NUMATopology``, ``pci_device_pools`` are its ``PciDevicePool`` objects with
    the free devices, both as plain data. ``counted``: the assignment of each instance whose use is included
    in them, so that the scheduler knows which of its claims are not.
    """

    numa_topology: dict[str, object] | None = None
    pci_device_pools: tuple[dict[str, object], ...] = ()
    counted: Mapping[str, Assignment] = {}


def assignment_of(instance: Instance) -> Assignment | None:
    """Return the CPUs, memory pages and devices that an instance was assigned; None: none."""
    return None if instance.selection is None else instance.selection.assignment


BUILT: Final = (ACTIVE, POWERING_OFF, STOPPED, POWERING_ON, SHELVING, DELETING)
"""States of instances whose guest a driver takes up after a start of the agent."""


class Driver(Protocol):
    """The hypervisor of one host, as its agent uses it.

    A build has two phases, so that the cell can confirm between them that the attempt is still wanted.
    `prepare` and `start` are cancelled at their deadline, or when the instance is to be destroyed; `destroy`
    follows then.
    """

    def nodes(self) -> Mapping[str, str] | None:
        """Return the uuid of the root provider of each node of the host, by the node's name.

        A node whose root does not have the host's name is named by that uuid. None: the host is its only
        node, with its name.
        """

    def update_provider_tree(
        self, tree: ProviderTree, nodename: str, allocations: dict[str, dict[str, Any]] | None = None
    ) -> None:
        """Change the tree of one node, given as placement has it, to the actual resources of the node.

        The driver adds, moves and removes providers and sets their inventories, traits and aggregates. Parts
        that it does not touch stay, and so do all parts of others.

        A driver that has to move allocations raises `ReshapeNeeded`. It may do so until the first report
        after a start of the agent. Then it is called again with ``allocations``, and changes them in place:
        all allocations of each consumer with one in the tree, by consumer, in the form of
        ``GET /allocations/{consumer}``. docs/agents.md says which other consumers may be among them. It
        raises `ReshapeRefused` if it cannot move them.

        Source: ``update_provider_tree`` of Nova's ``virt/driver.py``.
        """

    def metrics(self) -> dict[str, float]:
        """Return named numbers for the metrics weigher, such as a temperature."""

    def hardware(self) -> Hardware | None:
        """Return the host's NUMA cells and PCI devices; None if the driver reports none."""

    def guests(self) -> Mapping[str, int]:
        """Return the attempt that built each running guest, by the uuid of its instance.

        Guests that are being prepared or started are not among them, nor are stopped ones (`StoppingDriver`)
        and guests of others on the host.
        """

    async def recover(self, instances: Collection[Instance]) -> None:
        """Take up guests after a start of the agent: the instances that the cell has on the host.

        The guests of those whose ``state`` is ``stopped`` or ``powering-on`` do not run.
        """

    async def prepare(self, instance: Instance) -> None:
        """Prepare a guest up to its start. Raises `BuildFailed`.

        ``instance.selection`` is its claim: allocations, mappings and the assignment of the host's cells,
        CPUs, pages and PCI devices. A stopped guest of an earlier attempt may be there, or one of this
        attempt that is off since its machine was: it is replaced.
        """

    async def start(self, instance: Instance) -> None:
        """Start a guest that is prepared. Raises `BuildFailed`."""

    async def destroy(self, instance: str) -> None:
        """Remove every trace of an instance; a missing one is no error."""


@runtime_checkable
class CapableDriver(Protocol):
    """Additional method of a driver that reports capabilities apart from its providers."""

    def capabilities(self) -> Mapping[str, bool]:
        """Return whether the driver has each capability, by trait, such as ``COMPUTE_NET_ATTACH_INTERFACE``.

        The roots of all nodes get the true traits, and lose the others if the agent has added them.

        Source: ``capabilities_as_traits`` of Nova's ``virt/driver.py``.
        """


@runtime_checkable
class PluggingDriver(Protocol):
    """Additional method of a driver that plugs in the ports and accelerators of its guests."""

    async def prepare_attached(self, instance: Instance, attached: Attached) -> None:
        """Do as `Driver.prepare`, for a guest with ports and accelerators. Raises `BuildFailed`."""


@runtime_checkable
class StoppingDriver(Protocol):
    """Additional methods of a driver that stops guests and starts them again.

    A stopped guest stays stopped when the agent is restarted.
    """

    @property
    def keeps_disks(self) -> bool:
        """True if a guest that moves finds its disks on the other host; see `SharingDriver`.

        Then `prepare` keeps the disks of an instance that are there, and `destroy` leaves those that its
        guest on another host uses. Without that instances are not migrated: they would lose their disks.
        """

    async def stop(self, instance: str) -> None:
        """Stop the guest of an instance; its disks and its definition stay.

        A stopped guest is no error, nor is one that is prepared: it stays as a stopped one. Raises
        `NoSuchGuest`, and `CannotStopGuests` if no later call can do it.
        """

    async def start_again(self, instance: Instance) -> None:
        """Start the guest of ``instance.attempt``, which was stopped. A running guest is no error.

        Raises `BuildFailed`, `NoSuchGuest`.
        """


@runtime_checkable
class SharingDriver(Protocol):
    """Additional methods of a `StoppingDriver` whose disks are in a store that hosts share.

    Its `prepare` finds the disks of instances that have some (``instance.finds_disks``), or fails; and its
    `destroy` leaves them.
    """

    @property
    def disk_store(self) -> str | None:
        """The id of the store, the same on all hosts that share it; None: the host has none now."""

    async def remove_disks(self, instance: str) -> None:
        """Remove the disks of an instance that has ended; missing ones are no error."""


@runtime_checkable
class ShelvingDriver(Protocol):
    """Additional property of a `StoppingDriver` whose guests can be shelved with their disks."""

    @property
    def keeps_shelved(self) -> bool:
        """True if `destroy` leaves the disks of an instance where its guest on another host finds them later.

        No guest has them in between. See `StoppingDriver.keeps_disks`, and `SharingDriver.disk_store`.
        """


@runtime_checkable
class PortDriver(Protocol):
    """Additional methods of a driver whose guests have ports, which are one for all hosts of an instance."""

    async def recover_with_ports(self, instances: Collection[Instance]) -> None:
        """Do as `Driver.recover` with those whose state is one of `BUILT`; all keep their ports."""

    async def destroy_with_ports(self, instance: str, ports: PortsReleased) -> None:
        """Do as `Driver.destroy`, and release ports of the instance."""

    async def start_with_ports(self, instance: Instance, over: int) -> None:
        """Do as `StoppingDriver.start_again`, with the ports of the instance bound to the host.

        ``over``: ports that attempts up to this one have bound on other hosts are taken back.
        """


@runtime_checkable
class LiveDriver(Protocol):
    """Additional methods of a `StoppingDriver` whose guests can move to another host while they run."""

    @property
    def moves_live(self) -> bool:
        """True if guests of this host can go to others, and come from them."""

    async def receive(self, instance: Instance) -> None:
        """Prepare for the guest of ``instance.attempt``, which runs on another host. Raises `BuildFailed`.

        The guest is not started here. A repeated call leaves what has come meanwhile.
        """

    async def migrate(self, instance: str, target: Instance) -> None:
        """Have a running guest go to ``target.host``, where it is of ``target.attempt``.

        Returns when the guest does not run on this host any more, because it runs on the target. Its
        definition stays. A target that has not prepared for that attempt must not get the guest. A repeated
        call goes on with the migration that is under way, and an agent that ends does not end it. Raises
        `NotMigrated` if the guest runs on here. After any other error it is called again.
        """

    async def end_migration(self, instance: str) -> None:
        """End the migration of a guest; returns when none is under way, whether the guest has gone or not."""


@runtime_checkable
class FencingDriver(Protocol):
    """Additional members of a `StoppingDriver` that can stop guests whatever the host is cut off from."""

    @property
    def power_off_seconds(self) -> float | None:
        """Seconds in which all guests of the host are stopped by `power_off`; None: nobody can tell."""

    async def power_off(self, instance: str) -> None:
        """Do as `StoppingDriver.stop`, at once and with nothing from outside the host. A guest that is not
        there is no error."""


def power_off_seconds(driver: Driver) -> float | None:
    """Return the seconds in which a driver can stop all guests of its host; None: nobody can tell."""
    return driver.power_off_seconds if isinstance(driver, FencingDriver) else None


def fencing_driver(driver: Driver) -> FencingDriver:
    """Return a driver as one that fences its host. Raises `CannotStopGuests` if it cannot."""
    if not isinstance(driver, FencingDriver) or driver.power_off_seconds is None:
        raise CannotStopGuests(f"the driver {type(driver).__name__} cannot fence its host")
    return driver


def live_driver(driver: Driver) -> LiveDriver:
    """Return a driver as one whose guests move while they run. Raises `NotMigrated` if they do not."""
    if not isinstance(driver, LiveDriver):
        raise NotMigrated(f"guests of the driver {type(driver).__name__} do not move while they run")
    return driver


@runtime_checkable
class ResizingDriver(Protocol):
    """Additional methods of a driver that gives an instance another size on its host.

    The stopped guest of the former size stays beside the new one, until one of them is destroyed. Of both
    only one runs. `StoppingDriver.start_again` starts the one of the instance's attempt.
    """

    @property
    def resizes_in_place(self) -> bool:
        """True if the driver does that."""

    async def prepare_beside(self, instance: Instance, attempt: int) -> None:
        """Do as `Driver.prepare`, and keep the stopped guest of another attempt. May be repeated.

        Raises `BuildFailed`, `NoSuchGuest`.
        """

    async def destroy_attempt(self, instance: str, attempt: int) -> None:
        """Remove every trace of one attempt of an instance, and of no other; a missing one is no error."""


def resizing_driver(driver: Driver) -> ResizingDriver:
    """Return a driver as one that keeps two sizes of a guest. Raises `BuildFailed` if it does not."""
    if not isinstance(driver, ResizingDriver) or not driver.resizes_in_place:
        raise BuildFailed(f"the driver {type(driver).__name__} does not keep two sizes of a guest")
    return driver


def stopping_driver(driver: Driver) -> StoppingDriver:
    """Return a driver as one that stops guests. Raises `CannotStopGuests` if it does not."""
    if not isinstance(driver, StoppingDriver):
        raise CannotStopGuests(f"the driver {type(driver).__name__} cannot stop guests")
    return driver
