"""The resource providers of a host, for its driver to change: trees of nodes, and sharing providers."""

import copy
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from roost.agent.errors import NoSuchProvider
from roost.agent.protocol.types import ProviderState
from roost.agent.tree_provider import (
    DesiredProvider,
    ProviderData,
    Records,
    TreeProvider,
    parents_first,
    records_of,
)
from roost.model.names import provider_uuid
from roost.model.vocabulary import SHARING_TRAIT


class ProviderTree:
    """Trees of providers at one moment. A driver changes them; nothing is sent anywhere.

    A driver gets the providers as placement has them, those of others included. Methods take a provider's
    name or uuid. Parts that the driver does not touch are left alone, and providers of others are never
    deleted. Only one task may use a tree at a time. All methods raise `NoSuchProvider`, a ``ValueError``, for
    a missing provider, and ``ValueError`` for one that exists already.

    Source: the methods and their meanings are those of ``ProviderTree`` in Nova's
    ``compute/provider_tree.py``; `put_root`, `put_child` and `move` are beside them.

    Example:
        >>> tree = ProviderTree()
        >>> node = tree.new_root("compute-1", "11111111-1111-4111-8111-111111111111")
        >>> gpu = tree.new_child("compute-1_gpu0", "compute-1")
        >>> tree.update_inventory("compute-1_gpu0", {"VGPU": {"total": 4}})
        True
    """

    def __init__(self) -> None:
        self._providers: dict[str, TreeProvider] = {}
        self._roots: dict[str, TreeProvider] = {}
        self._root_names: dict[str, TreeProvider] = {}
        self.removed: set[str] = set()
        """The uuids of the providers that the driver has removed."""

    @classmethod
    def of(cls, there: Sequence[ProviderState]) -> "ProviderTree":
        """Return the trees that placement has."""
        tree = cls()
        tree.populate_from_iterable(
            [
                {
                    "uuid": state.uuid,
                    "name": state.name,
                    "generation": state.generation,
                    "parent_provider_uuid": state.parent,
                }
                for state in there
            ]
        )
        for state in there:
            provider = tree._providers[state.uuid]
            provider.inventory = records_of(state.inventories)
            provider.traits, provider.aggregates = set(state.traits), set(state.aggregates)
        return tree

    def __contains__(self, name_or_uuid: str) -> bool:
        return self._search(name_or_uuid) is not None

    exists = __contains__

    def desired(self) -> Iterator[DesiredProvider]:
        """Yield the driver's changes to all providers, each after its parent.

        Raises `msgspec.ValidationError` for a record that is no inventory.
        """
        return (provider.desired() for provider in self._walk())

    def data(self, name_or_uuid: str) -> ProviderData:
        """Return a copy of a provider."""
        return self._found(name_or_uuid).data()

    def get_provider_uuids(self, name_or_uuid: str | None = None) -> list[str]:
        """Return the uuids of a provider and all below it, or of all providers, each after its parent."""
        walked = self._walk() if name_or_uuid is None else self._found(name_or_uuid).walk()
        return [provider.uuid for provider in walked]

    def get_provider_uuids_in_tree(self, name_or_uuid: str) -> list[str]:
        """Return the uuids of the whole tree of a provider, each after its parent."""
        provider = self._found(name_or_uuid)
        while provider.parent_uuid is not None:
            provider = self._providers[provider.parent_uuid]
        return [each.uuid for each in provider.walk()]

    def subtree(self, name_or_uuid: str) -> "ProviderTree":
        """Return a copy of the tree of one root. Raises ``ValueError`` for another provider."""
        root = self._found(name_or_uuid)
        if root.parent_uuid is not None:
            raise ValueError(f"provider {name_or_uuid} is not a root")
        tree = ProviderTree()
        copied = copy.deepcopy(root)
        tree._roots[copied.uuid] = tree._root_names[copied.name] = copied
        tree._providers = {provider.uuid: provider for provider in copied.walk()}
        return tree

    # Providers

    def populate_from_iterable(self, provider_dicts: Collection[Mapping[str, Any]]) -> None:
        """Add providers as placement has them, without inventories, traits and aggregates.

        A provider that exists is replaced; its children are removed unless they are among the given ones.
        Raises ``ValueError``, with nothing changed, if a parent is neither in the tree nor given.
        """
        left = {each["uuid"]: each for each in provider_dicts}
        parents = {each.get("parent_provider_uuid") for each in left.values()} - {None}
        if missing := parents - left.keys() - self._providers.keys():
            raise ValueError(f"there are no parents {', '.join(sorted(map(str, missing)))}")
        for each in parents_first(left):
            uuid, parent = each["uuid"], each.get("parent_provider_uuid")
            # By uuid alone: a search by name goes through all providers, for each of them.
            if (replaced := self._providers.get(uuid)) is not None:
                self._take_out(replaced)
            above = None if parent is None else self._found(parent)
            self._put(TreeProvider(uuid, each["name"], each.get("generation"), parent), above)

    def new_root(self, name: str, uuid: str, generation: int | None = None) -> str:
        """Add a root. Returns its uuid. Its name need not be unique.

        A root that was removed before comes back without inventory, traits and aggregates.
        """
        if uuid in self:
            raise ValueError(f"there is a provider {uuid} already")
        self._put(self._new(uuid, name, generation, None), None)
        return uuid

    def new_child(
        self, name: str, parent: str, uuid: str | None = None, generation: int | None = None
    ) -> str:
        """Add a provider below another. Returns its uuid.

        With ``uuid``, the name need not be unique. A provider that was removed before comes back without
        inventory, traits and aggregates.
        """
        if (uuid or name) in self:
            raise ValueError(f"there is a provider {uuid or name} already")
        above = self._found(parent)
        child = self._new(uuid or provider_uuid(name), name, generation, above.uuid)
        self._put(child, above)
        return child.uuid

    def put_root(self, name: str, uuid: str) -> str:
        """Add a root, or rename the one with this uuid. Returns its uuid."""
        if (root := self._roots.get(uuid)) is None:
            return self.new_root(name, uuid)
        if self._root_names.get(root.name) is root:
            del self._root_names[root.name]
        self._root_names[name] = root
        root.name, root.is_placed = name, True
        return uuid

    def put_child(self, name: str, parent: str, uuid: str | None = None) -> str:
        """Add a provider below another, or move it there. Returns its uuid. Raises as `move`."""
        child = self._search(uuid or name) or self._search(uuid or provider_uuid(name))
        if child is None:
            return self.new_child(name, parent, uuid)
        self.move(child.uuid, parent)
        child.name = name
        return child.uuid

    def move(self, name_or_uuid: str, parent: str) -> None:
        """Move a provider, with everything below it, below another one.

        Raises ``ValueError`` if it is a root, or if ``parent`` is below it.
        """
        child, above = self._found(name_or_uuid), self._found(parent)
        if child.parent_uuid is None or above in child.walk():
            raise ValueError(f"provider {child.name} cannot be moved below {above.name}")
        child.is_placed = True
        if child.parent_uuid != above.uuid:
            del self._providers[child.parent_uuid].children[child.uuid]
            above.children[child.uuid] = child
            child.parent_uuid = above.uuid

    def remove(self, name_or_uuid: str) -> None:
        """Remove a provider, with everything below it."""
        self.removed.update(self._take_out(self._found(name_or_uuid)))

    # What providers have

    def has_inventory(self, name_or_uuid: str) -> bool:
        """Return whether a provider has any inventory."""
        return bool(self._found(name_or_uuid).inventory)

    def has_inventory_changed(self, name_or_uuid: str, inventory: Records) -> bool:
        """Return whether an inventory differs from the provider's.

        A field that ``inventory`` lacks is no difference; one that the provider's lacks is.
        """
        own, other = self._found(name_or_uuid).inventory, records_of(inventory)
        return own.keys() != other.keys() or any(
            key not in own[name] or own[name][key] != value
            for name, record in other.items()
            for key, value in record.items()
        )

    def update_inventory(self, name_or_uuid: str, inventory: Records, generation: int | None = None) -> bool:
        """Replace a provider's inventory if it differs. Returns whether it did."""
        changes = self.has_inventory_changed(name_or_uuid, inventory)
        provider = self._found(name_or_uuid)
        records = records_of(inventory)
        if changes:
            provider.inventory = records_of(inventory)
        elif provider.driver_inventory is not None:
            # The tree keeps the fields that a record lacks, and so do the records of the driver.
            before = provider.driver_inventory
            records = {name: {**before.get(name, {}), **record} for name, record in records.items()}
        provider.driver_inventory = records
        _raise_generation(provider, generation)
        return changes

    def driver_classes(self, name_or_uuid: str) -> frozenset[str]:
        """Return the resource classes whose inventories the driver has reported of a provider."""
        return frozenset(self._found(name_or_uuid).driver_inventory or ())

    def add_inventory(self, name_or_uuid: str, inventory: Records) -> None:
        """Add or replace some classes of a provider's inventory; the driver's other classes stay."""
        provider, added = self._found(name_or_uuid), records_of(inventory)
        before = provider.inventory if provider.driver_inventory is None else provider.driver_inventory
        provider.driver_inventory = {**before, **added}
        provider.inventory = {**provider.inventory, **records_of(inventory)}

    def has_sharing_provider(self, resource_class: str) -> bool:
        """Return whether a sharing provider has inventory of a class."""
        return any(
            resource_class in provider.inventory and SHARING_TRAIT in provider.traits
            for provider in self._walk()
        )

    def has_traits(self, name_or_uuid: str, traits: Iterable[str]) -> bool:
        """Return whether a provider has all of these traits."""
        return self._found(name_or_uuid).traits >= set(traits)

    def have_traits_changed(self, name_or_uuid: str, traits: Iterable[str]) -> bool:
        """Return whether traits differ from the provider's."""
        return self._found(name_or_uuid).traits != set(traits)

    def update_traits(self, name_or_uuid: str, traits: Iterable[str], generation: int | None = None) -> bool:
        """Replace a provider's traits. Returns whether they differed."""
        provider, before = self._found(name_or_uuid), self._found(name_or_uuid).traits
        provider.traits, provider.sets_traits = set(traits), True
        _raise_generation(provider, generation)
        return provider.traits != before

    def add_traits(self, name_or_uuid: str, *traits: str) -> None:
        """Add traits to a provider. Without any, the provider need not exist."""
        if traits:
            self.update_traits(name_or_uuid, self._found(name_or_uuid).traits | {*traits})

    def remove_traits(self, name_or_uuid: str, *traits: str) -> None:
        """Remove traits from a provider. Without any, the provider need not exist."""
        if traits:
            self.update_traits(name_or_uuid, self._found(name_or_uuid).traits - {*traits})

    def in_aggregates(self, name_or_uuid: str, aggregates: Iterable[str]) -> bool:
        """Return whether a provider is in all of these aggregates."""
        return self._found(name_or_uuid).aggregates >= set(aggregates)

    def have_aggregates_changed(self, name_or_uuid: str, aggregates: Iterable[str]) -> bool:
        """Return whether aggregates differ from the provider's."""
        return self._found(name_or_uuid).aggregates != set(aggregates)

    def update_aggregates(
        self, name_or_uuid: str, aggregates: Iterable[str], generation: int | None = None
    ) -> bool:
        """Replace a provider's aggregates. Returns whether they differed."""
        provider, before = self._found(name_or_uuid), self._found(name_or_uuid).aggregates
        provider.aggregates, provider.sets_aggregates = set(aggregates), True
        _raise_generation(provider, generation)
        return provider.aggregates != before

    def add_aggregates(self, name_or_uuid: str, *aggregates: str) -> None:
        """Add a provider to aggregates."""
        self.update_aggregates(name_or_uuid, self._found(name_or_uuid).aggregates | {*aggregates})

    def remove_aggregates(self, name_or_uuid: str, *aggregates: str) -> None:
        """Remove a provider from aggregates."""
        self.update_aggregates(name_or_uuid, self._found(name_or_uuid).aggregates - {*aggregates})

    def update_resources(self, name_or_uuid: str, resources: Mapping[str, Collection[Any]]) -> bool:
        """Replace the objects behind a provider's units, which placement does not know.

        Returns whether they differed.
        """
        provider, before = self._found(name_or_uuid), self._found(name_or_uuid).resources
        provider.resources = {name: set(things) for name, things in resources.items()}
        return provider.resources != before

    # Where providers are

    def _walk(self) -> Iterator[TreeProvider]:
        for root in self._roots.values():
            yield from root.walk()

    def _search(self, name_or_uuid: str) -> TreeProvider | None:
        # Roots first, as there may be thousands of them.
        if (root := self._roots.get(name_or_uuid) or self._root_names.get(name_or_uuid)) is not None:
            return root
        if (provider := self._providers.get(name_or_uuid)) is not None:
            return provider
        return next((each for each in self._walk() if each.name == name_or_uuid), None)

    def _found(self, name_or_uuid: str) -> TreeProvider:
        if (found := self._search(name_or_uuid)) is None:
            raise NoSuchProvider(f"there is no provider {name_or_uuid}")
        return found

    def _new(self, uuid: str, name: str, generation: int | None, parent: str | None) -> TreeProvider:
        provider = TreeProvider(uuid, name, generation, parent, is_placed=True)
        if uuid in self.removed:
            self.removed.discard(uuid)
            provider.driver_inventory, provider.sets_traits, provider.sets_aggregates = {}, True, True
        return provider

    def _put(self, provider: TreeProvider, parent: TreeProvider | None) -> None:
        if parent is None:
            self._roots[provider.uuid] = self._root_names[provider.name] = provider
        else:
            parent.children[provider.uuid] = provider
        self._providers[provider.uuid] = provider

    def _take_out(self, provider: TreeProvider) -> list[str]:
        """Remove a provider and all below it. Returns their uuids."""
        if provider.parent_uuid is None:
            del self._roots[provider.uuid]
            self._root_names.pop(provider.name, None)
        else:
            del self._providers[provider.parent_uuid].children[provider.uuid]
        gone = [each.uuid for each in provider.walk()]
        for uuid in gone:
            del self._providers[uuid]
        return gone


def _raise_generation(provider: TreeProvider, generation: int | None) -> None:
    if generation is not None:
        provider.generation = generation
