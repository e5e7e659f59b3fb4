"""Roost's scheduler of Nova in a process of its own, without a broker: calls are made at its endpoint.

It answers as `roost.bench.nova.nova_process` does. Arguments of the command are the configuration files of
``roost nova-scheduler``.
"""

import asyncio
import sys
import threading
import uuid
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any

from roost.bench.nova.timed_calls import answer, own_output, timed_calls
from roost.nova.rpc.calls_in_work import CallsInWork
from roost.nova.rpc.endpoint import SchedulerEndpoint
from roost.nova.rpc.notifications import CallNotifications
from roost.nova.rpc.transport import open_transport
from roost.process.garbage_collection import keep_what_is_loaded
from roost.process.logs import configure_logs
from roost.process.option_source import Source
from roost.scheduler.nodes.hosts import ServiceHosts
from roost.server.nova_options import read_nova_options
from roost.server.parts.nova import open_decisions
from roost.server.process import Process
from roost.server.programs import open_parts

PARTS = frozenset(("records", "bridge_database", "placement", "nova_hosts", "scheduler"))
"""The parts of the command that decide."""


class Bridge:
    """The functions that are asked for, in a thread beside the event loop."""

    def __init__(self, endpoint: SchedulerEndpoint, hosts: ServiceHosts) -> None:
        self._endpoint = endpoint
        self._hosts = hosts

    def nodes(self) -> int:
        """Return the number of nodes in the table."""
        return len(self._hosts.table)

    def calls(self, specs: Sequence[Mapping[str, Any]], **limits: Any) -> dict[str, Any]:
        """Make calls, and return what `timed_calls` returns."""
        return timed_calls(self._select, specs, **limits)

    def _select(self, spec: Mapping[str, Any], instance: str) -> None:
        context = {"user_id": "user", "project_id": "project", "request_id": f"req-{uuid.uuid4()}"}
        [[first, *_]] = self._endpoint.select_destinations(
            context, dict(spec), [instance], return_objects=True, return_alternates=True
        )
        if "nova_object.data" not in first:
            raise ValueError(f"no selection: {first}")


async def serve(files: Sequence[str]) -> None:
    """Open the scheduler, and answer until the input ends."""
    answers = own_output()
    options = read_nova_options(Source(files=tuple(files)))
    configure_logs(options.logs)
    async with AsyncExitStack() as stack:
        process = Process(options, PARTS, stack)
        await open_parts(process, PARTS)
        decide = open_decisions(process)
        calls = CallsInWork(decide, asyncio.get_running_loop())
        assert process.hosts is not None
        notifications = CallNotifications(open_transport(files).conf, options.host)
        endpoint = SchedulerEndpoint(calls, process.nova_feed, notifications)
        functions = Bridge(endpoint, process.hosts)
        keep_what_is_loaded()
        ended = asyncio.Event()
        loop = asyncio.get_running_loop()

        def work() -> None:
            try:
                answer(functions, answers)
            finally:
                loop.call_soon_threadsafe(ended.set)

        threading.Thread(target=work, daemon=True).start()
        await ended.wait()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1:]))
