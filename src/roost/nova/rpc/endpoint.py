"""The methods that Nova's services call, in threads of oslo.messaging."""

import concurrent.futures
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import structlog

from roost.nova.calls import Hints, NovaRefusal, SelectCall, no_valid_host
from roost.nova.rpc.calls_in_work import CallsInWork
from roost.nova.rpc.exceptions import NovaRemoteError, remote_error
from roost.nova.rpc.notifications import CallNotifications
from roost.nova.rpc.oslo import oslo_messaging, rpc_dispatcher

VERSION = "4.5"
"""The newest version of the interface that is served. Casts arrive as 4.1 and 4.2."""

FAILED = "The scheduler failed; its log says why."
"""The reason that a user reads where a fault of the program or of its surroundings ended a call."""

ENDING = "The scheduler is being stopped."
"""The reason that a user reads where a call was not decided within the time of a graceful end."""

_log = structlog.get_logger()


class SchedulerEndpoint:
    """The methods of topic ``scheduler``. Every public method can be called by whoever reaches the broker.

    Args:
        calls: has each call decided.
        hints: takes the casts.
        notifications: sends those of a call's start and end.
        count_cast: notes that a cast has arrived.
    """

    target = oslo_messaging.Target(version=VERSION)

    def __init__(
        self,
        calls: CallsInWork,
        hints: Hints,
        notifications: CallNotifications,
        count_cast: Callable[[], object] = lambda: None,
    ) -> None:
        self._calls = calls
        self._hints = hints
        self._notifications = notifications
        self._count_cast = count_cast

    def select_destinations(
        self,
        ctxt: Mapping[str, Any],
        spec_obj: dict[str, Any] | None = None,
        instance_uuids: Sequence[str] | None = None,
        return_objects: bool = False,
        return_alternates: bool = False,
        **older: Any,
    ) -> Any:
        """Decide a call of version 4.4 or 4.5, and return its selections.

        Raises:
            ExpectedException: oslo.messaging sends the error in it. It is a `NovaRemoteError`, or
                UnsupportedVersion if the arguments are those of an older version.
        """
        if older or spec_obj is None or not instance_uuids:
            _log.warning("a call of an older Nova is refused", request_id=ctxt.get("request_id"))
            raise _expected(rpc_dispatcher.UnsupportedVersion("4.3", method="select_destinations"))
        call = SelectCall(
            spec=spec_obj,
            instances=tuple(instance_uuids),
            objects=return_objects,
            alternates=return_objects and return_alternates,
            request_id=ctxt.get("request_id"),
            global_request_id=ctxt.get("global_request_id"),
            project=ctxt.get("project_id"),
            user=ctxt.get("user_id"),
        )
        error, selections = self._answer(call)
        if error is not None:
            raise _expected(error)
        return selections

    def update_aggregates(self, ctxt: Mapping[str, Any], aggregates: Any) -> None:
        """Take the cast that aggregates have changed."""
        self._count_cast()
        self._hints.aggregates_changed()

    def delete_aggregate(self, ctxt: Mapping[str, Any], aggregate: Any) -> None:
        """Take the cast that an aggregate is deleted."""
        self._count_cast()
        self._hints.aggregates_changed()

    def update_instance_info(self, ctxt: Mapping[str, Any], host_name: str, instance_info: Any) -> None:
        """Take the cast that an instance of a host is new or has changed."""
        self._count_cast()
        self._hints.node_changed(host_name)
        self._hints.instances_changed(host_name)

    def delete_instance_info(self, ctxt: Mapping[str, Any], host_name: str, instance_uuid: Any) -> None:
        """Take the cast that an instance of a host is gone."""
        self._count_cast()
        self._hints.node_changed(host_name)
        self._hints.instances_changed(host_name)

    def sync_instance_info(self, ctxt: Mapping[str, Any], host_name: str, instance_uuids: Any) -> None:
        """Take the cast of the uuids of a host's instances, which each compute sends every few minutes."""
        self._count_cast()
        self._hints.instances_changed(host_name)

    def _answer(self, call: SelectCall) -> tuple[NovaRemoteError | None, Any]:
        """Decide a call, and return the error to send or the selections."""
        try:
            self._notifications.send("start", call)
            selections = self._calls.decided(call)
            self._notifications.send("end", call)
        except NovaRefusal as refusal:
            return remote_error(refusal), None
        except concurrent.futures.CancelledError:
            _log.warning("a call was not decided before the end", request_id=call.request_id)
            return remote_error(no_valid_host(ENDING)), None
        except Exception:
            _log.exception("a call of Nova failed", request_id=call.request_id, instances=call.instances)
            return remote_error(no_valid_host(FAILED)), None
        return None, selections


def _expected(error: Exception) -> Exception:
    """Return the exception to raise so that oslo.messaging sends an error, and does not log it."""
    try:
        raise error
    except Exception:
        expected: Exception = rpc_dispatcher.ExpectedException()
        return expected
