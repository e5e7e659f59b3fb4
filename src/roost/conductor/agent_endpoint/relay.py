"""Reads and writes the providers of nodes in placement, for their agents."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

import httpx
import structlog

from roost.agent.protocol.errors import AccessRefused, EndpointUnavailable
from roost.agent.protocol.types import (
    CreateProvider,
    DeleteProvider,
    MovedClaim,
    MoveProvider,
    ProviderRefusal,
    ProviderState,
    ProviderWrite,
    SetAggregates,
    SetInventories,
    SetTraits,
    TreeClaim,
    Written,
)
from roost.conductor.agent_endpoint.offer_limits import NO_LIMITS, OfferLimits
from roost.conductor.agent_endpoint.sharing_providers import SharingProviders
from roost.ledger import Held, LedgerError
from roost.model.text import error_text
from roost.placement.commands.allocations import ConsumerWrite
from roost.placement.commands.reshape import NewInventories
from roost.placement.errors import ConcurrentUpdate, NotFound, PlacementError
from roost.placement.interface import Placement, Provider
from roost.scheduler.selection.claim_result import is_outage
from roost.storage import StorageError

_log = structlog.get_logger()
_UNAVAILABLE = (StorageError, LedgerError, httpx.HTTPError)
_LEAST_SERVER_ERROR = 500
_NOT_OF_THE_WRITE = frozenset((401, 403, 429))
"""Statuses by which placement refuses this process, not its write."""

AT_ONCE = 32
"""Consumers that are read from placement at the same time."""

_READ_AT_ONCE = 16
"""Providers that are read between two pauses: a placement in this process answers without one."""

T = TypeVar("T")
P = ParamSpec("P")


def _telling(
    method: Callable[Concatenate["ProviderRelay", P], Awaitable[T]],
) -> Callable[Concatenate["ProviderRelay", P], Coroutine[Any, Any, T]]:
    """Log once that placement is away, and once that it is back.

    Hosts are told that it is away, but not its address.
    """

    @wraps(method)
    async def telling(relay: "ProviderRelay", /, *arguments: P.args, **named: P.kwargs) -> T:
        try:
            answer = await method(relay, *arguments, **named)
        except EndpointUnavailable as error:
            cause = error.__cause__
            if isinstance(cause, Exception) and is_outage(cause) and not relay.is_away:
                relay.is_away = True
                why = error_text(cause)
                _log.warning("placement is away: the reports of agents wait for it", error=why)
            raise
        if relay.is_away:
            relay.is_away = False
            _log.warning("placement is there again: agents report to it")
        return answer

    return telling


@contextmanager
def _reading() -> Iterator[None]:
    """Raise `EndpointUnavailable` for errors of placement: the agent asks again later."""
    try:
        yield
    except NotFound as error:
        raise EndpointUnavailable(f"a provider was deleted while it was read: {error}") from error
    except PlacementError as error:
        raise EndpointUnavailable(f"placement does not answer: {error}") from error
    except _UNAVAILABLE as error:
        raise EndpointUnavailable("placement cannot be reached") from error


class ProviderRelay:
    """Reads and writes trees of providers in a placement service, and the sharing providers that serve them.

    ``sharing``: the names of the sharing providers that may be written. ``limits``: of inventories.
    ``is_away``: placement did not answer last.
    """

    def __init__(
        self, placement: Placement, sharing: Collection[str] = (), limits: OfferLimits = NO_LIMITS
    ) -> None:
        self._placement = placement
        self._limits = limits
        self._sharing = SharingProviders(placement, sharing)
        self.is_away = False

    @_telling
    async def find(self, uuid: str) -> Provider | None:
        """Return a provider; None if placement has none of this uuid. Raises `EndpointUnavailable`."""
        with _reading():
            return await self._placement.provider(uuid)

    @_telling
    async def read(self, root: str) -> tuple[ProviderState, ...]:
        """Return the providers of the tree of a root; none if placement has none.

        Raises `AccessRefused` if it is no root, and `EndpointUnavailable`.
        """
        with _reading():
            return await self._states(await self._tree(root))

    @_telling
    async def sharing(self, aggregates: Collection[str], wanted: Sequence[str]) -> tuple[ProviderState, ...]:
        """Return the sharing providers in some aggregates, and the ``wanted`` ones that may be written.

        A wanted provider that does not exist is left out. Raises `EndpointUnavailable`.
        """
        with _reading():
            serving = await self._sharing.serving(aggregates, wanted)
            return await self._states(serving)

    @_telling
    async def write(self, root: str, writes: Sequence[ProviderWrite]) -> Written:
        """Make writes one after the other, up to the first that is refused.

        A write to a sharing provider that agents may not write, or to one that is gone, is refused.
        Raises `AccessRefused` for any other that is not in the tree of the root, `EndpointUnavailable`.
        """
        done = 0
        try:
            in_tree = {provider.uuid for provider in await self._tree(root)}
            generations: dict[str, int] = {}
            for write in writes:
                judged = None
                if write.uuid not in in_tree | {root}:
                    judged = await self._sharing.judge(write)
                if isinstance(write, SetInventories):
                    tree = in_tree if judged is None else ()
                    offered = {write.uuid: write.inventories}
                    if (excess := await self._limits.judge(self._placement, tree, offered)) is not None:
                        return Written(done, excess)
                if judged is None:
                    if (refusal := await self._check(root, in_tree, write)) is not None:
                        return Written(done, refusal)
                    await self._write(root, write, generations)
                    in_tree.add(write.uuid)
                elif judged.refusal is not None:
                    return Written(done, judged.refusal)
                else:
                    await self._write(write.uuid, write, generations)
                done += 1
        except PlacementError as error:
            if error.status >= _LEAST_SERVER_ERROR or error.status in _NOT_OF_THE_WRITE:
                raise EndpointUnavailable(f"placement does not answer: {error}") from error
            return Written(done, ProviderRefusal(str(error), isinstance(error, ConcurrentUpdate | NotFound)))
        except _UNAVAILABLE as error:
            raise EndpointUnavailable("placement cannot be reached") from error
        return Written(done)

    @_telling
    async def claims(self, root: str) -> dict[str, TreeClaim]:
        """Return the allocations of each consumer that holds some in the tree of a root.

        Raises `AccessRefused` if it is no root, and `EndpointUnavailable`.
        """
        with _reading():
            tree = [provider.uuid for provider in await self._tree(root)]
            some = await asyncio.gather(*map(self._placement.consumers_on, tree))
            consumers = sorted({consumer for of_one in some for consumer in of_one})
            held = await self._held(consumers)
        return {
            each.consumer.uuid: TreeClaim(
                allocations=each.allocations,
                generation=each.consumer.generation,
                project_id=each.consumer.project_id,
                user_id=each.consumer.user_id,
                consumer_type=each.consumer.consumer_type,
            )
            for each in held
        }

    @_telling
    async def reshape(
        self, root: str, inventories: Sequence[SetInventories], claims: Mapping[str, MovedClaim]
    ) -> ProviderRefusal | None:
        """Change inventories of the tree of a root and write claims, all or nothing; returns why not.

        Raises `AccessRefused` for a provider that is not in the tree. Raises `EndpointUnavailable`: then
        placement may have made the reshape.
        """
        try:
            in_tree = {provider.uuid for provider in await self._tree(root)}
            for each in inventories:
                if (refusal := await self._check(root, in_tree, each)) is not None:
                    return refusal
            offered = {each.uuid: each.inventories for each in inventories}
            if (excess := await self._limits.judge(self._placement, in_tree, offered)) is not None:
                return excess
            held = {each.consumer.uuid: each.consumer for each in await self._held([*claims])}
            if gone := sorted(claims.keys() - held.keys()):
                return ProviderRefusal(f"consumer {gone[0]} holds nothing any more", conflict=True)
            writes = [
                ConsumerWrite(
                    consumer=uuid,
                    allocations=claim.allocations,
                    project_id=held[uuid].project_id,
                    user_id=held[uuid].user_id,
                    consumer_type=held[uuid].consumer_type,
                    generation=claim.generation,
                )
                for uuid, claim in claims.items()
            ]
            for name in sorted({name for each in inventories for name in each.inventories}):
                if name.startswith("CUSTOM_"):
                    await self._placement.ensure_resource_class(name)
            new = [NewInventories(each.uuid, each.inventories, each.generation) for each in inventories]
            await self._placement.reshape(new, writes)
        except PlacementError as error:
            if error.status >= _LEAST_SERVER_ERROR or error.status in _NOT_OF_THE_WRITE:
                raise EndpointUnavailable(f"placement does not answer: {error}") from error
            return ProviderRefusal(str(error), isinstance(error, ConcurrentUpdate | NotFound))
        except _UNAVAILABLE as error:
            raise EndpointUnavailable("placement cannot be reached") from error
        return None

    async def _held(self, consumers: Sequence[str]) -> list[Held]:
        """Return the allocations of consumers; those that hold nothing are left out."""
        found: list[Held] = []
        for first in range(0, len(consumers), AT_ONCE):
            some = consumers[first : first + AT_ONCE]
            there = await asyncio.gather(*map(self._placement.allocations_of, some))
            found += [each for each in there if each is not None]
        return found

    async def _tree(self, root: str) -> Sequence[Provider]:
        tree = await self._placement.tree(root)
        for provider in tree:
            if provider.uuid == root and provider.parent is not None:
                raise AccessRefused(f"provider {root} is not the root of a tree")
        return tree

    async def _states(self, providers: Sequence[Provider]) -> tuple[ProviderState, ...]:
        found = []
        for number, provider in enumerate(providers, 1):
            found.append(await self._state(provider))
            if number % _READ_AT_ONCE == 0:
                await asyncio.sleep(0)
        return tuple(found)

    async def _state(self, provider: Provider) -> ProviderState:
        return ProviderState(
            uuid=provider.uuid,
            name=provider.name,
            parent=provider.parent,
            # The generation is read first: after a change in between the write is refused.
            generation=provider.generation,
            inventories=await self._placement.inventories(provider.uuid),
            traits=await self._placement.traits(provider.uuid),
            aggregates=await self._placement.aggregates(provider.uuid),
        )

    async def _check(self, root: str, in_tree: set[str], write: ProviderWrite) -> ProviderRefusal | None:
        """Check that a write concerns the tree of the root alone.

        Returns a refusal if the provider is gone; raises `AccessRefused` if it is in another tree.
        """
        named: list[str | None] = [write.uuid]
        if isinstance(write, CreateProvider):
            named = [root if write.uuid == root and write.parent is None else write.parent]
            in_tree = in_tree | {root}
        elif isinstance(write, MoveProvider) and write.uuid != root:
            named.append(write.parent)
        for uuid in named:
            if uuid in in_tree:
                continue
            if uuid is not None and await self._placement.provider(uuid) is None:
                return ProviderRefusal(f"provider {uuid} was deleted since it was read", conflict=True)
            raise AccessRefused(f"provider {uuid} is not in the tree of {root}")
        return None

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
