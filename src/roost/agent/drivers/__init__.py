"""Drivers: how one kind of host describes itself, builds and destroys."""

from collections.abc import Collection, Mapping
from typing import Any, Protocol, runtime_checkable

from roost.agent.attached import Attached
from roost.agent.hardware import Hardware
from roost.agent.provider_tree import ProviderTree
from roost.model.instance import Instance


class Driver(Protocol):
    """One host's hypervisor, as its agent uses it.

    A build has two phases, so that the cell can say between them whether the attempt is still wanted.
    `prepare` and `start` are cancelled when their time is over or the instance is to be destroyed;
    `destroy` follows then.
    """

    def nodes(self) -> Mapping[str, str] | None:
        """The uuid of the root provider of each of the host's nodes, by the node's name. A node whose root
        does not carry the host's name is called by that uuid.

        None: the host is the one node, and has its name.
        """

    def update_provider_tree(
        self, tree: ProviderTree, nodename: str, allocations: dict[str, dict[str, Any]] | None = None
    ) -> None:
        """Change the tree of one node, which has what placement has, to what the node has.

        The driver adds, moves and removes providers and sets what it knows. What it does not touch stays, and
        so does all that others have made.

        A driver that has to move what consumers hold raises `ReshapeNeeded`. It may do so until the first
        report after a start of the agent. Then it is called again with ``allocations``, and changes them in
        place: all that each consumer with an allocation in the tree holds, by consumer, as placement
        answers ``GET /allocations/{consumer}``. Who else may be among them: see docs/agents.md. It raises
        `ReshapeRefused` if it cannot move them.

        Source: ``update_provider_tree`` of Nova's ``virt/driver.py``.
        """

    def metrics(self) -> dict[str, float]:
        """Named numbers for the metrics weigher, such as a temperature."""

    def hardware(self) -> Hardware | None:
        """The host's NUMA cells and PCI devices; None if the driver tells none."""

    def guests(self) -> Mapping[str, int]:
        """The guests that run on the host: the instance's uuid, and the attempt that built the guest.

        Those that are being prepared or started are not among them, nor is what others run on the host.
        """

    async def recover(self, instances: Collection[Instance]) -> None:
        """After a start of the agent: the cell says that these instances are on the host."""

    async def prepare(self, instance: Instance) -> None:
        """Prepare everything for a guest but its start. Raises `BuildFailed`.

        ``instance.selection`` is what was claimed for it: allocations, mappings and its assignment, which
        says on which cells, CPUs, pages and PCI devices of the host it runs.
        """

    async def start(self, instance: Instance) -> None:
        """Start a guest that is prepared. Raises `BuildFailed`."""

    async def destroy(self, instance: str) -> None:
        """Remove every trace of an instance; one that is not there is fine."""


@runtime_checkable
class CapableDriver(Protocol):
    """What a driver has beside `Driver` if it tells what it can do apart from its providers."""

    def capabilities(self) -> Mapping[str, bool]:
        """The traits of what the driver can or cannot do, such as ``COMPUTE_NET_ATTACH_INTERFACE``. The roots
        of all nodes get those that are true, and lose the others where the agent has added them.

        Source: ``capabilities_as_traits`` of Nova's ``virt/driver.py``.
        """


@runtime_checkable
class PluggingDriver(Protocol):
    """What a driver has beside `Driver` if it plugs in the ports and accelerators of its guests."""

    async def prepare_attached(self, instance: Instance, attached: Attached) -> None:
        """`Driver.prepare`, for a guest that has ports and accelerators. Raises `BuildFailed`."""
