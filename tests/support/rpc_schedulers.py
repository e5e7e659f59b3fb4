"""A server of Nova's calls that decides as tests say, and notes all that arrives."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from roost.nova.calls import NovaRefusal, SelectCall, no_valid_host
from roost.nova.rpc.server import SchedulerRpcServer
from roost.nova.rpc.transport import open_transport
from roost.scheduler.api.wire.nova_object import nova_object

WAIT = 60.0
PULSE = 0.3
CELL = "11111111-2222-3333-4444-555555555555"


class NotingScheduler:
    """Decides by the first instance: ``refused``, ``held``, ``broken``, ``slow`` or any other.

    ``go`` lets slow calls pass.
    """

    def __init__(self, name: str = "one") -> None:
        self.name = name
        self.calls: list[SelectCall] = []
        self.hints: list[tuple[str, ...]] = []
        self.go = asyncio.Event()

    async def __call__(self, call: SelectCall) -> list[Any]:
        self.calls.append(call)
        match call.instances[0]:
            case "refused":
                raise no_valid_host("Nothing is free.")
            case "held":
                raise NovaRefusal("AllocationUpdateFailed", consumer_uuid="held", error="It holds something.")
            case "broken":
                raise RuntimeError("secret-host is broken")
            case "slow":
                await self.go.wait()
        selection: Any = {"host": self.name, "nodename": self.name, "limits": {}}
        if not call.objects:
            return [selection for _ in call.instances]
        values = {"service_host": self.name, "nodename": self.name, "cell_uuid": CELL, "limits": None}
        values |= {"compute_node_uuid": CELL, "allocation_request": "{}", "availability_zone": None}
        values |= {"allocation_request_version": "1.36"}
        return [[nova_object("Selection", "1.1", values)] for _ in call.instances]

    def node_changed(self, host: str) -> None:
        self.hints.append(("node", host))

    def instances_changed(self, host: str) -> None:
        self.hints.append(("instances", host))

    def aggregates_changed(self) -> None:
        self.hints.append(("aggregates",))


@asynccontextmanager
async def serving(url: str, scheduler: NotingScheduler, *files: Path) -> AsyncIterator[SchedulerRpcServer]:
    """Serve the calls of a broker. ``files``: of options."""
    server = SchedulerRpcServer(
        open_transport([str(each) for each in files], url),
        scheduler.name,
        scheduler,
        scheduler,
        pulse_seconds=PULSE,
    )
    await server.start()
    try:
        yield server
    finally:
        await server.stop(WAIT)


async def until(condition: Callable[[], object]) -> None:
    """Wait until a condition holds."""
    async with asyncio.timeout(WAIT):
        while not condition():
            await asyncio.sleep(0.02)
