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
    """The members of all aggregates: see `roost.state.api_database.aggregates.store.AggregateStore`."""

    async def aggregates_of(self, node: str) -> frozenset[str]: ...


async def bring(
    source: MemberSource, placement: MirrorPlacement, aggregate: str, nodes: Collection[str]
) -> None:
    """Have placement agree with ``source`` on whether some nodes are in an aggregate.

    What the nodes' providers were to be like for an earlier change is not written any more by anybody when
    this returns. Raises `StorageError`, and what placement raises.
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
    """Have placement agree with ``source`` on whether a provider is in some aggregates.

    Others do the same, and members change meanwhile. So the members are read after the generation at which
    the provider is written: a write by members as they were before a change fails if the change has written
    the provider since. ``fence``: write it even if nothing differs, so that those writes do fail.

    A provider that does not exist is left out: a node that comes is found by a later round of the mirror.
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
