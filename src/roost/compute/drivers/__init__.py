"""Drivers: how one kind of host describes itself, builds and destroys."""

from collections.abc import Collection
from typing import Protocol

from roost.compute.hardware import Hardware
from roost.compute.provider_tree import ProviderTree
from roost.model.instance import Instance


class Driver(Protocol):
    """One host's hypervisor, as its agent uses it."""

    def update_provider_tree(self, tree: ProviderTree) -> None:
        """Fill the tree (its root is the host) with what the host has."""

    def metrics(self) -> dict[str, float]:
        """Named numbers for the metrics weigher, such as a temperature."""

    def hardware(self) -> Hardware | None:
        """The host's NUMA cells and PCI devices; None if the driver tells none."""

    def guests(self) -> Collection[str]:
        """The instances that are on the host, built or half built."""

    async def recover(self, instances: Collection[Instance]) -> None:
        """After a start of the agent: these instances were running here."""

    async def build(self, instance: Instance) -> None:
        """Build an instance; one that is there already is left running. Raises `BuildFailed`.

        ``instance.selection`` is what was claimed for it: allocations, mappings and its assignment, which
        says on which cells, CPUs, pages and PCI devices of the host it runs.
        """

    async def destroy(self, instance: str) -> None:
        """Remove every trace of an instance; one that is not there is fine."""
