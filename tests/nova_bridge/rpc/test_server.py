"""A server of topic ``scheduler`` on a real RabbitMQ, and calls as Nova's conductors make them."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from roost.nova.calls import NovaRefusal, SelectCall, no_valid_host
from roost.nova.rpc.endpoint import FAILED
from roost.nova.rpc.oslo import oslo_messaging
from roost.nova.rpc.server import SchedulerRpcServer
from roost.nova.rpc.transport import open_transport
from support.nova_clients import SchedulerClient
from support.rabbitmq import RabbitMQ

WAIT = 60.0


class Scheduler:
    """Decides by the first instance: ``refused``, ``broken``, or any other. Notes all calls and hints."""

    def __init__(self, name: str = "one") -> None:
        self.name = name
        self.calls: list[SelectCall] = []
        self.hints: list[tuple[str, ...]] = []

    async def __call__(self, call: SelectCall) -> list[Any]:
        self.calls.append(call)
        if call.instances[0] == "refused":
            raise no_valid_host("Nothing is free.")
        if call.instances[0] == "held":
            raise NovaRefusal("AllocationUpdateFailed", consumer_uuid="held", error="It holds something.")
        if call.instances[0] == "broken":
            raise RuntimeError("secret-host is broken")
        return [[{"host": self.name}] for _ in call.instances]

    def node_changed(self, host: str) -> None:
        self.hints.append(("node", host))

    def instances_changed(self, host: str) -> None:
        self.hints.append(("instances", host))

    def aggregates_changed(self) -> None:
        self.hints.append(("aggregates",))


@asynccontextmanager
async def serving(url: str, scheduler: Scheduler) -> AsyncIterator[SchedulerRpcServer]:
    server = SchedulerRpcServer(open_transport([], url), scheduler.name, scheduler, scheduler)
    await server.start()
    try:
        yield server
    finally:
        await server.stop(WAIT)


async def until(condition: Any) -> None:
    async with asyncio.timeout(WAIT):
        while not condition():
            await asyncio.sleep(0.02)


def test_a_call_is_decided(broker: RabbitMQ) -> None:
    async def run() -> None:
        scheduler = Scheduler()
        async with serving(broker.url(), scheduler):
            with SchedulerClient(broker.url()) as client:
                found = await client.selected("a", "b", return_objects=True, return_alternates=True)
                assert found == [[{"host": "one"}], [{"host": "one"}]]
                await client.selected("c", version="4.4")
        first, second = scheduler.calls
        assert first == SelectCall(
            spec={"name": "RequestSpec"},
            instances=("a", "b"),
            request_id="req-1",
            global_request_id="req-0",
            project="project",
            user="user",
        )
        assert (second.objects, second.alternates) == (False, False)

    asyncio.run(run())


def test_errors_are_those_of_nova(broker: RabbitMQ) -> None:
    async def refused(client: SchedulerClient, instance: str, **more: Any) -> Any:
        with pytest.raises(oslo_messaging.RemoteError) as raised:
            await client.selected(instance, **more)
        return raised.value

    async def run() -> None:
        async with serving(broker.url(), Scheduler()):
            with SchedulerClient(broker.url()) as client:
                error = await refused(client, "refused")
                assert (error.exc_type, error.value) == ("NoValidHost", "Nothing is free.")
                error = await refused(client, "held")
                assert (error.exc_type, error.value) == (
                    "AllocationUpdateFailed",
                    "held; It holds something.",
                )
                error = await refused(client, "broken")
                assert (error.exc_type, error.value) == ("NoValidHost", FAILED)
                assert "secret-host" not in str(error)
                error = await refused(client, "a", version="4.3", instance_uuids=None)
                assert error.exc_type == "UnsupportedVersion"
                error = await refused(client, "a", version="4.0", filter_properties={})
                assert error.exc_type == "UnsupportedVersion"

    asyncio.run(run())


def test_casts_reach_all_schedulers_and_calls_one(broker: RabbitMQ) -> None:
    async def run() -> None:
        one, two = Scheduler("one"), Scheduler("two")
        async with serving(broker.url(), one), serving(broker.url(), two):
            with SchedulerClient(broker.url()) as client:
                client.cast("update_aggregates", "4.1", aggregates=[{"id": 1}])
                client.cast("delete_aggregate", "4.1", aggregate={"id": 1})
                client.cast("update_instance_info", host_name="h1", instance_info={"uuid": "a"})
                client.cast("delete_instance_info", host_name="h2", instance_uuid="a")
                client.cast("sync_instance_info", host_name="h3", instance_uuids=["a"])
                for scheduler in (one, two):
                    await until(lambda scheduler=scheduler: len(scheduler.hints) == 7)
                    assert set(scheduler.hints) == {
                        ("aggregates",),
                        ("node", "h1"),
                        ("instances", "h1"),
                        ("node", "h2"),
                        ("instances", "h2"),
                        ("instances", "h3"),
                    }
                found = [await client.selected(str(number)) for number in range(6)]
                assert sorted(each[0][0]["host"] for each in found) == ["one"] * 3 + ["two"] * 3

    asyncio.run(run())
