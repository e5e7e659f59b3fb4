"""The manager that Nova's tests start in place of ``nova.scheduler.manager.SchedulerManager``."""

from typing import Any

import bridge
import nova.scheduler.host_manager  # noqa: F401 - tests look for it
import oslo_messaging
import probes
from nova.objects.base import NovaObjectSerializer
from oslo_serialization import jsonutils

from nova import exception, manager, service
from roost.nova.rpc.exceptions import NovaRemoteError


def install() -> None:
    """Let services named nova-scheduler have this manager."""
    service.SERVICE_MANAGERS["nova-scheduler"] = f"{__name__}.BridgeManager"
    bridge.note_clouds()


class BridgeManager(manager.Manager):
    """Hands each call to the product's endpoint, as the message that RabbitMQ would bring."""

    target = oslo_messaging.Target(version="4.5")
    host_manager = probes.HOST_MANAGER

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, service_name="scheduler", **options)
        self._bridge = bridge.Bridge()

    def init_host(self, service_ref: Any) -> None:
        self._bridge.open()

    def cleanup_host(self) -> None:
        self._bridge.close()

    def reset(self) -> None:
        """Read the cells again."""
        self._bridge.read_cells()

    @oslo_messaging.expected_exceptions(exception.NoValidHost)
    def select_destinations(self, context: Any, **arguments: Any) -> Any:
        refusal = ""
        with self._bridge.offers() as offered:
            try:
                return self._call(context, "select_destinations", arguments)
            except exception.NoValidHost:
                refusal = self._bridge.refusal
                raise
            finally:
                if offered:
                    probes.tell(arguments["spec_obj"], refusal)

    def update_aggregates(self, ctxt: Any, **arguments: Any) -> None:
        self._call(ctxt, "update_aggregates", arguments)

    def delete_aggregate(self, ctxt: Any, **arguments: Any) -> None:
        self._call(ctxt, "delete_aggregate", arguments)

    def update_instance_info(self, context: Any, **arguments: Any) -> None:
        self._call(context, "update_instance_info", arguments)

    def delete_instance_info(self, context: Any, **arguments: Any) -> None:
        self._call(context, "delete_instance_info", arguments)

    def sync_instance_info(self, context: Any, **arguments: Any) -> None:
        self._call(context, "sync_instance_info", arguments)

    def _call(self, context: Any, method: str, arguments: dict[str, Any]) -> Any:
        serializer = NovaObjectSerializer()
        sent = {name: serializer.serialize_entity(context, each) for name, each in arguments.items()}
        message = jsonutils.loads(jsonutils.dumps(sent))
        try:
            answer = self._bridge.call(method, context.to_dict(), message)
        except oslo_messaging.ExpectedException as sent:
            # What oslo.messaging makes of it on the other side.
            error = sent.exc_info[1]
            assert isinstance(error, NovaRemoteError)
            if type(error).__name__ == "NoValidHost":
                raise exception.NoValidHost(**error.kwargs) from error
            raise exception.AllocationUpdateFailed(**error.kwargs) from error
        return serializer.deserialize_entity(context, jsonutils.loads(jsonutils.dumps(answer)))
