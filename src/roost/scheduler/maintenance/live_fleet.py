"""The fleet of a plan, from the ledger's fleet, the node table and the instances that conductors know.

The hosts that the guests of one request may be on are found by the scheduler itself: by the queries, places
and filters of its runs, on a copy of the fleet on which nothing is in use. So a plan knows traits, zones,
aggregates, cells, limits of amounts, and each filter that is configured. Two rules are left to the planner,
as they change from wave to wave: room, and server groups. Room is planned by the sums of each class over the
tree of a host; hardware that has to be found inside it (NUMA cells, PCI devices, nested providers) is judged
when the move claims it.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping

import msgspec

from roost.fleet import Fleet
from roost.fleet.assigned import AssignedOnNodes
from roost.fleet.groups import Groups
from roost.model.allocation import AFFINITY, ANTI_AFFINITY, Allocations, Resources
from roost.model.spec import RequestSpec
from roost.scheduler.errors import BadRequestSpec
from roost.scheduler.explain.fleet_snapshot import FleetSnapshot
from roost.scheduler.explain.snapshot import host_name
from roost.scheduler.maintenance.plan import FleetToMaintain, GuestToMove, HostToMaintain
from roost.scheduler.nodes.table import NodeTable
from roost.scheduler.request.query import check_queries
from roost.scheduler.request.scheduling_request import HostRequest, SchedulingRequest
from roost.scheduler.selection.host_pools import HostPools


class GuestThere(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An instance on a host. ``node``: the uuid of the root provider there. ``claim``: what it holds.

    ``spec``: the index of the request by which it moves, in `WantedPlan.specs`. ``stays``: why it cannot
    move, None if it can.
    """

    uuid: str
    node: str
    claim: Allocations
    spec: int
    stays: str | None = None


class WantedPlan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The question of a plan: ``hosts``, the names of those that are to be emptied, and all instances.

    ``reserve``, ``most_hosts``: as in `FleetToMaintain`.
    """

    hosts: tuple[str, ...]
    guests: tuple[GuestThere, ...]
    specs: tuple[RequestSpec, ...]
    reserve: bool = True
    most_hosts: int | None = None


def live_fleet(fleet: Fleet, pools: HostPools, wanted: WantedPlan, now: float) -> FleetToMaintain:
    """Return the fleet of a plan. ``now``: seconds since the epoch.

    Raises:
        BadRequestSpec: A selected host is not known, or placement has no provider for it.
        SchedulerFault: A filter raised an unexpected error.
    """
    table = pools.table
    table.seen_since(now - pools.options.service_down_time)
    names = {
        node: host_name(table, index) for index in table.indexes() if (node := table.nodes[index]) in fleet
    }
    selected = _selected(table, wanted, names)
    kinds, refusals = _kinds(fleet, pools, wanted, names, now)
    affinity, groups = _groups(wanted)
    guests, held = [], defaultdict[str, Counter[str]](Counter)
    trees = {node: _own_rows(fleet, node) for node in names}
    for each in wanted.guests:
        if each.node not in names:
            continue
        amounts = _held_there(fleet, trees[each.node], each.claim)
        held[each.node].update(amounts)
        group = wanted.specs[each.spec].group
        stays = each.stays or refusals.get(each.spec)
        if group is not None and affinity[group.uuid] > 1:
            stays = stays or (
                f"instance {each.uuid} is one of {affinity[group.uuid]} members of an affinity group, which "
                "are on one host and would have to move at the same moment"
            )
        named = None if group is None else group.uuid
        guests.append(GuestToMove(each.uuid, names[each.node], amounts, str(each.spec), named, stays))
    takes = frozenset[str]().union(*kinds.values())
    hosts = []
    for node, name in names.items():
        capacity, used = _totals(fleet, trees[node])
        taken = {key: amount for key, total in used.items() if (amount := max(total - held[node][key], 0))}
        hosts.append(HostToMaintain(name, capacity, taken, node in selected, name in takes))
    return FleetToMaintain(tuple(hosts), tuple(guests), kinds, groups, wanted.reserve, wanted.most_hosts)


def _selected(table: NodeTable, wanted: WantedPlan, names: Mapping[str, str]) -> frozenset[str]:
    """Return the nodes of the selected hosts."""
    found: set[str] = set()
    for name in wanted.hosts:
        nodes = [table.nodes[index] for index in table.indexes_of_host(name)]
        if not nodes:
            raise BadRequestSpec(f"no host {name!r} is known")
        if strange := [node for node in nodes if node not in names]:
            raise BadRequestSpec(f"placement has no provider {strange[0]} of the host {name!r}")
        found.update(nodes)
    return frozenset(found)


def _kinds(
    fleet: Fleet, pools: HostPools, wanted: WantedPlan, names: Mapping[str, str], now: float
) -> tuple[dict[str, frozenset[str]], dict[int, str]]:
    """Return the hosts that guests of each request may be on, and why requests are refused."""
    empty = fleet.fork()
    for resource_class in empty.inventoried_classes():
        empty.inventory_columns(resource_class).used[:] = 0
    empty.assigned, empty.groups = AssignedOnNodes(), Groups()
    snapshot = FleetSnapshot(empty, pools)
    kinds: dict[str, frozenset[str]] = {}
    refusals: dict[int, str] = {}
    for number, each in enumerate(wanted.specs):
        # Server groups are the planner's.
        spec = msgspec.structs.replace(each, group=None)
        try:
            asked = HostRequest.new(spec, min_count=1)
            queries = snapshot.queries(spec, pools.options)
            request = SchedulingRequest.of(asked, queries, pools.options, now)
            check_queries(empty, request.queries)
            allowed = pools.fitting(empty, request).tolist()
        except BadRequestSpec as error:
            refusals[number], allowed = f"its request is refused: {error}", []
        nodes = (pools.table.nodes[index] for index in allowed)
        kinds[str(number)] = frozenset(names[node] for node in nodes if node in names)
    return kinds, refusals


def _groups(wanted: WantedPlan) -> tuple[Counter[str], dict[str, int]]:
    """Return the members of each affinity group, and the members that one host may have of each other one."""
    affinity, groups = Counter[str](), dict[str, int]()
    for each in wanted.guests:
        group = wanted.specs[each.spec].group
        if group is not None and group.policy == AFFINITY:
            affinity[group.uuid] += 1
        elif group is not None and group.policy == ANTI_AFFINITY:
            groups[group.uuid] = group.max_server_per_host
    return affinity, groups


def _own_rows(fleet: Fleet, node: str) -> list[int]:
    """Return the providers of a tree, without those that serve other trees."""
    sharing = fleet.sharing()
    return [row for row in fleet.subtree(fleet.row(node)) if row not in sharing]


def _totals(fleet: Fleet, rows: list[int]) -> tuple[Resources, Resources]:
    """Return capacity and use of each class, in sum over providers."""
    capacity, used = Counter[str](), Counter[str]()
    for row in rows:
        capacity.update({name: each.capacity for name, each in fleet.inventories(row).items()})
        used.update(fleet.usages(row))
    return dict(capacity), dict(used)


def _held_there(fleet: Fleet, rows: list[int], claim: Allocations) -> Resources:
    """Return what a claim holds of some providers, by class."""
    there = {fleet.uuid(row) for row in rows}
    total = Counter[str]()
    for provider, amounts in claim.items():
        if provider in there:
            total.update(amounts)
    return dict(total)
