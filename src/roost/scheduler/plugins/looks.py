"""`Looks`: the parts of a host that a plugin reads."""

from enum import Flag, auto


class Looks(Flag):
    """The parts of a host that a plugin reads. It may always read the options of the scheduler."""

    NOTHING = 0
    """Nothing: the result is the same for every host."""
    REPORT = auto()
    """The host's row in ``hosts.table``: the node's report, its aggregates and their metadata, its cell, and
    the numbers that claims add to (instances, I/O operations). Of heartbeats only
    ``table.seen_since(request.oldest_heartbeat)``. Of the whole table only the set of metadata keys."""
    TREE = auto()
    """Capacity and free amounts of the host's provider tree: ``hosts.capacity`` and ``hosts.free``."""
    MEMBERS = auto()
    """``progress.members``: the members of the request's server group, placed earlier or by this run. The
    result is not cached: the plugin is called for each decision that it applies to."""
