"""Reads and writes the providers of nodes in placement, for their agents."""

from collections.abc import Sequence
from typing import Any

import httpx

from roost.agents.errors import AccessRefused, EndpointUnavailable
from roost.agents.types import (
    CreateProvider,
    DeleteProvider,
    MoveProvider,
    ProviderRefusal,
    ProviderState,
    ProviderWrite,
    SetAggregates,
    SetInventories,
    SetTraits,
    Written,
)
from roost.ledger import LedgerError
from roost.machine import Question, UnknownService
from roost.placement.errors import ConcurrentUpdate, NotFound, PlacementError
from roost.placement.interface import Placement, Provider
from roost.storage import StorageError

_UNAVAILABLE = (StorageError, LedgerError, httpx.HTTPError)
_LEAST_SERVER_ERROR = 500
_NOT_OF_THE_WRITE = frozenset((401, 403, 429))
"""Statuses by which placement refuses this process, and not what it writes."""


PROVIDERS = "providers"
"""The service that reads and writes providers in placement."""


class FindProvider(Question[Provider | None], frozen=True):
    """Asks for one provider, as `ProviderRelay.find` does."""

    uuid: str


class ReadProviders(Question[tuple[ProviderState, ...]], frozen=True):
    """Asks for the providers of the tree of a root, as `ProviderRelay.read` does."""

    root: str


class RelayWrites(Question[Written], frozen=True):
    """Makes writes to the tree of a root, as `ProviderRelay.write` does."""

    root: str
    writes: tuple[ProviderWrite, ...]


class ProviderRelay:
    """Reads and writes trees of providers in a placement service."""

    def __init__(self, placement: Placement) -> None:
        self._placement = placement

    async def ask(self, question: Question[Any]) -> Any:
        """Answer one of the questions of this module."""
        match question:
            case FindProvider(uuid):
                return await self.find(uuid)
            case ReadProviders(root):
                return await self.read(root)
            case RelayWrites(root, writes):
                return await self.write(root, writes)
        raise UnknownService(f"the relay does not answer {type(question).__name__}")

    async def find(self, uuid: str) -> Provider | None:
        """A provider; None if placement has none of this uuid. Raises `EndpointUnavailable`."""
        try:
            return await self._placement.provider(uuid)
        except PlacementError as error:
            raise EndpointUnavailable(f"placement does not answer: {error}") from error
        except _UNAVAILABLE as error:
            raise EndpointUnavailable("placement cannot be reached") from error

    async def read(self, root: str) -> tuple[ProviderState, ...]:
        """The providers of the tree of a root; none if placement has none.

        Raises `AccessRefused` if it is no root, and `EndpointUnavailable`.
        """
        try:
            return tuple([await self._state(provider) for provider in await self._tree(root)])
        except NotFound as error:
            raise EndpointUnavailable(f"a provider was deleted while its tree was read: {error}") from error
        except PlacementError as error:
            raise EndpointUnavailable(f"placement does not answer: {error}") from error
        except _UNAVAILABLE as error:
            raise EndpointUnavailable("placement cannot be reached") from error

    async def write(self, root: str, writes: Sequence[ProviderWrite]) -> Written:
        """Make writes one after the other, up to the first that placement refuses.

        Raises `AccessRefused` for a provider that is not in the tree of the root, `EndpointUnavailable`.
        """
        done = 0
        try:
            in_tree = {provider.uuid for provider in await self._tree(root)}
            generations: dict[str, int] = {}
            for write in writes:
                self._check(root, in_tree, write)
                await self._write(root, write, generations)
                in_tree.add(write.uuid)
                done += 1
        except PlacementError as error:
            if error.status >= _LEAST_SERVER_ERROR or error.status in _NOT_OF_THE_WRITE:
                raise EndpointUnavailable(f"placement does not answer: {error}") from error
            return Written(done, ProviderRefusal(str(error), isinstance(error, ConcurrentUpdate | NotFound)))
        except _UNAVAILABLE as error:
            raise EndpointUnavailable("placement cannot be reached") from error
        return Written(done)

    async def _tree(self, root: str) -> Sequence[Provider]:
        tree = await self._placement.tree(root)
        for provider in tree:
            if provider.uuid == root and provider.parent is not None:
                raise AccessRefused(f"provider {root} is not the root of a tree")
        return tree

    async def _state(self, provider: Provider) -> ProviderState:
        return ProviderState(
            uuid=provider.uuid,
            name=provider.name,
            parent=provider.parent,
            # Read before the rest: what is changed in between is refused when it is written.
            generation=provider.generation,
            inventories=await self._placement.inventories(provider.uuid),
            traits=await self._placement.traits(provider.uuid),
            aggregates=await self._placement.aggregates(provider.uuid),
        )

    def _check(self, root: str, in_tree: set[str], write: ProviderWrite) -> None:
        named: list[str | None] = [write.uuid]
        if isinstance(write, CreateProvider):
            named = [root if write.uuid == root and write.parent is None else write.parent]
            in_tree = in_tree | {root}
        elif isinstance(write, MoveProvider) and write.uuid != root:
            named.append(write.parent)
        for uuid in named:
            if uuid not in in_tree:
                raise AccessRefused(f"provider {uuid} is not in the tree of {root}")

    async def _write(self, root: str, write: ProviderWrite, generations: dict[str, int]) -> None:
        placement, uuid = self._placement, write.uuid
        match write:
            case CreateProvider(_, name, parent):
                made = await placement.ensure_provider(uuid, name, parent)
                if made.root != root:
                    raise AccessRefused(f"provider {uuid} is in the tree of {made.root}")
                generations[uuid] = made.generation
            case MoveProvider(_, name, parent):
                await placement.update_provider(uuid, name, parent)
            case DeleteProvider():
                await placement.delete_provider(uuid)
            case SetInventories(_, inventories, generation):
                for name in inventories:
                    if name.startswith("CUSTOM_"):
                        await placement.ensure_resource_class(name)
                at = generations.get(uuid, generation)
                generations[uuid] = await placement.set_inventories(uuid, inventories, at)
            case SetTraits(_, traits, generation):
                at = generations.get(uuid, generation)
                generations[uuid] = await placement.set_traits(uuid, traits, at)
            case SetAggregates(_, aggregates, generation):
                at = generations.get(uuid, generation)
                generations[uuid] = await placement.set_aggregates(uuid, aggregates, at)
