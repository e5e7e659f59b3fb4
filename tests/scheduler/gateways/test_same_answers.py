"""Both gateways give the same answers to the same requests, on the same state to begin with."""

import asyncio
import random
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from roost.ledger.holdings import held_by_all
from roost.placement.errors import PlacementError
from roost.scheduler import Scheduler, SchedulerError, SchedulerOptions
from roost.scheduler.gateways import Gateway
from roost.scheduler.gateways.http import HttpGateway
from roost.scheduler.gateways.local import LocalGateway
from roost.scheduler.request.scheduling_request import HostRequest
from roost.scheduler.scheduler import seeds_from
from roost.scheduler.selection.host_pools import HostPools
from roost.scheduler.selection.selection import OFFERED
from roost.storage import Database
from support.clouds import NOW, Ask, Cloud, Kept, asks, clouds, filled, over_http
from support.offering import by_metrics

MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
"""Nothing here need survive, and two syncs for each claim would be most of the time."""

OPTIONS = [
    SchedulerOptions(),
    SchedulerOptions(multipliers={"RAMWeigher": -1.0, "CPUWeigher": -1.0}),
    SchedulerOptions(host_subset_size=3, plugins=by_metrics({"heat": -1.0})),
]


async def answers(
    gateway: Gateway,
    requests: list[Ask],
    database: Database,
    seed: int,
) -> list[Any]:
    """What comes of each request, as plain data without the runs' ids; at last what everyone holds."""
    kept = Kept()
    scheduler = Scheduler(gateway, kept, lambda: NOW, seeds=seeds_from(random.Random(seed)))
    found: list[Any] = []
    for ask in requests:
        try:
            destinations = await scheduler.select_destinations(
                HostRequest(ask.spec, tuple(ask.instances), ask.num_alternates, min_count=ask.min_count)
            )
        except (SchedulerError, PlacementError) as error:
            found.append(type(error))
        else:
            found.append([(each.instance, each.selected, each.alternates) for each in destinations])
        run = kept.runs.pop()
        # What placement says of its own narrowing only the ledger knows.
        names = [step.name for step in run.steps]
        steps = run.steps[:1] + run.steps[names.index(OFFERED) :] if OFFERED in names else ()
        if names and run.steps[names.index(OFFERED)].left:
            found.append(run.refusal)
        found.append(list(steps))
        found.append([(each.instance, each.host, each.weight, each.result) for each in kept.attempts])
        kept.attempts.clear()
    held = database.read_now(held_by_all)
    found.append({consumer: (one.consumer.consumer_type, one.allocations) for consumer, one in held.items()})
    return found


async def compare(
    folder: Path, empty: Path, cloud: Cloud, requests: list[Ask], options: SchedulerOptions, seed: int
) -> None:
    async with (
        filled(folder / "local.db", cloud, empty) as local,
        filled(folder / "http.db", cloud, empty) as remote,
        over_http(remote) as placement,
    ):
        expected = await answers(
            LocalGateway(local, HostPools(cloud.table(), options)), requests, local.database, seed
        )
        found = await answers(
            HttpGateway(placement, HostPools(cloud.table(), options)), requests, remote.database, seed
        )
    for one, other in zip(expected, found, strict=True):
        assert one == other


def sequences() -> st.SearchStrategy[list[Ask]]:
    return st.integers(1, 4).flatmap(lambda count: st.tuples(*map(asks, range(count)))).map(list)


@settings(deadline=None, suppress_health_check=list(HealthCheck))
@given(clouds(), sequences(), st.sampled_from(OPTIONS), st.integers(0, 3))
def test_both_gateways_answer_alike(
    empty_database: Path, cloud: Cloud, requests: list[Ask], options: SchedulerOptions, seed: int
) -> None:
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        asyncio.run(compare(Path(folder), empty_database, cloud, requests, options, seed))
