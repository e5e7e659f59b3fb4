"""The notifications of the start and the end of a call, in the formats that nova.conf names.

As with nova-scheduler a call that finds no host has a start and no end.
"""

from typing import Any, Final, Literal, get_args

import structlog
from oslo_config import cfg

from roost.model.errors import OperatorError
from roost.nova.calls import SelectCall
from roost.nova.rpc.notification_payloads import unversioned_payload, versioned_payload
from roost.nova.rpc.oslo import oslo_messaging
from roost.process.option_source import refused_value

_log = structlog.get_logger()

Phase = Literal["start", "end"]
Format = Literal["unversioned", "versioned", "both"]

_GROUP: Final = "notifications"
_OPTIONS: Final = (
    cfg.StrOpt(
        "notification_format", default="unversioned", choices=get_args(Format), deprecated_group="DEFAULT"
    ),
    cfg.ListOpt("versioned_notifications_topics", default=["versioned_notifications"]),
)


class CallNotifications:
    """Sends the notifications of calls, in the thread of the call. Nothing is sent unless a driver is set.

    Args:
        conf: the options of oslo.messaging; ``[oslo_messaging_notifications]`` sets drivers, topics and URL.
        host: the name of the scheduler.

    Raises:
        OperatorError: The URL of the broker, or an option, cannot be used.
    """

    def __init__(self, conf: cfg.ConfigOpts, host: str) -> None:
        conf.register_opts(_OPTIONS, group=_GROUP)
        options = conf[_GROUP]
        try:
            sent = options.notification_format
            self._transport = oslo_messaging.get_notification_transport(conf)
        except cfg.Error as error:
            raise refused_value(error) from error
        except (oslo_messaging.DriverLoadFailure, oslo_messaging.InvalidTransportURL, ValueError) as error:
            # The error's text has the URL, and that the password.
            raise OperatorError(
                f"[oslo_messaging_notifications] transport_url: it cannot be used ({type(error).__name__})"
            ) from None
        self._unversioned: Any = None
        self._versioned: Any = None
        if not set(conf.oslo_messaging_notifications.driver) - {"", "noop"}:
            return
        if sent != "versioned":
            self._unversioned = oslo_messaging.Notifier(self._transport, publisher_id=f"scheduler.{host}")
        if sent != "unversioned":
            topics = options.versioned_notifications_topics
            self._versioned = oslo_messaging.Notifier(
                self._transport, publisher_id=f"nova-scheduler:{host}", topics=topics
            )

    def send(self, phase: Phase, call: SelectCall) -> None:
        """Send the notifications of a phase of a call. A failure is logged, and the call goes on."""
        context, event = _Context(call), f"scheduler.select_destinations.{phase}"
        try:
            if self._unversioned is not None:
                self._unversioned.info(context, event, unversioned_payload(call.spec))
            if self._versioned is not None:
                self._versioned.info(context, event, versioned_payload(call.spec))
        except Exception:  # the request may have any form: the decision refuses it
            _log.exception("a notification could not be sent", event_type=event, request_id=call.request_id)

    def close(self) -> None:
        """Close the connections."""
        self._transport.cleanup()


class _Context:
    """The user's request, as far as a notification names it. oslo.messaging drops contexts of other forms."""

    def __init__(self, call: SelectCall) -> None:
        self._call = call

    def redacted_copy(self) -> dict[str, str | None]:
        return {
            "request_id": self._call.request_id,
            "global_request_id": self._call.global_request_id,
            "project_id": self._call.project,
            "user_id": self._call.user,
        }
