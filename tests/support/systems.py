"""Runs whole systems in this process."""

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from msgspec.structs import replace

from roost.agent.drivers.simulated import FailureRule, Script
from roost.cli.verification import verify_database
from roost.ledger import retention as ledger
from roost.model.instance import BuildRequest
from roost.model.inventory import Inventory
from roost.model.spec import Flavor, RequestSpec
from roost.process.option_source import Source
from roost.scheduler import SchedulerOptions
from roost.server.all_in_one.data_directory import in_directory
from roost.server.all_in_one.layout import SystemLayout, uniform_layout
from roost.server.all_in_one.system import System, SystemOptions, read_system_options

SMALL = uniform_layout(6, 2, {"VCPU": Inventory(4)})


@asynccontextmanager
async def opened_system(
    directory: Path,
    layout: SystemLayout = SMALL,
    failure_rate: float = 0.0,
    reason: str = "no IP",
    clock: Callable[[], float] = time.time,
    **options: object,
) -> AsyncIterator[System]:
    """Open the system in a directory, which is set up if it is new, and close it at the end."""
    script = Script(failures=(FailureRule(failure_rate, reason),) if failure_rate else ())
    choices = options_in(directory, script=script, **options)
    system = await System.open(directory, layout, choices, clock)
    try:
        yield system
    finally:
        await system.close()


def options_in(
    directory: Path,
    *,
    scheduler: SchedulerOptions | None = None,
    max_attempts: int | None = None,
    retention: ledger.CommitRetention | None = None,
    sharing_providers: tuple[str, ...] = (),
    **others: object,
) -> SystemOptions:
    """Return the options of a system in a directory. None: as without a configuration."""
    options = read_system_options(in_directory(Source(), directory), **others)
    if scheduler is not None:
        options = replace(options, scheduler=scheduler)
    if max_attempts is not None:
        options = replace(options, max_attempts=max_attempts)
    if retention is not None:
        options = replace(options, retention=retention)
    return replace(options, sharing_providers=sharing_providers)


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
    findings, unread, _ = await verify_database(f"sqlite:///{directory / 'api.db'}")
    return [*findings, *unread]
