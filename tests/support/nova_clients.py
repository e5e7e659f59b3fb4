"""A client of a scheduler's RPC interface, as Nova's conductors are, without Nova."""

import asyncio
import json
import uuid
from types import TracebackType
from typing import Any, Self

import kombu
from oslo_config import cfg

from roost.nova.rpc.oslo import oslo_messaging

CONTEXT = {
    "request_id": "req-1",
    "global_request_id": "req-0",
    "project_id": "project",
    "user_id": "user",
    "auth_token": "the-token",
    "service_catalog": [{"type": "compute"}],
}
"""A context of a user's request. The token and the catalogue are the user's."""


class SchedulerClient:
    """Calls and casts over a broker. Used as a context manager."""

    def __init__(self, url: str) -> None:
        oslo_messaging.set_transport_defaults("nova")
        self._transport = oslo_messaging.get_rpc_transport(
            cfg.CONF, url=url, allowed_remote_exmods=["nova.exception"]
        )
        self.client = oslo_messaging.get_rpc_client(
            self._transport, oslo_messaging.Target(topic="scheduler", version="4.0")
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._transport.cleanup()

    def select(
        self, *instances: str, version: str = "4.5", seconds: int = 20, monitor: int = 60, **more: Any
    ) -> Any:
        """Call ``select_destinations``, and wait for the response."""
        prepared = self.client.prepare(version=version, timeout=seconds, call_monitor_timeout=monitor)
        arguments = {"instance_uuids": list(instances), "spec_obj": {"name": "RequestSpec"}, **more}
        return prepared.call(CONTEXT, "select_destinations", **arguments)

    async def selected(self, *instances: str, **more: Any) -> Any:
        """As `select`, beside the event loop."""
        return await asyncio.to_thread(lambda: self.select(*instances, **more))

    def cast(self, method: str, version: str = "4.2", **arguments: Any) -> None:
        """Send a cast to all schedulers."""
        self.client.prepare(version=version, fanout=True).cast(CONTEXT, method, **arguments)


def deliver(url: str, instance: str, copies: int) -> None:
    """Publish a call that awaits no response, as one message that the broker delivers several times."""
    message = {
        "method": "select_destinations",
        "version": "4.5",
        "args": {"instance_uuids": [instance], "spec_obj": {"name": "RequestSpec"}},
        "_unique_id": uuid.uuid4().hex,
        **{f"_context_{name}": value for name, value in CONTEXT.items()},
    }
    body = {"oslo.version": "2.0", "oslo.message": json.dumps(message)}
    with kombu.Connection(url.replace("rabbit", "amqp", 1)) as connection:
        for _ in range(copies):
            connection.Producer().publish(body, exchange="nova", routing_key="scheduler", serializer="json")
