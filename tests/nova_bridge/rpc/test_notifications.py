"""The notifications of calls: payloads as Nova makes them, and their way over a real broker."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from oslo_config import cfg
from structlog.testing import capture_logs

from roost.model.errors import OperatorError
from roost.nova.calls import SelectCall
from roost.nova.rpc.notification_payloads import unversioned_payload, versioned_payload
from roost.nova.rpc.notifications import CallNotifications
from roost.nova.rpc.oslo import oslo_messaging
from roost.nova.rpc.transport import open_transport
from support.nova import Nova
from support.nova_clients import SchedulerClient
from support.nova_specs import request_spec
from support.rabbitmq import RabbitMQ
from support.rpc_schedulers import NotingScheduler, serving, until


def sorted_sets(value: Any) -> Any:
    """Nova sends sets as lists, in any order."""
    if isinstance(value, dict):
        return {key: sorted_sets(each) for key, each in value.items()}
    if isinstance(value, list):
        return sorted(map(sorted_sets, value), key=repr)
    return value


@pytest.mark.parametrize("rich", [False, True])
def test_payloads_are_those_of_nova(nova: Nova, rich: bool) -> None:
    spec, unversioned, versioned = nova.ask("scheduler_notifications", "payloads", rich=rich)
    assert sorted_sets(unversioned_payload(spec)) == sorted_sets(unversioned)
    assert sorted_sets(versioned_payload(spec)) == sorted_sets(versioned)
    assert "secret" not in repr(versioned_payload(spec))


class Notes:
    """Notes all notifications of a topic."""

    def __init__(self) -> None:
        self.found: list[tuple[dict[str, Any], str, str, Any]] = []

    def info(self, ctxt: Any, publisher_id: str, event_type: str, payload: Any, metadata: Any) -> None:
        self.found.append((ctxt, publisher_id, event_type, payload))


def test_notifications_are_sent_where_nova_conf_asks_for_them(broker: RabbitMQ, tmp_path: Path) -> None:
    conf = tmp_path / "nova.conf"
    conf.write_text(
        f"[DEFAULT]\ntransport_url = {broker.url()}\n"
        "[notifications]\nnotification_format = both\nversioned_notifications_topics = versioned\n"
        "[oslo_messaging_notifications]\ndriver = messagingv2\ntopics = unversioned\n"
    )
    spec = request_spec()

    async def run() -> None:
        unversioned, versioned = Notes(), Notes()
        async with serving(broker.url(), NotingScheduler(), conf):
            transport = oslo_messaging.get_notification_transport(cfg.CONF)
            listeners = [
                oslo_messaging.get_notification_listener(
                    transport, [oslo_messaging.Target(topic=topic)], [notes]
                )
                for topic, notes in (("unversioned", unversioned), ("versioned", versioned))
            ]
            for each in listeners:
                await asyncio.to_thread(each.start)
            with SchedulerClient(broker.url()) as client:
                await client.selected("a", spec_obj=spec)
                with pytest.raises(oslo_messaging.RemoteError):
                    await client.selected("refused", spec_obj=spec)
            await until(lambda: len(unversioned.found) == len(versioned.found) == 3)
            for each in listeners:
                await asyncio.to_thread(each.stop)
                await asyncio.to_thread(each.wait)
            transport.cleanup()
        events = [f"scheduler.select_destinations.{phase}" for phase in ("start", "end", "start")]
        assert [each[1:3] for each in unversioned.found] == [("scheduler.one", event) for event in events]
        assert [each[1:3] for each in versioned.found] == [("nova-scheduler:one", event) for event in events]
        assert unversioned.found[0][3] == unversioned_payload(spec)
        assert versioned.found[0][3] == versioned_payload(spec)
        context = versioned.found[0][0]
        assert context["request_id"] == "req-1" and context["user_id"] == "user"
        assert "the-token" not in repr(unversioned.found) + repr(versioned.found)

    asyncio.run(run())


def test_a_request_of_no_known_form_is_no_failure_here(tmp_path: Path) -> None:
    conf = tmp_path / "nova.conf"
    conf.write_text("[oslo_messaging_notifications]\ndriver = log\n")
    transport = open_transport([str(conf)], "fake://")
    notifications = CallNotifications(transport.conf, "one")
    with capture_logs() as logs:
        notifications.send("start", SelectCall(spec={"no": "spec"}, instances=("a",)))
    assert [each["event"] for each in logs] == ["a notification could not be sent"]
    notifications.close()
    transport.close()


@pytest.mark.parametrize("url", ["nothing://u:secret@broker/", "rabbit://u:secret@broker:port/"])
def test_a_url_that_cannot_be_used(tmp_path: Path, url: str) -> None:
    conf = tmp_path / "nova.conf"
    conf.write_text(f"[oslo_messaging_notifications]\ntransport_url = {url}\n")
    transport = open_transport([str(conf)], "fake://")
    with pytest.raises(OperatorError, match=r"\[oslo_messaging_notifications\] transport_url: ") as found:
        CallNotifications(transport.conf, "one")
    assert "secret" not in str(found.value)
    transport.close()


def test_a_format_that_is_unknown(tmp_path: Path) -> None:
    conf = tmp_path / "nova.conf"
    conf.write_text("[notifications]\nnotification_format = prose\n")
    transport = open_transport([str(conf)], "fake://")
    with pytest.raises(OperatorError, match="notification_format"):
        CallNotifications(transport.conf, "one")
    transport.close()


def test_a_port_of_the_broker_of_calls_that_is_no_number(tmp_path: Path) -> None:
    with pytest.raises(OperatorError, match=r"transport_url: ") as found:
        open_transport([], "rabbit://u:secret@broker:port/")
    assert "secret" not in str(found.value)
