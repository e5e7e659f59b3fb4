"""Writes the aggregates of providers in placement."""

import asyncio
from collections.abc import Collection, Iterable
from typing import Protocol

from roost.conductor.aggregates.differences import Difference
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


async def bring(
    placement: MirrorPlacement, aggregate: str, joined: Collection[str], left: Collection[str]
) -> None:
    """Have providers join an aggregate and others leave it. Raises what placement raises."""
    of_one = frozenset((aggregate,))
    changes = [(each, Difference(join=of_one)) for each in sorted(joined)]
    changes += [(each, Difference(leave=of_one)) for each in sorted(left)]
    for first in range(0, len(changes), AT_ONCE):
        await asyncio.gather(*(apply(placement, *each) for each in changes[first : first + AT_ONCE]))


async def apply(placement: MirrorPlacement, provider: str, difference: Difference) -> None:
    """Write the aggregates of a provider. One that does not exist is left out: a node that comes is found by
    a later round of the mirror. Raises what placement raises."""
    for attempt in range(1, ATTEMPTS + 1):
        # The generation is read first: a change between the two reads makes the write fail.
        found = await placement.provider(provider)
        if found is None:
            return
        try:
            present = await placement.aggregates(provider)
            new = difference.applied(present)
            if new != present:
                await placement.set_aggregates(provider, new, found.generation)
            return
        except NotFound:
            return
        except ConcurrentUpdate:
            if attempt == ATTEMPTS:
                raise
