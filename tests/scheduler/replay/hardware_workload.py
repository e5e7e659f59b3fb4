"""Two schedulers on one ledger of NUMA and PCI nodes, each with a node table and a journal of its own."""

import asyncio
from collections import Counter
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path

from msgspec.structs import replace

from roost.ledger import Ledger
from roost.records import RecordQueue, Retention
from roost.records.backend import open_sql_records
from roost.scheduler.gateways import Gateway
from roost.scheduler.gateways.http import HttpGateway
from roost.scheduler.gateways.local import LocalGateway
from roost.scheduler.nodes.journal import JournalWriter
from roost.scheduler.request.demand.numa_groups import NumaModel
from roost.scheduler.selection.host_pools import HostPools
from roost.state.api_database.tables import SCHEMA
from roost.storage import Database
from scheduler.assignment_worker import AT_ONCE, Worker
from support.clouds import NOW, fill, over_http
from support.databases import Place
from support.hardware_clouds import OPTIONS, hardware_cloud
from support.ledgers import opened

NODES = 3
BEGIN = 4
"""Requests of each scheduler before the others."""
REQUESTS_A_BATCH = 4
"""Requests of a scheduler between two batches of its journal."""


class _Journalled:
    """A scheduler whose node table is journalled."""

    def __init__(
        self,
        api: Database,
        ledger: Ledger,
        gateway: Gateway,
        records: RecordQueue,
        name: str,
        say: Callable[..., None],
    ) -> None:
        self._journal = JournalWriter(api, gateway.pools.table)
        self._worker = Worker(ledger, gateway, name, say, records)

    async def begin(self) -> None:
        """Ask for each kind of hardware once, alone."""
        await self._journal.write(NOW)
        await self._worker.ask_for_each_kind()

    async def work(self, count: int) -> None:
        """Serve so many requests, a few at a time."""
        for begin in range(0, count, AT_ONCE * REQUESTS_A_BATCH):
            end = min(count, begin + AT_ONCE * REQUESTS_A_BATCH)
            lanes = (range(begin + lane, end, AT_ONCE) for lane in range(AT_ONCE))
            await asyncio.gather(*map(self._worker.work, lanes))
            await self._journal.write(NOW)
        await self._journal.close()


async def worked_on_hardware(
    path: Path, name: str, count: int, numa_model: NumaModel, *, wire: bool = False
) -> Counter[str]:
    """Let two schedulers serve ``count`` requests each; return how often each thing happened.

    ``wire``: each has a placement service of its own over HTTP.
    """
    said: Counter[str] = Counter()
    options = replace(
        OPTIONS,
        explain_seconds=0.0,
        request_filters=replace(OPTIONS.request_filters, numa_model=numa_model),
    )
    url = f"sqlite:///{path / 'api.db'}"
    api = Database(url)
    async with AsyncExitStack() as stack:
        ledgers = await stack.enter_async_context(opened(Place("sqlite", (url,)), 2))
        SCHEMA.prepare(api)
        await fill(ledgers[0], hardware_cloud(NODES, numa_model))
        records = RecordQueue(await open_sql_records(f"sqlite:///{path / 'records.db'}", Retention(0, 0)))
        gateways: list[Gateway] = []
        for each in ledgers:
            pools = HostPools(hardware_cloud(NODES, numa_model).table(), options)
            if wire:
                placement = await stack.enter_async_context(over_http(each))
                gateways.append(HttpGateway(placement, pools))
            else:
                gateways.append(LocalGateway(each, pools))

        def say(word: str, *_: object) -> None:
            said.update([word])

        schedulers = [
            _Journalled(api, ledger, gateway, records, f"{name}-{number}", say)
            for number, (ledger, gateway) in enumerate(zip(ledgers, gateways, strict=True))
        ]
        for scheduler in schedulers:
            await scheduler.begin()
        await asyncio.gather(*(scheduler.work(count) for scheduler in schedulers))
        await records.close()
    await api.close()
    return said
