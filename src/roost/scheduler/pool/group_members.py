"""The members of a request's server group on the hosts of a run."""

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from roost.fleet import Fleet
from roost.scheduler.nodes.table import NodeTable
from roost.scheduler.request.scheduling_request import GroupPlacement, SchedulingRequest

ELSEWHERE = -1
"""The index for members on hosts that the table does not have."""


def progress_at_start(
    request: SchedulingRequest,
    table: NodeTable,
    fleet: Fleet | None = None,
    claims: Mapping[str, Sequence[str]] | None = None,
) -> GroupPlacement:
    """Return the members of the request's server group before the run has placed any instance.

    The spec names the host of each member as far as its writer knew. ``fleet`` or ``claims`` (member -> uuids
    of its hosts, as a placement service answers) know every member with a claim. A member may be in both, so
    the larger of the two numbers counts for each host. The instances of the request do not count, or the only
    member of an affinity group could never leave its host.
    """
    group = request.spec.group
    if group is None:
        return GroupPlacement()
    members = Counter(index for host in group.hosts for index in table.indexes_of_host(host) or (ELSEWHERE,))
    claimed: Counter[int] = Counter()
    present: set[int] = set()
    if fleet is not None and group.uuid in fleet.groups:
        rows, numbers = fleet.groups.hosts(group.uuid)
        for index, number in zip(table.indexes_of_rows(fleet, rows).tolist(), numbers.tolist(), strict=True):
            claimed[index if index >= 0 else ELSEWHERE] += number
        for instance in request.instances:
            hosts_of_it = fleet.groups.hosts_of(group.uuid, instance)
            own = table.indexes_of_rows(fleet, np.array(hosts_of_it, dtype=np.intp)).tolist()
            present.update(own)
            claimed.subtract(index if index >= 0 else ELSEWHERE for index in own)
    for member, hosts in (claims or {}).items():
        found = [table.index_of_node(host) for host in hosts]
        indexes = [ELSEWHERE if index is None else index for index in found]
        if member in request.instances:
            present.update(indexes)
        else:
            claimed.update(indexes)
    return GroupPlacement(members | claimed if claimed else members, frozenset(present))
