"""Runs whole systems in this process."""

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from roost.cli.verification import verify_database
from roost.compute.drivers.simulated import FailureRule, Script
from roost.model.instance import BuildRequest
from roost.model.inventory import Inventory
from roost.model.spec import Flavor, RequestSpec
from roost.records.backend import open_sql_records
from roost.records.queue import RecordQueue
from roost.records.records import Retention
from roost.system import Layout, System, SystemOptions, uniform_layout

SMALL = uniform_layout(6, 2, {"VCPU": Inventory(4)})


@asynccontextmanager
async def opened_system(
    directory: Path,
    layout: Layout = SMALL,
    failure_rate: float = 0.0,
    reason: str = "no IP",
    clock: Callable[[], float] = time.time,
    **options: object,
) -> AsyncIterator[System]:
    """Open the system in a directory, which is set up if it is new, and close it at the end."""
    backend = await open_sql_records(f"sqlite:///{directory / 'records.db'}", Retention())
    script = Script(failures=(FailureRule(failure_rate, reason),) if failure_rate else ())
    choices = SystemOptions(script=script, **options)  # type: ignore[arg-type]
    system = await System.open(directory, layout, RecordQueue(backend), choices, clock)
    try:
        yield system
    finally:
        await system.close()


def wanted(request_id: str, count: int = 1, vcpus: int = 1) -> BuildRequest:
    """Return a request for instances whose names begin with its id. At least one must fit."""
    return BuildRequest(
        request_id=request_id,
        spec=RequestSpec(project_id="project", user_id="user", flavor=Flavor("small", vcpus, 0)),
        instances=tuple(f"{request_id}-{number}" for number in range(count)),
        min_count=1,
    )


async def states(system: System) -> dict[str, str]:
    """Return the state of every instance of every cell."""
    return {each.uuid: each.state for cell in system.cells.values() for each in await cell.every()}


async def differences(directory: Path) -> list[object]:
    """Return what `roost db verify` finds in a data directory."""
    findings, unread = await verify_database(f"sqlite:///{directory / 'api.db'}")
    return [*findings, *unread]
