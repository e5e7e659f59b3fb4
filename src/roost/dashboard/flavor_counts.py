"""The number of instances of each flavor that fit: counted by really placing them, one flavor after another.

A count takes a process some time, so it is kept, with the versions that it was found on, and made anew when
somebody looks and the fleet has changed since.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from roost.model.spec import Flavor
from roost.model.what_if import WhatIf

MOST_PLACED: Final = 10_000
"""Most instances of a flavor that are placed."""
FRESH_SECONDS: Final = 60.0
"""Seconds for which a count is shown although the fleet has changed since."""
MOST_KEPT: Final = 500
"""Flavors whose counts are kept."""


class FlavorCount(msgspec.Struct, frozen=True, kw_only=True):
    """A count. ``at``: seconds since the epoch. ``answer``: None if it was not found, for ``failure``."""

    at: float
    answer: WhatIf | None = None
    failure: str | None = None


class FlavorCounts:
    """Keeps the counts of flavors, and makes one at a time."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, FlavorCount] = OrderedDict()
        self._turn = asyncio.Lock()

    def of(self, flavor: Flavor) -> FlavorCount | None:
        """Return the count that is kept; None without one."""
        return self._kept.get(flavor_key(flavor))

    def is_due(self, flavor: Flavor, now: float, versions: tuple[int | None, int | None]) -> bool:
        """Return whether a count is missing, or too old. ``versions``: of fleet and node table now."""
        kept = self.of(flavor)
        if kept is None:
            return True
        answer = kept.answer
        if answer is not None and (answer.version, answer.node_version) == versions:
            return False
        return now - kept.at >= FRESH_SECONDS

    async def count(
        self, flavor: Flavor, is_due: Callable[[], bool], make: Callable[[], Awaitable[FlavorCount]]
    ) -> None:
        """Count a flavor by ``make``, if it is still due when it is its turn."""
        async with self._turn:
            if is_due():
                self._kept[flavor_key(flavor)] = await make()
                if len(self._kept) > MOST_KEPT:
                    self._kept.popitem(last=False)


_encode = msgspec.json.Encoder(order="deterministic").encode


def flavor_key(flavor: Flavor) -> str:
    """Return a text that is equal for equal flavors."""
    return _encode(flavor).decode()
