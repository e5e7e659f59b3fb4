"""Copies of calls on a real RabbitMQ: the scheduler beside has every call as before."""

import asyncio
import json
from typing import Any

from amqp.exceptions import NotFound, ResourceLocked
from kombu import Connection, Exchange, Producer, Queue

from roost.bench.loopback import free_port
from roost.nova.broker import BrokerAddress, RabbitOptions, broker_addresses, virtual_host
from roost.nova.calls import SelectCall
from roost.nova.shadow.copied_calls import CopiedCalls
from support.nova_clients import SchedulerClient
from support.rabbitmq import RabbitMQ
from support.rpc_schedulers import NotingScheduler, serving, until


def copying(
    broker: RabbitMQ, copies: list[SelectCall], *others: BrokerAddress, exchange: str = "nova"
) -> CopiedCalls:
    url = broker.url()
    return CopiedCalls(
        [*others, *broker_addresses(url)],
        virtual_host(url),
        RabbitOptions(),
        copies.append,
        exchange=exchange,
        name="here",
        retry_seconds=0.2,
    )


def exists(broker: RabbitMQ, queue: str) -> bool:
    """Return whether the broker has a queue, which others may not use."""
    with Connection(broker.url().replace("rabbit://", "amqp://")) as connection:
        try:
            Queue(queue, channel=connection.channel()).queue_declare(passive=True)
        except NotFound:
            return False
        except ResourceLocked:
            return True
        raise AssertionError("another connection may use the queue")


async def call(client: SchedulerClient, *instances: str, **more: Any) -> None:
    await client.selected(*instances, return_objects=True, return_alternates=True, **more)


def test_each_call_is_copied_and_none_is_taken(broker: RabbitMQ) -> None:
    async def main() -> None:
        scheduler, copies = NotingScheduler(), list[SelectCall]()
        async with serving(broker.url(), scheduler):
            reading = copying(broker, copies)
            reading.start()
            await until(lambda: reading.connected)
            assert reading.failure is None
            with SchedulerClient(broker.url()) as client:
                for number in range(20):
                    await call(client, f"instance-{number}")
                client.cast("sync_instance_info", host_name="h", instance_uuids=[])
                await call(client, "last")
            await until(lambda: len(copies) == 21)
            assert [each.instances for each in copies] == [each.instances for each in scheduler.calls]
            assert copies[0] == scheduler.calls[0]
            assert "the-token" not in repr(copies)
            queue = reading.queue
            assert exists(broker, queue)
            await reading.stop()
            assert not reading.connected
            await until(lambda: not exists(broker, queue))

    asyncio.run(main())


def test_a_broker_that_is_away_and_an_exchange_that_is_not_there_yet(broker: RabbitMQ) -> None:
    async def main() -> None:
        copies = list[SelectCall]()
        away = BrokerAddress("127.0.0.1", free_port(), "guest", "guest")
        reading = copying(broker, copies, away, exchange="later")
        assert reading.failure == "the message broker is being connected"
        reading.start()
        await until(lambda: reading.tries > 2)
        assert not reading.connected
        assert reading.failure == "the message broker is not connected; the log has the error"
        with Connection(broker.url().replace("rabbit://", "amqp://")) as connection:
            exchange = Exchange("later", type="topic", durable=False)
            exchange(connection.channel()).declare()
            await until(lambda: reading.connected)
            call = {"method": "select_destinations", "args": {"spec_obj": {}, "instance_uuids": ["one"]}}
            Producer(connection, exchange).publish(
                {"oslo.version": "2.0", "oslo.message": json.dumps(call)}, routing_key="scheduler"
            )
            await until(lambda: copies)
            exchange(connection.channel()).delete()
        assert copies[0].instances == ("one",)
        await reading.stop()

    asyncio.run(main())
