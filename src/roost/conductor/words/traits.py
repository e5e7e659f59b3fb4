"""Takes the trait that hides a disabled node off the nodes that an operator has enabled.

Agents add and remove it as well, but the agent of a host may learn seconds later that the host is enabled.
"""

import asyncio
from collections.abc import Iterable, Sequence
from typing import Protocol

from roost.model.vocabulary import DISABLED_TRAIT
from roost.placement.errors import ConcurrentUpdate, NotFound
from roost.placement.interface import Provider

ATTEMPTS = 4
"""Attempts to write a provider that others change at the same time. After that the agent does it."""

AT_ONCE = 32
"""Providers that are read and written at the same time."""


class TraitPlacement(Protocol):
    """The part of `roost.placement.interface.Placement` that is needed."""

    async def provider(self, uuid: str) -> Provider | None: ...

    async def traits(self, provider: str) -> frozenset[str]: ...

    async def set_traits(
        self, provider: str, traits: Iterable[str], generation: int | None = None
    ) -> int: ...


async def show_nodes(placement: TraitPlacement, nodes: Sequence[str]) -> None:
    """Take the trait off some nodes. Raises what placement raises."""
    for first in range(0, len(nodes), AT_ONCE):
        await asyncio.gather(*(_show(placement, node) for node in nodes[first : first + AT_ONCE]))


async def _show(placement: TraitPlacement, node: str) -> None:
    for attempt in range(1, ATTEMPTS + 1):
        try:
            present = await placement.traits(node)
            if DISABLED_TRAIT not in present:
                return
            # The generation is read first: a change between the two reads makes the write fail.
            found = await placement.provider(node)
            if found is None:
                return
            present = await placement.traits(node)
            await placement.set_traits(node, present - {DISABLED_TRAIT}, found.generation)
            return
        except NotFound:
            return
        except ConcurrentUpdate:
            if attempt == ATTEMPTS:
                raise
