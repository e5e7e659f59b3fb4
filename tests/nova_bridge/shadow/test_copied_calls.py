"""Copies of Nova's calls: the messages that are calls, and what is read of them."""

import asyncio
import json
import threading
from typing import Any, cast

import pytest

from roost.nova.calls import SelectCall
from roost.nova.feed import NovaFeed
from roost.nova.shadow.copied_calls import copied_call, drain
from roost.server.parts.nova_shadow import take_copies
from support.nova_specs import request_spec

INSTANCE = "155d900f-4e14-4e4c-a73d-069cbf4541e7"


def message(**more: Any) -> dict[str, Any]:
    """A call as oslo.messaging sends it, before its envelope."""
    return {
        "method": "select_destinations",
        "version": "4.5",
        "args": {
            "instance_uuids": [INSTANCE],
            "spec_obj": request_spec(),
            "return_objects": True,
            "return_alternates": True,
        },
        "_msg_id": "m",
        "_reply_q": "q",
        "_context_auth_token": "secret token",
        "_context_service_catalog": [{"secret": "catalogue"}],
        "_context_request_id": "req-1",
        "_context_global_request_id": None,
        "_context_project_id": "project",
        "_context_user_id": "user",
        **more,
    }


def in_envelope(body: Any) -> dict[str, Any]:
    return {"oslo.version": "2.0", "oslo.message": json.dumps(body)}


def test_a_call() -> None:
    found = copied_call(in_envelope(message()))
    assert found == SelectCall(
        request_spec(), (INSTANCE,), request_id="req-1", project="project", user="user"
    )
    assert found == copied_call(message())


def test_token_and_catalogue_are_not_kept() -> None:
    assert "secret" not in repr(copied_call(in_envelope(message())))


@pytest.mark.parametrize(
    "body",
    [
        None,
        "text",
        {},
        {"oslo.version": "2.0", "oslo.message": "{"},
        in_envelope([]),
        in_envelope(message(method="update_aggregates")),
        in_envelope(message(args={"request_spec": {}, "filter_properties": {}})),
        in_envelope(message(args={"spec_obj": request_spec(), "instance_uuids": []})),
        in_envelope(message(args=None)),
    ],
)
def test_other_messages_are_no_calls(body: object) -> None:
    assert copied_call(body) is None


class BusyConnection:
    """A connection with a message each 0.3 s, for ``messages`` of them. ``beats``: the times of checks."""

    def __init__(self, messages: int) -> None:
        self.left = messages
        self.now = 0.0
        self.beats: list[float] = []
        self.ending = threading.Event()

    def drain_events(self, timeout: float) -> None:
        self.now += 0.3
        self.left -= 1
        if not self.left:
            self.ending.set()

    def heartbeat_check(self) -> None:
        self.beats.append(self.now)


def test_heartbeats_are_checked_while_messages_come_without_a_pause() -> None:
    connection = BusyConnection(10)
    drain(connection, connection.ending, lambda: connection.now)
    assert connection.beats == pytest.approx([1.2, 2.4])


def test_copies_are_taken_once_the_hosts_are_read() -> None:
    class Feed:
        def __init__(self) -> None:
            self.read = asyncio.Event()

        async def loaded(self) -> None:
            await self.read.wait()

    async def main() -> None:
        feed, started = Feed(), asyncio.Event()
        taking = asyncio.create_task(take_copies(started.set, cast(NovaFeed, feed)))
        for _ in range(5):
            await asyncio.sleep(0)
        assert not started.is_set()
        feed.read.set()
        await asyncio.wait_for(started.wait(), 10)
        taking.cancel()

    asyncio.run(main())
