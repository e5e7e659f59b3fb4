"""A hypervisor in memory. Its node keeps its uuid over a restart, and it refuses guests while a file says so.

Nova loads it by ``compute_driver = memory_hypervisor.MemoryHypervisor``.
"""

import uuid
from pathlib import Path

import nova.conf
from nova.virt import fake, node

from nova import exception

CONF = nova.conf.CONF


class MemoryHypervisor(fake.MediumFakeDriver):
    """Nova's fake driver of 10 processors, with the memory and processors of a small host."""

    def __init__(self, *arguments, **named):
        super().__init__(*arguments, **named)
        if node.read_local_node_uuid() is None:
            node.write_local_node_uuid(_uuid(CONF.host))

    def get_nodenames_by_uuid(self, refresh=False):
        return {_uuid(name): name for name in self.get_available_nodes()}

    def get_available_resource(self, nodename):
        found = super().get_available_resource(nodename)
        return found and {**found, "uuid": _uuid(nodename)}

    def spawn(self, context, instance, *arguments, **named):
        if Path(CONF.state_path, "refuses").exists():
            raise exception.ComputeResourcesUnavailable(reason="this host refuses guests")
        super().spawn(context, instance, *arguments, **named)


def _uuid(name):
    return str(uuid.uuid5(uuid.NAMESPACE_DNS, name))
