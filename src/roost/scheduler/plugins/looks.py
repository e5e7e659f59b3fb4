"""What of a host a plugin looks at."""

from enum import Flag, auto


class Looks(Flag):
    """What of a host a plugin looks at. The options of the scheduler may always be looked at."""

    NOTHING = 0
    """Nothing: the answer is the same for every host."""
    REPORT = auto()
    """The host's row in ``hosts.table``: what the node reports, its aggregates and their metadata, its cell,
    and what claims add to it (instances, I/O operations). Of heartbeats only
    ``table.seen_since(question.oldest_heartbeat)``. Of the whole table: which metadata keys there are."""
    TREE = auto()
    """What the host's provider tree has and has left: ``hosts.capacity`` and ``hosts.free``."""
    MEMBERS = auto()
    """``progress.members``: the members of the request's server group, placed earlier or by this run. The
    answer is not kept: the plugin is asked at each decision that it judges."""
