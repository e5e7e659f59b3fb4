"""Shadow mode on a small cloud: its scheduler, and a Nova whose claims are made by hand."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from roost.ledger import Ledger
from roost.nova.instance_facts import InstanceFacts
from roost.nova.shadow.comparison import Comparison
from roost.nova.shadow.comparison_store import ComparisonStore, read_comparisons
from roost.nova.shadow.shadow_runs import ShadowOptions, ShadowRuns
from roost.nova.shadow.tables import SCHEMA
from roost.placement.commands.allocations import WriteAllocations
from roost.placement.service import PlacementService
from roost.scheduler import Scheduler, SchedulerOptions
from roost.scheduler.gateways.unclaimed import (
    HttpUnclaimedGateway,
    JudgingPools,
    LocalUnclaimedGateway,
    ReadPlacement,
)
from roost.storage import Database
from support.clouds import NOW, Cloud, Kept, filled, holding, over_http, uuid_of

SMALL = {"VCPU": 1, "MEMORY_MB": 1024, "DISK_GB": 10}


class ShadowCloud:
    """Shadow mode on a ledger, in the same process or over HTTP.

    ``when_asleep``: the claims that are made while it waits, one in each pause. ``known``: the rows of
    instances in Nova's cells.
    """

    def __init__(self, ledger: Ledger, bridge: Database, scheduler: Scheduler, records: Kept) -> None:
        self.ledger = ledger
        self.bridge = bridge
        self.records = records
        self.table = scheduler.table
        self.scheduler = scheduler
        self.known: dict[str, InstanceFacts] = {}
        self.when_asleep: list[tuple[str, Mapping[str, Mapping[str, int]]]] = []
        self.passed = 0.0
        self.store = ComparisonStore(bridge, lambda: NOW)

    async def stored(self) -> list[Comparison]:
        """The comparisons in the bridge's database."""
        return await self.bridge.read(read_comparisons(-10 * NOW))

    async def facts(self, instance: str) -> InstanceFacts | None:
        return self.known.get(instance)

    async def claim(self, instance: str, host: int, **amounts: int) -> None:
        """Claim a host as Nova's scheduler does."""
        await self.hold(instance, {uuid_of(host): amounts or SMALL})

    async def hold(self, instance: str, allocations: Mapping[str, Mapping[str, int]]) -> None:
        write = holding(instance, {provider: dict(each) for provider, each in allocations.items()})
        held = await PlacementService(self.ledger).allocations_of(instance)
        if held is not None:
            write = replace(write, generation=held.consumer.generation)
        await self.ledger.execute(WriteAllocations((write,)))

    async def sleep(self, seconds: float) -> None:
        """Pass the time; a claim that waits in ``when_asleep`` is made."""
        self.passed += seconds
        if self.when_asleep:
            await self.hold(*self.when_asleep.pop(0))

    def runs(self, pools: JudgingPools, **options: Any) -> ShadowRuns:
        async def refresh() -> None:
            return None

        async def filled_spec(spec: Any) -> Any:
            return spec

        return ShadowRuns(
            self.scheduler,
            pools,
            PlacementService(self.ledger),
            self,
            self.store,
            ShadowOptions(**options),
            refresh=refresh,
            filled=filled_spec,
            clock=lambda: NOW + self.passed,
            sleep=self.sleep,
        )


@asynccontextmanager
async def shadow_cloud(
    folder: Path, cloud: Cloud, *, http: bool = False, options: SchedulerOptions | None = None
) -> AsyncIterator[tuple[ShadowCloud, ShadowRuns]]:
    """Shadow mode on a cloud."""
    async with filled(folder / "roost.db", cloud) as ledger:
        pools = JudgingPools(cloud.table(), options or SchedulerOptions())
        database = Database(f"sqlite:///{folder / 'bridge.db'}")
        SCHEMA.prepare(database)
        async with over_http(ledger, ReadPlacement) as placement:
            assert isinstance(placement, ReadPlacement)
            gateway = HttpUnclaimedGateway(placement, pools) if http else LocalUnclaimedGateway(ledger, pools)
            records = Kept()
            scheduler = Scheduler(gateway, records, clock=lambda: NOW)
            shadow = ShadowCloud(ledger, database, scheduler, records)
            runs = shadow.runs(pools, wait_seconds=10.0, drawn_from=pools.options.host_subset_size)
            try:
                yield shadow, runs
            finally:
                await runs.close()
                await database.close()
