"""A host's resource providers as its driver describes them: a root and what is below it."""

import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from roost.compute.errors import NoSuchProvider
from roost.model.inventory import Inventory

_NAMESPACE = uuid.UUID("6f0d2a3e-6f57-4c3b-9d0a-7a1f6b5c2e11")


def provider_uuid(name: str) -> str:
    """The uuid that a provider made by an agent has: the same for the same name, after every start."""
    return str(uuid.uuid5(_NAMESPACE, name))


@dataclass(slots=True)
class ProviderData:
    """One provider of a tree. ``parent`` is a uuid, None for the root."""

    uuid: str
    name: str
    parent: str | None
    inventory: dict[str, Inventory] = field(default_factory=dict)
    traits: frozenset[str] = frozenset()
    aggregates: frozenset[str] = frozenset()


class ProviderTree:
    """Providers by name, parents before children. Drivers fill it; nothing is sent anywhere.

    Example:
        >>> tree = ProviderTree("compute-1")
        >>> tree.new_child("compute-1_gpu0", "compute-1").name
        'compute-1_gpu0'
        >>> tree.update_inventory("compute-1_gpu0", {"VGPU": Inventory(total=4)})
    """

    def __init__(self, root: str, root_uuid: str | None = None) -> None:
        self._providers: dict[str, ProviderData] = {}
        self._providers[root] = ProviderData(root_uuid or provider_uuid(root), root, None)
        self.root = self._providers[root]

    def __contains__(self, name: str) -> bool:
        return name in self._providers

    def __iter__(self) -> Iterator[ProviderData]:
        return iter(self._providers.values())

    def data(self, name: str) -> ProviderData:
        """A provider by name. Raises `NoSuchProvider`."""
        try:
            return self._providers[name]
        except KeyError:
            raise NoSuchProvider(f"provider tree of {self.root.name} has no provider {name}") from None

    def new_child(self, name: str, parent: str, child_uuid: str | None = None) -> ProviderData:
        """Add a provider under another. Raises `NoSuchProvider`; `ValueError` if the name is taken."""
        if name in self._providers:
            raise ValueError(f"provider tree of {self.root.name} has a provider {name} already")
        child = ProviderData(child_uuid or provider_uuid(name), name, self.data(parent).uuid)
        self._providers[name] = child
        return child

    def remove(self, name: str) -> None:
        """Take a provider out, with everything below it. Raises `NoSuchProvider`."""
        gone = {self.data(name).uuid}
        for provider in self._providers.values():
            if provider.parent in gone:
                gone.add(provider.uuid)
        self._providers = {
            key: provider for key, provider in self._providers.items() if provider.uuid not in gone
        }

    def update_inventory(self, name: str, inventory: Mapping[str, Inventory]) -> None:
        """Replace a provider's inventory. Raises `NoSuchProvider`."""
        self.data(name).inventory = dict(inventory)

    def update_traits(self, name: str, traits: Iterable[str]) -> None:
        """Replace a provider's traits. Raises `NoSuchProvider`."""
        self.data(name).traits = frozenset(traits)

    def update_aggregates(self, name: str, aggregates: Iterable[str]) -> None:
        """Replace a provider's aggregates. Raises `NoSuchProvider`."""
        self.data(name).aggregates = frozenset(aggregates)
