"""A node's resource providers, for its driver to change: a root and what is below it."""

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from roost.agents.types import ProviderState
from roost.compute.errors import NoSuchProvider
from roost.model.inventory import Inventory

_NAMESPACE = uuid.UUID("6f0d2a3e-6f57-4c3b-9d0a-7a1f6b5c2e11")


@lru_cache(maxsize=10_000)
def provider_uuid(name: str) -> str:
    """The uuid that a provider made by an agent has: the same for the same name, after every start."""
    return str(uuid.uuid5(_NAMESPACE, name))


@dataclass(slots=True)
class ProviderData:
    """One provider of a tree. ``parent`` is a uuid, None for the root.

    ``told``: what the driver has said of the provider since the tree was made: ``place`` (name and parent),
    ``inventory``, ``traits`` and ``aggregates``. The rest is as placement has it.
    """

    uuid: str
    name: str
    parent: str | None
    inventory: dict[str, Inventory] = field(default_factory=dict)
    traits: frozenset[str] = frozenset()
    aggregates: frozenset[str] = frozenset()
    told: set[str] = field(default_factory=set)


class ProviderTree:
    """The providers of a node. A driver changes them; nothing is sent anywhere.

    The tree that a driver gets has what placement has, whoever made it. A provider is named by its name or
    uuid. What the driver does not touch is left alone, and what others have made is never deleted.

    Source: the methods and their meanings are those of ``ProviderTree`` in Nova's
    ``compute/provider_tree.py``; `put_child` and `move` are beside them.

    Example:
        >>> tree = ProviderTree("compute-1")
        >>> tree.new_child("compute-1_gpu0", "compute-1").name
        'compute-1_gpu0'
        >>> tree.update_inventory("compute-1_gpu0", {"VGPU": Inventory(total=4)})
    """

    def __init__(self, root: str, root_uuid: str | None = None, there: Sequence[ProviderState] = ()) -> None:
        """``there``: the tree of the root as placement has it."""
        uuid_of_root = root_uuid or provider_uuid(root)
        self._providers: dict[str, ProviderData] = {}
        self.removed: set[str] = set()
        """The uuids of the providers that the driver has taken out."""
        for state in there:
            self._providers[state.uuid] = ProviderData(
                state.uuid, state.name, state.parent, dict(state.inventories), state.traits, state.aggregates
            )
        self.root = self._providers.setdefault(uuid_of_root, ProviderData(uuid_of_root, root, None))
        self.root.name, self.root.parent = root, None
        self.root.told.add("place")

    def __contains__(self, name: str) -> bool:
        return self._found(name) is not None

    exists = __contains__

    def __iter__(self) -> Iterator[ProviderData]:
        """All providers, each after its parent."""
        children: dict[str | None, list[ProviderData]] = {}
        for provider in self._providers.values():
            children.setdefault(provider.parent, []).append(provider)
        following = [self.root]
        while following:
            provider = following.pop(0)
            yield provider
            following += children.get(provider.uuid, ())

    def data(self, name: str) -> ProviderData:
        """A provider. Raises `NoSuchProvider`."""
        found = self._found(name)
        if found is None:
            raise NoSuchProvider(f"provider tree of {self.root.name} has no provider {name}")
        return found

    def children(self, name: str) -> list[ProviderData]:
        """The providers right below one. Raises `NoSuchProvider`."""
        parent = self.data(name).uuid
        return [provider for provider in self._providers.values() if provider.parent == parent]

    def new_child(self, name: str, parent: str, child_uuid: str | None = None) -> ProviderData:
        """Add a provider below another. Raises `NoSuchProvider`; `ValueError` if it is there already."""
        child = ProviderData(child_uuid or provider_uuid(name), name, self.data(parent).uuid, told={"place"})
        if name in self or child.uuid in self._providers:
            raise ValueError(f"provider tree of {self.root.name} has a provider {name} already")
        self._providers[child.uuid] = child
        self.removed.discard(child.uuid)
        return child

    def put_child(self, name: str, parent: str, child_uuid: str | None = None) -> ProviderData:
        """Have a provider below another: it is added, or moved there. Raises as `move` and `new_child`."""
        if child_uuid is None and name not in self:
            child_uuid = provider_uuid(name)
        if (child_uuid or name) not in self:
            return self.new_child(name, parent, child_uuid)
        child = self.data(child_uuid or name)
        self.move(child.uuid, parent)
        child.name = name
        return child

    def move(self, name: str, parent: str) -> None:
        """Put a provider, with everything below it, below another one.

        Raises: `NoSuchProvider`; `ValueError` if it is the root, or if ``parent`` is below it.
        """
        child, above = self.data(name), self.data(parent)
        up: ProviderData | None = above
        while up is not None and up is not child:
            up = None if up.parent is None else self._providers[up.parent]
        if up is child or child is self.root:
            raise ValueError(f"provider {child.name} cannot be moved below {above.name}")
        child.parent = above.uuid
        child.told.add("place")

    def remove(self, name: str) -> None:
        """Take a provider out, with everything below it. Raises `NoSuchProvider`."""
        gone = [self.data(name).uuid]
        for provider in gone:
            gone += [below.uuid for below in self._providers.values() if below.parent == provider]
        for provider in gone:
            del self._providers[provider]
        self.removed.update(gone)

    def update_inventory(self, name: str, inventory: Mapping[str, Inventory]) -> None:
        """Replace a provider's inventory. Raises `NoSuchProvider`."""
        provider = self.data(name)
        provider.inventory = dict(inventory)
        provider.told.add("inventory")

    def update_traits(self, name: str, traits: Iterable[str]) -> None:
        """Replace a provider's traits. Raises `NoSuchProvider`."""
        provider = self.data(name)
        provider.traits = frozenset(traits)
        provider.told.add("traits")

    def add_traits(self, name: str, *traits: str) -> None:
        """Add traits to a provider. Raises `NoSuchProvider`."""
        self.update_traits(name, self.data(name).traits | {*traits})

    def remove_traits(self, name: str, *traits: str) -> None:
        """Take traits from a provider. Raises `NoSuchProvider`."""
        self.update_traits(name, self.data(name).traits - {*traits})

    def update_aggregates(self, name: str, aggregates: Iterable[str]) -> None:
        """Replace a provider's aggregates. Raises `NoSuchProvider`."""
        provider = self.data(name)
        provider.aggregates = frozenset(aggregates)
        provider.told.add("aggregates")

    def add_aggregates(self, name: str, *aggregates: str) -> None:
        """Put a provider into aggregates. Raises `NoSuchProvider`."""
        self.update_aggregates(name, self.data(name).aggregates | {*aggregates})

    def remove_aggregates(self, name: str, *aggregates: str) -> None:
        """Take a provider out of aggregates. Raises `NoSuchProvider`."""
        self.update_aggregates(name, self.data(name).aggregates - {*aggregates})

    def _found(self, name: str) -> ProviderData | None:
        if name in self._providers:
            return self._providers[name]
        return next((each for each in self._providers.values() if each.name == name), None)
