"""Shadow mode of the bridge to Nova: copies of calls are decided without a claim, and compared."""

import asyncio
from collections.abc import Callable, Sequence

from roost.model.errors import OperatorError
from roost.nova.broker import RabbitOptions, broker_addresses, virtual_host
from roost.nova.feed import NovaFeed
from roost.nova.instance_source import CellInstances
from roost.nova.networks import NovaNetworks
from roost.nova.shadow.comparison_store import ComparisonStore
from roost.nova.shadow.shadow_runs import ShadowOptions, ShadowRuns
from roost.nova.shadow.tables import SCHEMA
from roost.scheduler import Scheduler
from roost.scheduler.gateways.unclaimed import JudgingPools
from roost.server.nova_options import NovaSchedulerOptions
from roost.server.parts.scheduler import unclaimed_gateway
from roost.server.process import Process, ProcessPart, prepare_database
from roost.web.health import HealthCheck


class NovaShadowPart(ProcessPart[NovaSchedulerOptions]):
    """The decisions of shadow mode. With another mode it does nothing."""

    def check(self, options: NovaSchedulerOptions) -> None:
        if options.is_shadow and not broker_addresses(options.nova.transport_url or ""):
            raise OperatorError("[DEFAULT] transport_url: shadow mode needs the URL of a RabbitMQ")

    def prepare(self, options: NovaSchedulerOptions) -> None:
        if options.is_shadow:
            assert options.api_database is not None
            # The table is made without being asked: nothing but shadow mode has it.
            prepare_database(options.api_database, upgrade=True, schema=SCHEMA)

    async def open(self, process: Process[NovaSchedulerOptions]) -> None:
        options = process.options
        if not options.is_shadow:
            return
        # Imported only here: kombu comes with the extra.
        from roost.nova.shadow.copied_calls import CopiedCalls

        assert process.hosts is not None and process.api is not None
        pools = JudgingPools(process.hosts.table, options.scheduler)
        networks = NovaNetworks.configured(options.source, options.scheduler)
        process.stack.push_async_callback(networks.close)
        runs = ShadowRuns(
            Scheduler(
                await unclaimed_gateway(process, pools),
                process.records,
                process.clock,
                seeds=process.seeds,
                words=process.words,
            ),
            pools,
            process.placement,
            CellInstances(process.nova_cells),
            ComparisonStore(process.api, process.clock),
            ShadowOptions(options.nova.rpc_response_timeout, options.scheduler.host_subset_size),
            refresh=process.nova_feed.words.look,
            filled=networks.filled,
            clock=process.clock,
        )
        process.stack.push_async_callback(runs.close)
        url = options.nova.transport_url or ""
        rabbit = options.source.read(RabbitOptions)
        process.nova_copies = copies = CopiedCalls(
            broker_addresses(url),
            virtual_host(url),
            rabbit,
            runs.take,
            exchange=rabbit.control_exchange,
            name=options.host,
        )
        process.stack.push_async_callback(copies.stop)
        process.run_for_ever("copies", take_copies(copies.start, process.nova_feed))

    def readiness(self, process: Process[NovaSchedulerOptions]) -> Sequence[HealthCheck]:
        if not process.options.is_shadow:
            return ()
        copies, feed = process.nova_copies, process.nova_feed

        def judge(_: Exception | None) -> str | None:
            return copies.failure if feed.is_loaded else "no copy is taken before the hosts are read"

        return (HealthCheck("broker", judge=judge),)


async def take_copies(start: Callable[[], None], feed: NovaFeed) -> None:
    """Take copies once the hosts are read: until then each would be compared with a cloud without hosts."""
    await feed.loaded()
    start()
    await asyncio.Event().wait()
