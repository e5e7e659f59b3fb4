"""Records of requests that a scheduler on a cloud of its own has decided."""

import asyncio
from pathlib import Path
from typing import Any

import msgspec

from roost.records import RunWithAttempts
from roost.scheduler import SchedulerOptions
from roost.scheduler.nodes.table import NodeTable
from support.clouds import Cloud, filled
from support.scheduling import Room


def decided_run(
    directory: Path,
    cloud: Cloud,
    *args: int,
    count: int = 1,
    alternates: int = 0,
    refused: bool = False,
    options: SchedulerOptions | None = None,
    **more: Any,
) -> tuple[RunWithAttempts, NodeTable]:
    """Return the record of a decision and the node table that it was made on.

    ``args``, ``more``: of `support.clouds.spec`. ``refused``: it must be refused.
    """

    async def run() -> tuple[RunWithAttempts, NodeTable]:
        async with filled(directory / "roost.db", cloud) as ledger:
            room = Room(ledger, cloud, options)
            ask = room.refusal if refused else room.place
            await ask(count, alternates, *args, **more)
            made = room.kept.runs[-1]
            if room.kept.reasons:
                made = msgspec.structs.replace(made, reasons=room.kept.reasons[-1].reasons)
            return RunWithAttempts(made, tuple(room.kept.attempts)), room.scheduler.table

    return asyncio.run(run())
