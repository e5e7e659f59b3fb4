"""A server of topic ``scheduler`` on a real RabbitMQ, and calls as Nova's conductors make them."""

import asyncio
import gc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from roost.nova.calls import SelectCall
from roost.nova.rpc import server as server_module
from roost.nova.rpc.endpoint import ENDING, FAILED
from roost.nova.rpc.oslo import oslo_messaging
from roost.nova.rpc.server import BrokerUnavailable, SchedulerRpcServer
from roost.nova.rpc.transport import open_transport
from support.nova import Nova
from support.nova_clients import SchedulerClient, deliver
from support.rabbitmq import RabbitMQ
from support.rpc_schedulers import CELL, WAIT, NotingScheduler, serving, until

HINTS = {
    ("aggregates",),
    ("node", "h1"),
    ("instances", "h1"),
    ("node", "h2"),
    ("instances", "h2"),
    ("instances", "h3"),
}
"""The hints of one cast of each kind."""


# oslo.messaging abandons the sockets of connections that broke.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.fixture(autouse=True)
def collected(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Collect abandoned sockets here, and not in a test of another file. Tracebacks in the log hold them."""
    yield
    caplog.get_records("call").clear()
    gc.collect()


async def refusal(client: SchedulerClient, instance: str, **more: Any) -> Any:
    """The error that a call raises."""
    with pytest.raises(oslo_messaging.RemoteError) as raised:
        await client.selected(instance, **more)
    return raised.value


def hosts(answer: Any) -> list[str]:
    return [row[0]["nova_object.data"]["service_host"] for row in answer]


def test_a_call_is_decided(broker: RabbitMQ) -> None:
    async def run() -> None:
        scheduler = NotingScheduler()
        async with serving(broker.url(), scheduler):
            with SchedulerClient(broker.url()) as client:
                answer = await client.selected("a", "b", return_objects=True, return_alternates=True)
                assert hosts(answer) == ["one", "one"]
                [older] = await client.selected("c", version="4.4")
                assert older["host"] == "one"
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
    async def run() -> None:
        async with serving(broker.url(), NotingScheduler()):
            with SchedulerClient(broker.url()) as client:
                error = await refusal(client, "refused")
                assert (error.exc_type, error.value) == ("NoValidHost", "Nothing is free.")
                error = await refusal(client, "held")
                assert error.exc_type == "AllocationUpdateFailed"
                assert error.value == "held; It holds something."
                error = await refusal(client, "broken")
                assert (error.exc_type, error.value) == ("NoValidHost", FAILED)
                assert "secret-host" not in str(error)
                error = await refusal(client, "a", version="4.3", instance_uuids=None)
                assert error.exc_type == "UnsupportedVersion"
                error = await refusal(client, "a", version="4.0", filter_properties={})
                assert error.exc_type == "UnsupportedVersion"

    with capture_logs() as logs:
        asyncio.run(run())
    assert [each["event"] for each in logs] == [
        "a call of Nova failed",
        *["a call of an older Nova is refused"] * 2,
    ]


def test_casts_reach_all_schedulers_and_calls_one(broker: RabbitMQ) -> None:
    async def run() -> None:
        one, two = NotingScheduler("one"), NotingScheduler("two")
        async with serving(broker.url(), one), serving(broker.url(), two):
            with SchedulerClient(broker.url()) as client:
                client.cast("update_aggregates", "4.1", aggregates=[{"id": 1}])
                client.cast("delete_aggregate", "4.1", aggregate={"id": 1})
                client.cast("update_instance_info", host_name="h1", instance_info={"uuid": "a"})
                client.cast("delete_instance_info", host_name="h2", instance_uuid="a")
                client.cast("sync_instance_info", host_name="h3", instance_uuids=["a"])
                await until(lambda: set(one.hints) == set(two.hints) == HINTS)
                answers = [await client.selected(str(number), return_objects=True) for number in range(6)]
                assert (
                    sorted(host for answer in answers for host in hosts(answer)) == ["one"] * 3 + ["two"] * 3
                )

    asyncio.run(run())


def test_nova_is_served(broker: RabbitMQ, nova: Nova) -> None:
    async def ask(function: str, *arguments: Any, **more: Any) -> Any:
        return await asyncio.to_thread(
            lambda: nova.ask("scheduler_client", function, *arguments, url=broker.url(), **more)
        )

    async def run() -> None:
        scheduler = NotingScheduler()
        async with serving(broker.url(), scheduler):
            assert await ask("select", instance="a") == [[["one", CELL]]]
            assert await ask("select", instance="b", objects=False) == [
                {"host": "one", "nodename": "one", "limits": {}}
            ]
            assert await ask("refusal", instance="refused") == [
                "NoValidHost",
                "No valid host was found. Nothing is free.",
                {"reason": "Nothing is free.", "code": 500},
            ]
            kind, text, _ = await ask("refusal", instance="held")
            assert kind == "AllocationUpdateFailed"
            assert text == "Failed to update allocations for consumer held. Error: It holds something."
            await ask("cast")
            await until(lambda: set(scheduler.hints) == HINTS)
        first = scheduler.calls[0]
        assert first.spec["nova_object.name"] == "RequestSpec"
        assert (first.instances, first.objects, first.alternates) == (("a",), True, True)
        assert (first.request_id, first.global_request_id) == ("req-1", "req-0")
        assert (first.project, first.user) == ("project", "user")

    asyncio.run(run())


def test_heartbeats_keep_a_long_call_alive(broker: RabbitMQ) -> None:
    async def run() -> None:
        scheduler = NotingScheduler()
        async with serving(broker.url(), scheduler):
            with SchedulerClient(broker.url()) as client:
                call = asyncio.create_task(client.selected("slow", monitor=2))
                await asyncio.sleep(4)  # twice the time without a heartbeat after which the client gives up
                scheduler.go.set()
                assert len(await call) == 1

    asyncio.run(run())


def test_calls_in_work_are_finished_at_the_end(broker: RabbitMQ) -> None:
    async def run() -> None:
        one, two = NotingScheduler("one"), NotingScheduler("two")
        with SchedulerClient(broker.url()) as client:
            async with serving(broker.url(), two), serving(broker.url(), one) as server:
                calls = [asyncio.create_task(client.selected("slow", return_objects=True)) for _ in "12"]
                await until(lambda: one.calls and two.calls)
                stopped = asyncio.create_task(server.stop(60))
                await until(lambda: not server.listening)
                later = [await client.selected("later", return_objects=True) for _ in "123"]
                assert [hosts(answer) for answer in later] == [["two"]] * 3
                assert server.in_work == 1 and not stopped.done()
                one.go.set()
                two.go.set()
                await stopped
                assert {hosts(answer)[0] for answer in await asyncio.gather(*calls)} == {"one", "two"}

    asyncio.run(run())


def test_a_decision_that_takes_too_long_at_the_end_is_still_answered(broker: RabbitMQ) -> None:
    """Its claim may be with the writer."""

    async def run() -> None:
        scheduler = NotingScheduler()
        with SchedulerClient(broker.url()) as client:
            async with serving(broker.url(), scheduler) as server:
                call = asyncio.create_task(client.selected("slow"))
                await until(lambda: scheduler.calls)
                with capture_logs() as logs:
                    stopping = asyncio.create_task(server.stop(0.1))
                    await until(lambda: logs)
                assert logs[0]["event"] == "calls are not decided in time"
                scheduler.go.set()
                assert len(await call) == 1
                await stopping

    asyncio.run(run())


def test_a_decision_that_does_not_end_is_not_answered_and_keeps_no_thread(
    broker: RabbitMQ, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_module, "CLOSE_SECONDS", 0.3)

    async def run() -> None:
        scheduler = NotingScheduler()
        with SchedulerClient(broker.url()) as client:
            async with serving(broker.url(), scheduler) as server:
                call = asyncio.create_task(client.selected("slow", monitor=2))
                await until(lambda: scheduler.calls)
                await server.stop(0.1)
                await until(lambda: not server.in_work)
                with pytest.raises(oslo_messaging.MessagingTimeout):
                    await call

    asyncio.run(run())


def test_calls_whose_decision_has_not_begun_at_the_end_are_refused(broker: RabbitMQ, tmp_path: Path) -> None:
    conf = tmp_path / "nova.conf"
    conf.write_text("[DEFAULT]\nexecutor_thread_pool_size = 1\n")

    async def run() -> None:
        scheduler = NotingScheduler()
        with SchedulerClient(broker.url()) as client:
            async with serving(broker.url(), scheduler, conf) as server:
                first = asyncio.create_task(client.selected("slow"))
                await until(lambda: scheduler.calls)
                second = asyncio.create_task(refusal(client, "second"))
                await asyncio.sleep(0.5)
                with capture_logs() as logs:
                    stopping = asyncio.create_task(server.stop(0.1))
                    await until(lambda: logs)
                scheduler.go.set()
                assert len(await first) == 1
                error = await second
                assert (error.exc_type, error.value) == ("NoValidHost", ENDING)
                await stopping

    asyncio.run(run())


def test_a_reply_that_the_broker_does_not_take_is_sent_again(
    broker: RabbitMQ, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker that is away for more than a few seconds is told by this error."""
    from oslo_messaging._drivers.amqpdriver import AMQPIncomingMessage

    reply = AMQPIncomingMessage.reply
    failures = [oslo_messaging.MessageDeliveryFailure("the broker is away")] * 2

    def replying(self: Any, *args: Any, **options: Any) -> Any:
        if failures:
            raise failures.pop()
        return reply(self, *args, **options)

    monkeypatch.setattr(AMQPIncomingMessage, "reply", replying)

    async def run() -> None:
        async with serving(broker.url(), NotingScheduler()):
            with SchedulerClient(broker.url()) as client:
                assert len(await client.selected("a")) == 1

    asyncio.run(run())
    assert not failures


def test_a_broker_that_was_killed_is_used_again(broker: RabbitMQ) -> None:
    async def run() -> None:
        scheduler = NotingScheduler()
        async with serving(broker.url(), scheduler) as server:
            await until(lambda: server.connected)
            with SchedulerClient(broker.url()) as client:
                call = asyncio.create_task(client.selected("slow", seconds=60))
                await until(lambda: scheduler.calls)
                broker.kill()
                scheduler.go.set()
                await until(lambda: not server.connected)
                broker.start()  # in this thread, with whose end it would end
                await until(lambda: server.connected)
                assert len(await client.selected("after")) == 1
                assert len(await call) == 1

    asyncio.run(run())


def test_a_call_that_is_delivered_twice_reaches_two_schedulers(broker: RabbitMQ) -> None:
    """It happens where an acknowledgement is lost. So the decision must know a call that was answered."""

    async def run() -> None:
        one, two = NotingScheduler("one"), NotingScheduler("two")
        async with serving(broker.url(), one):
            deliver(broker.url(), "a", copies=2)
            with SchedulerClient(broker.url()) as client:
                await client.selected("b")
            assert [call.instances for call in one.calls] == [("a",), ("b",)]
            async with serving(broker.url(), two):
                deliver(broker.url(), "c", copies=2)
                await until(lambda: len(one.calls) == 3 and two.calls)
                assert one.calls[-1] == two.calls[-1]

    asyncio.run(run())


def test_a_call_that_its_caller_gave_up_is_not_decided(broker: RabbitMQ, tmp_path: Path) -> None:
    conf = tmp_path / "nova.conf"
    conf.write_text("[DEFAULT]\nexecutor_thread_pool_size = 1\n")

    async def run() -> None:
        scheduler = NotingScheduler()
        with SchedulerClient(broker.url()) as client:
            async with serving(broker.url(), scheduler, conf):
                first = asyncio.create_task(client.selected("slow"))
                await until(lambda: scheduler.calls)
                with pytest.raises(oslo_messaging.MessagingTimeout):
                    await client.selected("late", monitor=1)
                await asyncio.sleep(0.2)
                scheduler.go.set()
                await first
                assert await client.selected("last")
        assert [call.instances for call in scheduler.calls] == [("slow",), ("last",)]

    asyncio.run(run())


def test_a_broker_that_refuses_a_password_is_an_error_without_it(broker: RabbitMQ) -> None:
    async def run() -> None:
        server = unstarted(broker.url().replace("guest@", "wrong-word@"))
        with pytest.raises(BrokerUnavailable) as raised:
            await server.start()
        assert "AccessRefused" in str(raised.value) and "wrong-word" not in str(raised.value)
        await server.stop(WAIT)

    asyncio.run(run())


def test_the_start_waits_for_a_broker_that_is_away(broker: RabbitMQ) -> None:
    async def run() -> None:
        broker.kill()
        server = unstarted(broker.url())
        with capture_logs() as logs:
            start = asyncio.create_task(server.start())
            await until(lambda: len(logs) > 2)
        assert {each["event"] for each in logs} == {
            "the message broker does not answer; the start waits for it"
        }
        assert not server.listening
        broker.start()
        await start
        with SchedulerClient(broker.url()) as client:
            assert await client.selected("a")
        await server.stop(WAIT)

    asyncio.run(run())


def unstarted(url: str) -> SchedulerRpcServer:
    scheduler = NotingScheduler()
    return SchedulerRpcServer(open_transport([], url), "one", scheduler, scheduler, start_seconds=0.2)
