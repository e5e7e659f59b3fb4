"""A scheduler among others on one fleet of NUMA and PCI nodes: it places, frees, moves and hands over.

Its node table learns from reports that are made on the way, of what is in the ledger then: some of the
consumers are built, others are not yet. A report comes late, is lost, or comes twice.
"""

import asyncio
import random
import uuid
from collections.abc import Callable
from multiprocessing.connection import Connection

from roost.ledger import Ledger
from roost.ledger.holdings import held_by_all
from roost.model.assignment import Assignment
from roost.model.node import NodeReport
from roost.model.record import RecordSink
from roost.model.spec import Destination, RequestSpec
from roost.placement.commands.allocations import ConsumerWrite, FreeConsumers, WriteAllocations
from roost.scheduler import NoValidHost, Scheduler
from roost.scheduler.errors import NoAlternate
from roost.scheduler.gateways import Gateway
from roost.scheduler.gateways.local import LocalGateway
from roost.scheduler.request.scheduling_request import HostRequest
from roost.scheduler.selection.host_pools import HostPools
from roost.scheduler.selection.replacement import AlternateRequest
from roost.storage import Database
from support.clouds import NOW, Kept
from support.hardware_clouds import OPTIONS, REQUESTS, hardware_cloud, node_report, providers_of

NODES = 4
AT_ONCE = 3
MOST_KEPT = 6


class Worker:
    """Its scheduler, and the instances that it has placed and does not change at the moment."""

    def __init__(
        self,
        ledger: Ledger,
        gateway: Gateway,
        name: str,
        say: Callable[..., None],
        records: RecordSink | None = None,
    ) -> None:
        self._ledger = ledger
        self._say = say
        self._name = name
        self._draw = random.Random(name)
        self._numa_model = gateway.pools.options.request_filters.numa_model
        self._table = gateway.pools.table
        self._scheduler = Scheduler(gateway, records or Kept(), lambda: NOW)
        self._placed: list[tuple[RequestSpec, Destination]] = []
        self._built: set[str] = set()
        self._on_the_way: list[NodeReport] = []

    async def work(self, numbers: range) -> None:
        for number in numbers:
            if self._draw.random() < 0.7:
                await self._report()
            was_placed = await self._place(number)
            chance = self._draw.random()
            while self._placed and (chance < 0.6 or not was_placed or len(self._placed) > MOST_KEPT):
                # Taken out at once, so that no two coroutines change one instance.
                chosen = self._placed.pop(self._draw.randrange(len(self._placed)))
                if chance < 0.2:
                    await self._move(*chosen)
                elif chance < 0.3:
                    await self._hand_over(chosen[1])
                else:
                    await self._free(chosen[1].instance)
                chance, was_placed = 1.0, True

    async def ask_for_each_kind(self) -> None:
        """Fill the empty nodes with cells, ask for more, free all, and do the same with devices."""
        for number, wanted in enumerate((REQUESTS[2], REQUESTS[4])):
            assert await self._ask(f"kind {number}", wanted, 2 * len(self._table.nodes), 1)
            assert not await self._ask(f"more {number}", wanted, 50, 50)
            while self._placed:
                await self._free(self._placed.pop()[1].instance)

    async def _place(self, number: int) -> bool:
        draw, count = self._draw, self._draw.choice([1, 1, 1, 2, 3])
        return await self._ask(str(number), draw.choice(REQUESTS), count, draw.choice([1, count]))

    async def _ask(self, name: str, wanted: RequestSpec, count: int, min_count: int) -> bool:
        instances = [self._uuid(f"{name}/{n}") for n in range(count)]
        try:
            found = await self._scheduler.select_destinations(
                HostRequest(wanted, tuple(instances), 2, min_count=min_count or 0)
            )
        except NoValidHost:
            self._say("refused")
            return False
        for each in found:
            assert each.selected.assignment is not None or self._numa_model != "objects"
            self._say("placed", each.instance, each.selected.node)
            self._placed.append((wanted, each))
        self._say("answered")
        return True

    async def _free(self, consumer: str) -> None:
        self._say("freeing", consumer)
        await self._ledger.execute(FreeConsumers((consumer,)))
        self._table.release(consumer)
        self._say("freed", consumer)

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
        assignment = found.selected.assignment
        assert assignment is not None or self._numa_model != "objects"
        assert assignment is None or assignment.node == found.selected.node
        self._say("placed", chosen.instance, found.selected.node)
        self._say("moved", chosen.instance)

    async def _hand_over(self, chosen: Destination) -> None:
        """As a migration: another consumer takes over what the instance holds, and is freed some time."""
        self._say("moving", chosen.instance)
        migration = self._uuid(f"migration of {chosen.instance}")
        held, nothing = chosen.selected.allocations, {}
        writes = tuple(
            ConsumerWrite(consumer=name, allocations=holds, project_id="project", user_id="user")
            for name, holds in ((migration, held), (chosen.instance, nothing))
        )
        await self._ledger.execute(WriteAllocations(writes))
        self._say("placed", migration, chosen.selected.node)
        self._say("handed")
        await self._report()
        await self._free(migration)

    async def _report(self) -> None:
        """Make a report of a node's state now, and let one come in that was made some time."""
        number = self._draw.randrange(len(self._table.nodes))
        providers = providers_of(number, self._numa_model)
        held = await self._ledger.database.read(held_by_all)
        guests: dict[str, Assignment | None] = {}
        for consumer, each in sorted(held.items()):
            assignment = each.consumer.assignment
            if not each.allocations.keys().isdisjoint(providers) and (
                assignment is None or assignment.node == providers[0]
            ):
                if consumer not in self._built and self._draw.random() < 0.6:
                    self._built.add(consumer)
                if consumer in self._built:
                    guests[consumer] = assignment
        self._on_the_way.append(node_report(number, guests, self._numa_model))
        chance = self._draw.random()
        if chance < 0.5:
            self._table.update([self._on_the_way.pop()])
        elif chance < 0.8:
            at = self._draw.randrange(len(self._on_the_way))
            late = self._on_the_way.pop(at)
            self._table.update([late])
            if chance < 0.65:
                self._on_the_way.append(late)

    def _uuid(self, text: str) -> str:
        return str(uuid.uuid5(uuid.NAMESPACE_URL, f"{self._name}/{text}"))


def pools() -> HostPools:
    """The host pools of one scheduler."""
    return HostPools(hardware_cloud(NODES, OPTIONS.request_filters.numa_model).table(), OPTIONS)


async def _main(url: str, name: str, count: int, pipe: Connection) -> None:
    database = Database(url)
    ledger = await Ledger.open(database)
    worker = Worker(ledger, LocalGateway(ledger, pools()), name, lambda *words: pipe.send(words))
    pipe.send(("ready",))
    pipe.recv()
    await asyncio.gather(*(worker.work(range(first, count, AT_ONCE)) for first in range(AT_ONCE)))
    await ledger.close()
    await database.close()
    pipe.send(("done",))


def run(url: str, name: str, count: int, pipe: Connection) -> None:
    """Begin after the first message. ``count``: requests. ``name``: the seed of its choices."""
    asyncio.run(_main(url, name, count, pipe))
