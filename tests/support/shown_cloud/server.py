"""The cloud as a process: sets it up in a folder, tells its story and serves it until it is ended.

Arguments: the folder, the number of racks, the number of hosts of a rack, and ``hostile`` or ``plain``. It
prints the URL when everything has happened.
"""

import asyncio
import random
import sys
import time
import uuid
from pathlib import Path

from roost.bench.loopback import free_port
from roost.bench.server_process import die_with_parent
from roost.process.logs import configure_logs
from roost.process.option_source import Source
from roost.server.all_in_one.data_directory import in_directory
from roost.server.all_in_one.server import serve
from roost.server.all_in_one.system import System, read_system_options
from roost.server.workers.listeners import Address, listen
from support.shown_cloud.layout import shown_layout
from support.shown_cloud.story import SCRIPT, SETTINGS, SteppedClock, Story


def draw_from_seed(clock: SteppedClock) -> None:
    """Draw all uuids from one seed, and the ids that have a time from the clock."""
    drawn = random.Random(7)
    uuid.uuid4 = lambda: uuid.UUID(int=drawn.getrandbits(128), version=4)
    time.time_ns = lambda: round(clock() * 1e9)


async def run(folder: Path, racks: int, hosts: int, hostile: bool) -> None:
    clock = SteppedClock()
    draw_from_seed(clock)
    source = in_directory(Source(settings=SETTINGS), folder)
    options = read_system_options(source, script=SCRIPT, seed=42)
    configure_logs(options.logs)
    system = await System.open(folder, shown_layout(racks, hosts, hostile=hostile), options, clock)
    try:
        port = free_port()
        system.address = f"http://127.0.0.1:{port}"
        telling: list[asyncio.Task[None]] = []

        async def tell() -> None:
            await Story(system, clock, hostile=hostile).tell(racks, hosts)
            print(system.address, flush=True)

        def ended(task: asyncio.Task[None]) -> None:
            if not task.cancelled() and task.exception() is not None:
                system.died(task.exception())

        def ready() -> None:
            task = asyncio.create_task(tell())
            task.add_done_callback(ended)
            telling.append(task)

        await serve(system, listen(Address("127.0.0.1", port), 1), ready)
    finally:
        await system.close()


if __name__ == "__main__":
    die_with_parent()
    folder, racks, hosts, names = sys.argv[1:]
    asyncio.run(run(Path(folder), int(racks), int(hosts), names == "hostile"))
