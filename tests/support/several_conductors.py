"""Two super conductors on one API database, and calls that stop until a test goes on."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from roost.conductor.super_conductor import KIND, SuperConductor
from roost.state.leases import leases_of_kind, vacate_leases
from support.conducting import BACKOFF, NOW, Conductors, conducting
from support.works import is_of

ONE = "i0"


def within(tmp_path, work: Callable[[Conductors, SuperConductor], Awaitable[None]]) -> None:
    """Run with two super conductors: ``now.super`` and another one."""

    async def run() -> None:
        async with conducting(tmp_path) as now:
            other = SuperConductor(
                now.ledger.database,
                now.scheduler,
                now.placement,
                now.cells,
                backoff=BACKOFF,
                clock=lambda: NOW,
            )
            await other.begin()
            try:
                await work(now, other)
            finally:
                await other.close()

    asyncio.run(run())


class Gate:
    """Stops calls of something until it is opened."""

    def __init__(self, works: Callable[..., Any], only: Callable[..., Any] | None = None) -> None:
        self._works = works
        self._only = only
        self.reached = asyncio.Event()
        self.opened = asyncio.Event()
        self.stopped = 0

    async def __call__(self, *arguments: Any, **named: Any) -> Any:
        if (self._only is None or is_of(arguments[0], self._only)) and not self.reached.is_set():
            self.stopped += 1
            self.reached.set()
            await self.opened.wait()
        return await self._works(*arguments, **named)


async def found_dead(now: Conductors) -> None:
    """All that hold leases, but the last one to begin, are seen to stand still."""
    found = await now.ledger.database.read(leases_of_kind(KIND))
    await now.ledger.database.write(
        vacate_leases([each for each in found if each.holder == now.super.holder])
    )
