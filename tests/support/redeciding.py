"""A mixed workload on a small system, and its decisions made again."""

import asyncio
import random
from collections import Counter
from pathlib import Path

from roost.ledger.past_fleet import PastFleet
from roost.model.aggregate import Aggregate
from roost.model.instance import BuildRequest
from roost.model.inventory import Inventory
from roost.model.spec import Flavor, Image, RequestedDestination, RequestSpec, ServerGroup
from roost.records import Retention, RunWithAttempts
from roost.records.backend import open_sql_records
from roost.scheduler.options import SchedulerOptions
from roost.scheduler.replay import DecisionReplay, NotReproducible, Replayed, in_order
from roost.scheduler.request.changed import Changes
from roost.server.all_in_one.layout import uniform_layout
from roost.server.all_in_one.system import System
from roost.state.api_database.node_journal import NodeJournals
from roost.storage import Database
from support.systems import opened_system

LAYOUT = uniform_layout(
    8, 2, {"VCPU": Inventory(8), "MEMORY_MB": Inventory(16384), "DISK_GB": Inventory(200)}
)
OPTIONS = SchedulerOptions(
    filters=(
        *SchedulerOptions().filters,
        "NumInstancesFilter",
        "IoOpsFilter",
        "SameHostFilter",
        "DifferentHostFilter",
        "JsonFilter",
    ),
    host_subset_size=3,
    shuffle_best_same_weighed_hosts=True,
)
ZONES = ("north", "south")
NAMES = [f"host-{number + 1:04}" for number in range(8)]


def request(chosen: random.Random, number: int, placed: list[str]) -> BuildRequest:
    """Some request, of the kinds that a cloud has; it may be one that nothing can serve."""
    more: dict[str, object] = {}
    hints: dict[str, tuple[str, ...]] = {}
    match chosen.randrange(10):
        case 0:
            more["availability_zone"] = chosen.choice([*ZONES, "nowhere"])
        case 1:
            policy = chosen.choice(["affinity", "anti-affinity", "soft-affinity", "soft-anti-affinity"])
            more["group"] = ServerGroup(f"group {policy} {chosen.randrange(2)}", policy)  # type: ignore[arg-type]
        case 2:
            more["ignore_hosts"] = frozenset(chosen.sample(NAMES, 3))
        case 3:
            more["force_hosts"] = (chosen.choice(NAMES),)
        case 4:
            more["requested_destination"] = RequestedDestination(cell=chosen.choice(["cell1", "cell2"]))
        case 5 if placed:
            hints[chosen.choice(["same_host", "different_host"])] = (chosen.choice(placed),)
        case 6:
            hints["query"] = ('["<=", "$num_io_ops", 3]',)
        case 7:
            more["image"] = Image(properties={"hw_architecture": chosen.choice(["x86_64", "sparc"])})
        case _:
            pass
    extra_specs = {"trait:CUSTOM_RARE": "required"} if chosen.random() < 0.05 else {}
    vcpus = chosen.choice([1, 1, 2, 4, 16])
    flavor = Flavor(f"f{vcpus}", vcpus, vcpus * 1024, chosen.choice([0, 10]), extra_specs)
    count = chosen.choice([1, 1, 1, 2, 4])
    return BuildRequest(
        request_id=f"req-{number}",
        spec=RequestSpec(
            project_id=f"p{number % 3}",
            user_id="u",
            flavor=flavor,
            scheduler_hints=hints,
            **more,  # type: ignore[arg-type]
        ),
        instances=tuple(f"i{number}-{each}" for each in range(count)),
        min_count=chosen.choice([1, count]),
    )


async def work(system: System, chosen: random.Random, first: int, number: int, placed: list[str]) -> None:
    """Requests a few at a time, with deletions and changed aggregates between them."""
    there: list[str] = []
    for each in range(first, first + number):
        asked = request(chosen, each, placed)
        await system.super_conductor.accept(asked)
        there += asked.instances
        if chosen.random() < 0.4:
            await asyncio.sleep(chosen.choice([0, 0.005, 0.02]))
        if chosen.random() < 0.2:
            await system.settle()
            placed += there
            there = []
        while len(placed) > 20:
            leaving = [placed.pop(chosen.randrange(len(placed))) for _ in range(6)]
            await system.super_conductor.delete(leaving)
    await system.settle()
    placed += there


async def worked(path: Path, seed: int, lives: int, number: int) -> None:
    """A system that was started ``lives`` times and got ``number`` requests each time."""
    chosen, placed = random.Random(seed), list[str]()
    for life in range(lives):
        async with opened_system(
            path,
            LAYOUT,
            failure_rate=0.1,
            scheduler=OPTIONS,
            heartbeat_seconds=0.05,  # type: ignore[arg-type]
        ) as system:
            if not life:
                nodes = sorted(system.table.nodes)
                zones = [
                    Aggregate(
                        uuid=f"00000000-0000-4000-8000-00000000000{number}",
                        name=zone,
                        metadata={"availability_zone": zone},
                        members=frozenset(nodes[3 * number : 3 * number + 3]),
                    )
                    for number, zone in enumerate(ZONES)
                ]
                await system.aggregates.add(zones)
            await work(system, chosen, life * number, number, placed)


async def redecided(
    path: Path,
    changes: Changes = Changes(),  # noqa: B008
    chosen: list[str] | None = None,
) -> tuple[list[Replayed], Counter[str]]:
    """The decisions of a data directory made again, and why others cannot be."""
    records = await open_sql_records(f"sqlite:///{path / 'records.db'}", Retention(0, 0))
    api = Database(f"sqlite:///{path / 'api.db'}", read_only=True)
    try:
        runs: list[RunWithAttempts] = await records.last(100_000)
        replay = DecisionReplay(await PastFleet.open(api), NodeJournals(api))
        made, impossible = list[Replayed](), Counter[str]()
        for each in in_order(runs):
            if chosen is not None and each.run.request_id not in chosen:
                continue
            try:
                made.append(await replay.again(each, changes))
            except NotReproducible as error:
                impossible[str(error)] += 1
        return made, impossible
    finally:
        await api.close()
        await records.close()
