"""The cloud as a process: sets it up in a folder, tells its story and serves it until it is ended.

Arguments: the folder, the number of racks, the number of hosts of a rack, and ``hostile`` or ``plain``. It
prints the URL when everything has happened.
"""

import asyncio
import random
import sys
import time
import uuid
from collections.abc import Awaitable, Callable
from pathlib import Path

from roost.agent.drivers.simulated import Script
from roost.bench.loopback import free_port
from roost.bench.server_process import die_with_parent
from roost.ledger import Ledger
from roost.model.names import provider_uuid
from roost.placement.service import PlacementService
from roost.process.logs import configure_logs
from roost.process.option_source import Source
from roost.server.all_in_one.data_directory import in_directory
from roost.server.all_in_one.layout import SystemLayout
from roost.server.all_in_one.server import serve
from roost.server.all_in_one.system import System, read_system_options
from roost.server.workers.listeners import Address, listen
from roost.storage import Database
from support.shown_cloud.layout import shown_layout
from support.shown_cloud.story import SCRIPT, Story
from support.shown_cloud.storyteller import SETTINGS, SteppedClock

Tell = Callable[[System, SteppedClock], Awaitable[None]]
"""Lets everything happen in a cloud, and ends when its clock stands still for good."""


def draw_from_seed(clock: SteppedClock) -> None:
    """Draw all uuids from one seed, and the ids that have a time from the clock."""
    drawn = random.Random(7)
    uuid.uuid4 = lambda: uuid.UUID(int=drawn.getrandbits(128), version=4)
    time.time_ns = lambda: round(clock() * 1e9)


async def register_hosts(database: Database, layout: SystemLayout, clock: SteppedClock) -> None:
    """Make the providers of all hosts in the order of the layout, which is that of their rows then.

    Pages name hosts that are as good as each other in this order; agents, which start at the same time,
    would make their providers in any order. ``database``: of the ledger.
    """
    ledger = await Ledger.open(database, clock)
    placement = PlacementService(ledger)
    for there in (there for hosts in layout.cells.values() for there in hosts):
        await placement.ensure_provider(provider_uuid(there.host.name), there.host.name)
    await ledger.close()


async def run(
    folder: Path, layout: SystemLayout, script: Script, tell: Tell, heartbeat_seconds: float = 10.0
) -> None:
    """Set a cloud up, tell its story, print its URL, and serve it until this process is ended.

    ``script``: the behaviour of its hosts. ``heartbeat_seconds``: between their reports.
    """
    clock = SteppedClock()
    draw_from_seed(clock)
    source = in_directory(Source(settings=SETTINGS), folder)
    options = read_system_options(source, script=script, seed=42, heartbeat_seconds=heartbeat_seconds)
    configure_logs(options.logs)
    folder.mkdir(parents=True, exist_ok=True)
    database = Database(options.database)
    await register_hosts(database, layout, clock)
    await database.close()
    system = await System.open(folder, layout, options, clock)
    try:
        port = free_port()
        system.address = f"http://127.0.0.1:{port}"
        telling: list[asyncio.Task[None]] = []

        async def tell_all() -> None:
            await tell(system, clock)
            print(system.address, flush=True)

        def ended(task: asyncio.Task[None]) -> None:
            if not task.cancelled() and task.exception() is not None:
                system.died(task.exception())

        def ready() -> None:
            task = asyncio.create_task(tell_all())
            task.add_done_callback(ended)
            telling.append(task)

        await serve(system, listen(Address("127.0.0.1", port), 1), ready)
    finally:
        await system.close()


def main(folder: str, racks: str, hosts: str, names: str) -> None:
    """Run the shown cloud."""
    hostile = names == "hostile"
    layout = shown_layout(int(racks), int(hosts), hostile=hostile)

    async def tell(system: System, clock: SteppedClock) -> None:
        await Story(system, clock, hostile=hostile).tell(int(racks), int(hosts))

    asyncio.run(run(Path(folder), layout, SCRIPT, tell))


if __name__ == "__main__":
    die_with_parent()
    main(*sys.argv[1:])
