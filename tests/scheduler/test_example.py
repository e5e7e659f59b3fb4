"""The scheduler by itself, as another program would use it."""

import asyncio
import random
from pathlib import Path

from roost.ledger import Ledger, keep_what_is_loaded
from roost.model.host import HostReport
from roost.model.inventory import Inventory
from roost.model.spec import Flavor, RequestSpec
from roost.placement.service import PlacementService
from roost.records import Retention
from roost.records.jsonl import JsonLinesRecords
from roost.scheduler import NoValidHost, Scheduler
from roost.scheduler.gateways.local import LocalGateway
from roost.scheduler.hosts import HostTable
from roost.storage import Database

UUID = "5c1d8e6a-0000-0000-0000-00000000000{}"


async def example(folder: Path) -> list[str]:
    database = Database(f"sqlite:///{folder}/roost.db")
    ledger = await Ledger.open(database)
    placement = PlacementService(ledger)
    for number in range(3):
        await placement.ensure_provider(UUID.format(number), f"host{number}")
        memory = Inventory(total=4096 * (number + 1))
        await placement.set_inventories(UUID.format(number), {"VCPU": Inventory(4), "MEMORY_MB": memory})

    now = 1_000.0
    reports = [
        HostReport(host=f"host{number}", node=UUID.format(number), cell="cell1", last_seen=now)
        for number in range(3)
    ]
    records = JsonLinesRecords(folder / "records.jsonl", Retention())
    gateway = LocalGateway(ledger, random.randrange)
    scheduler = Scheduler(gateway, HostTable(reports), records, clock=lambda: now)
    keep_what_is_loaded()  # in a process that does nothing else: the garbage collector leaves it alone

    spec = RequestSpec(project_id="p", user_id="u", flavor=Flavor("small", vcpus=2, memory_mb=2048))
    told = []
    for placed in await scheduler.select_destinations(spec, count=2, num_alternates=1):
        told.append(f"{placed.selected.host}, else {placed.alternates[0].host}")
    try:
        await scheduler.select_destinations(spec, count=9)
    except NoValidHost as error:
        told.append(error.reason)

    await records.close()
    await ledger.close()
    await database.close()
    return told


def test_example(tmp_path: Path) -> None:
    assert asyncio.run(example(tmp_path)) == [
        "host2, else host0",
        "host1, else host0",
        "only 4 of 9 instances fit: every host left is full",
    ]
