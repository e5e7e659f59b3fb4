"""A scheduler in a process of its own: it places instances of groups, frees them, and moves them.

It says what it is about to change, and what it was answered. Whoever kills it knows from that what was
acknowledged.
"""

import asyncio
import random
import uuid
from multiprocessing.connection import Connection

from roost.ledger import Ledger
from roost.model.spec import Destination, RequestSpec, ServerGroup
from roost.placement.commands.allocations import FreeConsumers
from roost.scheduler import NoValidHost, Scheduler
from roost.scheduler.errors import NoAlternate
from roost.scheduler.gateways.local import LocalGateway
from roost.scheduler.request.scheduling_request import HostRequest
from roost.scheduler.selection.host_pools import HostPools
from roost.scheduler.selection.replacement import AlternateRequest
from roost.storage import Database
from support.clouds import NOW, Kept, flat, spec

HOSTS = 12
VCPUS = 6
GROUPS = (
    *(ServerGroup(f"apart-{number}", "anti-affinity") for number in range(4)),
    ServerGroup("pairs", "anti-affinity", (), 2),
    ServerGroup("trios", "anti-affinity", (), 3),
    *(ServerGroup(f"together-{number}", "affinity") for number in range(3)),
    ServerGroup("near", "soft-affinity"),
)
AT_ONCE = 4
MOST_KEPT = 22


class Worker:
    """Its scheduler, and the instances that it has placed and does not change at the moment."""

    def __init__(self, ledger: Ledger, name: str, pipe: Connection) -> None:
        self._ledger = ledger
        self._pipe = pipe
        self._name = name
        self._draw = random.Random(name)
        self._scheduler = Scheduler(
            LocalGateway(ledger, HostPools(flat(HOSTS, VCPUS).table())), Kept(), lambda: NOW
        )
        self._placed: list[tuple[RequestSpec, Destination]] = []

    async def work(self, numbers: range) -> None:
        for number in numbers:
            was_placed = await self._place(number)
            chance = self._draw.random()
            # Three workers that keep so many fill the fleet nearly: they are refused often, but not always.
            while self._placed and (chance < 0.6 or not was_placed or len(self._placed) > MOST_KEPT):
                # Taken out at once, so that no two coroutines change one instance.
                chosen = self._placed.pop(self._draw.randrange(len(self._placed)))
                await (self._move(*chosen) if chance < 0.2 else self._free(chosen[1]))
                chance, was_placed = 1.0, True

    async def _place(self, number: int) -> bool:
        draw, count = self._draw, self._draw.choice([1, 1, 1, 2, 3])
        wanted = spec(group=draw.choice([*GROUPS, None]))
        instances = [str(uuid.uuid5(uuid.NAMESPACE_URL, f"{self._name}/{number}/{n}")) for n in range(count)]
        least = draw.choice([1, count])
        try:
            found = await self._scheduler.select_destinations(
                HostRequest(wanted, tuple(instances), 2, min_count=least or 0)
            )
        except NoValidHost:
            self._say("refused")
            return False
        assert least <= len(found) <= count
        for each in found:
            self._say("placed", each.instance, each.selected.node)
            self._placed.append((wanted, each))
        self._say("answered")
        return True

    async def _free(self, chosen: Destination) -> None:
        self._say("freeing", chosen.instance)
        await self._ledger.execute(FreeConsumers((chosen.instance,)))
        self._say("freed", chosen.instance)

    async def _move(self, wanted: RequestSpec, chosen: Destination) -> None:
        self._say("moving", chosen.instance)
        try:
            found = await self._scheduler.use_alternate(
                AlternateRequest(wanted, chosen.instance, chosen.selected, chosen.alternates, reason="drill")
            )
        except NoAlternate:
            self._say("placed", chosen.instance, chosen.selected.node)
            return
        assert found.selected is not None
        self._say("placed", chosen.instance, found.selected.node)
        self._say("moved", chosen.instance)

    def _say(self, *words: str) -> None:
        self._pipe.send(words)


async def _main(url: str, name: str, count: int, pipe: Connection) -> None:
    database = Database(url)
    ledger = await Ledger.open(database)
    worker = Worker(ledger, name, pipe)
    pipe.send(("ready",))
    pipe.recv()
    await asyncio.gather(*(worker.work(range(first, count, AT_ONCE)) for first in range(AT_ONCE)))
    await ledger.close()
    await database.close()
    pipe.send(("done",))


def run(url: str, name: str, count: int, pipe: Connection) -> None:
    """Begin after the first message. ``count``: requests. ``name``: the seed of its choices."""
    asyncio.run(_main(url, name, count, pipe))
