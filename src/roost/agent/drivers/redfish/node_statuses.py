"""The reason why a node is reserved, and the status of all nodes for operators."""

from roost.agent.drivers.redfish.book import Book, Entry
from roost.agent.drivers.redfish.power_watch import Rack, WatchedNode
from roost.agent.drivers.redfish.words import NodeStatus


def why_not(machine: WatchedNode, entry: Entry | None) -> str | None:
    """Return why a node is reserved; None if it is available.

    Source: Ironic's driver of Nova, which reserves a node in use, in maintenance, and of unknown power.
    """
    if entry is not None:
        match entry.phase:
            case "cleaning":
                return f"it is being cleaned after instance {entry.instance}"
            case "uncleaned":
                return f"it was not cleaned after instance {entry.instance}: {entry.reason}"
        return f"it has instance {entry.instance}"
    if machine.node.entry.maintenance is not None:
        return f"maintenance: {machine.node.entry.maintenance}"
    if machine.on is None:
        return f"its power is not known: {machine.error or 'it was not seen yet, or is changing'}"
    if machine.on:
        return "it is switched on, and not for an instance of this host"
    return None


def statuses(rack: Rack, book: Book) -> tuple[NodeStatus, ...]:
    """Return the status of all nodes, sorted by name."""
    machines = sorted(rack.nodes.values(), key=lambda each: each.node.entry.name)
    return tuple(_status(each, book[each.node.uuid]) for each in machines)


def _status(machine: WatchedNode, entry: Entry | None) -> NodeStatus:
    said, seen = machine.node.entry, machine.seen
    reason = why_not(machine, entry)
    free = "free" if reason is None else "reserved"
    return NodeStatus(
        uuid=machine.node.uuid,
        name=said.name,
        resource_class=said.resource_class,
        phase=free if entry is None else entry.phase,
        why=reason or "",
        on=machine.on,
        instance=None if entry is None else entry.instance,
        cpus=said.cpus if seen is None or seen.cpus is None else seen.cpus,
        memory_mb=said.memory_mb if seen is None or seen.memory_mb is None else seen.memory_mb,
        disk_gb=said.disk_gb,
    )
