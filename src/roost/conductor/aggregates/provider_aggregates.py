"""Writes the aggregates of providers in placement."""

import asyncio
from collections.abc import Collection, Iterable
from typing import Protocol

from roost.placement.errors import ConcurrentUpdate, NotFound
from roost.placement.interface import Provider

ATTEMPTS = 4
"""Writes to a provider that others change at the same time. Then it is left to the next round, as in Nova."""

AT_ONCE = 32
"""Providers that are written at the same time."""


class MirrorPlacement(Protocol):
    """The part of `roost.placement.interface.Placement` that is needed."""

    async def provider(self, uuid: str) -> Provider | None: ...

    async def aggregates(self, provider: str) -> frozenset[str]: ...

    async def providers_in_aggregate(self, aggregate: str) -> frozenset[str]: ...

    async def set_aggregates(
        self, provider: str, aggregates: Iterable[str], generation: int | None = None
    ) -> int: ...


class MemberSource(Protocol):
    """The source of the members of aggregates, such as
    `roost.state.api_database.aggregates.store.AggregateStore`."""

    async def aggregates_of(self, node: str) -> frozenset[str]: ...


async def bring(
    source: MemberSource, placement: MirrorPlacement, aggregate: str, nodes: Collection[str]
) -> None:
    """Bring some nodes into an aggregate in placement or out of it, as ``source`` says.

    When this returns, no mirror writes the nodes' providers by an earlier state of their members any more.
    Raises `StorageError`, and what placement raises.
    """
    names = sorted(nodes)
    for first in range(0, len(names), AT_ONCE):
        some = names[first : first + AT_ONCE]
        await asyncio.gather(
            *(align(source, placement, node, frozenset((aggregate,)), fence=True) for node in some)
        )


async def align(
    source: MemberSource,
    placement: MirrorPlacement,
    provider: str,
    aggregates: Collection[str],
    *,
    fence: bool = False,
) -> None:
    """Bring a provider into some aggregates in placement or out of them, as ``source`` says.

    Other mirrors do the same, and members change meanwhile. So the provider is written at a generation that
    is read before the members: a write by outdated members fails if the change of members has written the
    provider since. ``fence``: write it even if nothing differs, so that outdated writes do fail.

    A provider that does not exist is left out: a later round of the mirror finds a node that comes.
    Raises `StorageError` of the source, and what placement raises.
    """
    for attempt in range(1, ATTEMPTS + 1):
        # The generation is read first: a change between the reads makes the write fail.
        found = await placement.provider(provider)
        if found is None:
            return
        try:
            present = await placement.aggregates(provider)
            wanted = await source.aggregates_of(provider)
            new = present.difference(aggregates) | wanted.intersection(aggregates)
            if fence or new != present:
                await placement.set_aggregates(provider, new, found.generation)
            return
        except NotFound:
            return
        except ConcurrentUpdate:
            if attempt == ATTEMPTS:
                raise
