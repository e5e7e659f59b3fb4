"""Small fleets with instances, as plain data: a model of placement that knows nothing of the scheduler, and
the same fleet for the scheduler."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar

import msgspec
from hypothesis import strategies as st

from roost.fleet import Fleet
from roost.ledger import Command, Held, State
from roost.ledger.vocabulary import RegisterStandardNames
from roost.model.allocation import AFFINITY, ANTI_AFFINITY, GroupPolicy, HandedClaim
from roost.model.instance import Requester
from roost.model.inventory import Inventory
from roost.model.move import Move, MovePlace, spec_of_move
from roost.model.move_states import REQUESTED
from roost.model.node import KEEPS_DISKS, YES, NodeInstance
from roost.model.reasons import MoveSearch, ProposedMove
from roost.model.spec import Flavor, RequestSpec, Selection, ServerGroup
from roost.placement.commands.allocations import FreeConsumers
from roost.placement.commands.inventories import SetInventories
from roost.placement.commands.names import AddTrait
from roost.placement.commands.providers import CreateProvider
from roost.placement.commands.traits_and_aggregates import SetTraits
from roost.scheduler import SchedulerOptions
from roost.scheduler.explain.lacking_hosts import hosts_lacking_least
from roost.scheduler.explain.move_search import find_moves
from roost.scheduler.explain.moving_snapshot import MovableInstance, MovingSnapshot
from roost.scheduler.gateways.local import Decide
from roost.scheduler.options import DEFAULT_FILTERS
from roost.scheduler.request.query import placement_queries
from roost.scheduler.request.request_filters.narrowed_query import FilterFacts
from roost.scheduler.request.scheduling_request import HostRequest, SchedulingRequest
from roost.scheduler.selection.host_pools import HostPools
from roost.state.cell_database.residents import Resident
from support.clouds import NOW, report, table_of, uuid_of

T = TypeVar("T")

FAST = "CUSTOM_FAST"
GIB = 1024
OPTIONS = SchedulerOptions(
    filters=(*DEFAULT_FILTERS, "NumInstancesFilter", "DifferentHostFilter"),
)


class Guest(NamedTuple):
    """An instance: its size, whether it needs the trait `FAST`, its server group, whether it may move."""

    vcpus: int
    memory: int
    fast: bool = False
    group: str | None = None
    movable: bool = True


class PackedHost(NamedTuple):
    vcpus: int
    memory: int
    fast: bool = False
    up: bool = True
    cell: str = "cell1"


class PackedFleet(NamedTuple):
    """``at``: the host of each guest. ``groups``: their policies. ``wanted``: how many of ``asked``."""

    hosts: tuple[PackedHost, ...]
    guests: tuple[Guest, ...]
    at: tuple[int, ...]
    groups: Mapping[str, GroupPolicy]
    asked: Guest
    wanted: int = 1


# The plain model: by host, the guests on it.

Places = tuple[int, ...]


def takes(
    fleet: PackedFleet, at: Sequence[tuple[Guest, int]], guest: Guest, host: int, leaves: int | None = None
) -> bool:
    """Whether a host takes a guest beside those that are placed.

    ``leaves``: the host that it comes from, where it still is, and is no member of its group."""
    there = fleet.hosts[host]
    if not there.up or (guest.fast and not there.fast):
        return False
    on = [each for each, place in at if place == host]
    if sum(each.vcpus for each in on) + guest.vcpus > there.vcpus:
        return False
    if sum(each.memory for each in on) + guest.memory > there.memory:
        return False
    if guest.group is None:
        return True
    members = [place for each, place in at if each.group == guest.group]
    if leaves is not None:
        members.remove(leaves)
    if fleet.groups[guest.group] == ANTI_AFFINITY:
        return host not in members
    return not members or set(members) == {host}


def fits(fleet: PackedFleet, at: Places, extra: tuple[tuple[Guest, int], ...] = ()) -> bool:
    """Whether all that is asked for fits, in some order of hosts."""
    placed = [*zip(fleet.guests, at, strict=True), *extra]
    if len(extra) == fleet.wanted:
        return True
    return any(
        takes(fleet, placed, fleet.asked, host) and fits(fleet, at, (*extra, (fleet.asked, host)))
        for host in range(len(fleet.hosts))
    )


def may_go(fleet: PackedFleet, at: Places, guest: int, host: int) -> bool:
    """Whether a guest may move to a host as things are."""
    source = at[guest]
    who = fleet.guests[guest]
    placed = [*zip(fleet.guests, at, strict=True)]
    return (
        who.movable
        and host != source
        and fleet.hosts[source].up
        and fleet.hosts[host].cell == fleet.hosts[source].cell
        and takes(fleet, placed, who, host, leaves=source)
    )


def fewest_moves(fleet: PackedFleet, most: int) -> int | None:
    """The fewest moves of different guests, one after another, after which all fits: by trying all ways."""
    for number in range(most + 1):
        if any(fits(fleet, at) for at in _after(fleet, fleet.at, number, frozenset())):
            return number
    return None


def _after(fleet: PackedFleet, at: Places, number: int, moved: frozenset[int]) -> Iterator[Places]:
    if not number:
        yield at
        return
    for guest, host in itertools.product(range(len(fleet.guests)), range(len(fleet.hosts))):
        if guest not in moved and may_go(fleet, at, guest, host):
            yield from _after(fleet, (*at[:guest], host, *at[guest + 1 :]), number - 1, moved | {guest})


@st.composite
def packed_fleets(draw: st.DrawFn, groups: bool = True, wanted: int = 1) -> PackedFleet:
    """Fleets of two to four hosts with little room on each, and a request that is not small."""
    seldom = st.sampled_from((False,) * 5 + (True,))
    hosts = tuple(
        PackedHost(
            draw(st.integers(3, 6)),
            draw(st.integers(4, 6)),
            not draw(seldom),
            not draw(seldom),
            "cell2" if draw(seldom) else "cell1",
        )
        for _ in range(draw(st.integers(3, 4)))
    )
    policies: dict[str, GroupPolicy] = {}
    if groups:
        policies = {uuid_of(0x90): ANTI_AFFINITY, uuid_of(0x91): AFFINITY}
    of = st.sampled_from((None,) * 6 + tuple(policies))
    fleet = PackedFleet(hosts, (), (), policies, Guest(1, 1))
    everywhere = fleet._replace(hosts=tuple(each._replace(up=True) for each in hosts))
    placed: list[tuple[Guest, int]] = []
    for _ in range(draw(st.integers(3, 7))):
        size = draw(st.integers(1, 3))
        memory = max(1, size - draw(st.integers(0, 1)))
        guest = Guest(size, memory, draw(seldom), draw(of), not draw(seldom))
        fitting = [host for host in range(len(hosts)) if takes(everywhere, placed, guest, host)]
        if fitting:
            placed.append((guest, draw(st.sampled_from(fitting))))
    most = max(
        each.vcpus - sum(guest.vcpus for guest, host in placed if host == number)
        for number, each in enumerate(hosts)
    )
    # One is too large for each host by a little: so it is seldom that no move helps, or that none is needed.
    size = most + 1 if wanted == 1 else max(2, most)
    asked = Guest(size, draw(st.integers(1, size)), draw(seldom), draw(of))
    guests, at = tuple(each for each, _ in placed), tuple(host for _, host in placed)
    return PackedFleet(hosts, guests, at, policies, asked, wanted)


# The same fleet for the scheduler


class PackedWorld:
    """A fleet and a node table of a `PackedFleet`."""

    def __init__(self, packed: PackedFleet, options: SchedulerOptions = OPTIONS) -> None:
        self.packed = packed
        self.fleet = Fleet()
        self.held: dict[str, Held] = {}
        self.state = State(self.fleet, self.held, NOW)
        self.run(RegisterStandardNames())
        self.run(AddTrait(FAST))
        for number, host in enumerate(packed.hosts):
            node = uuid_of(number)
            self.run(CreateProvider(node, f"host{number}", None))
            inventories = {"VCPU": Inventory(host.vcpus), "MEMORY_MB": Inventory(host.memory * GIB)}
            self.run(SetInventories(node, inventories, None))
            traits = frozenset({"OWNER_NOVA", FAST} if host.fast else {"OWNER_NOVA"})
            self.run(SetTraits(node, traits, None, add_custom=True))
        every = [
            report(
                f"host{number}",
                uuid_of(number),
                cell=host.cell,
                service_version=99,
                stats={KEEPS_DISKS: YES},
                last_seen=NOW - 1,
            )
            for number, host in enumerate(packed.hosts)
        ]
        self.pools = HostPools(table_of(every), options)
        self.table = self.pools.table
        for number, guest in enumerate(packed.guests):
            instance, at = uuid_of(0x100 + number), packed.at[number]
            request = self._derived(
                HostRequest(
                    msgspec.structs.replace(self.spec(guest), force_hosts=(f"host{at}",)), (instance,)
                )
            )
            outcome = self.run(Decide(request, self.pools)).outcome
            assert outcome.destinations, outcome
        self._report()

    def _report(self) -> None:
        every = range(len(self.packed.hosts))
        on: dict[int, dict[str, NodeInstance]] = {number: {} for number in every}
        for number, host in enumerate(self.packed.at):
            on[host][uuid_of(0x100 + number)] = NodeInstance("project", "small")
        self.table.update(
            msgspec.structs.replace(
                each,
                instances=on[number],
                num_instances=len(on[number]),
                last_seen=NOW - (1.0 if self.packed.hosts[number].up else 900.0),
            )
            for number, each in enumerate(map(self.table.report, every))
        )

    def run(self, command: Command[T]) -> T:
        self.state.name(command.consumers())
        return command.run(self.state)

    def spec(self, guest: Guest) -> RequestSpec:
        extra = {f"trait:{FAST}": "required"} if guest.fast else {}
        flavor = Flavor("small", guest.vcpus, guest.memory * GIB, 0, extra)
        group = None if guest.group is None else ServerGroup(guest.group, self.packed.groups[guest.group])
        return RequestSpec(project_id="project", user_id="user", flavor=flavor, group=group)

    def request(self) -> SchedulingRequest:
        """The request that is asked for."""
        instances = tuple(uuid_of(0x1000 + number) for number in range(self.packed.wanted))
        return self._derived(HostRequest(self.spec(self.packed.asked), instances))

    def _derived(self, asked: HostRequest) -> SchedulingRequest:
        queries = placement_queries(asked.spec, FilterFacts(self.table, self.pools.options))
        return SchedulingRequest.of(asked, queries, self.pools.options, NOW)

    def residents(self) -> list[Resident]:
        """The instances that may move."""
        return [
            Resident(
                uuid_of(0x100 + number),
                "project",
                "small",
                f"host{self.packed.at[number]}",
                uuid_of(self.packed.at[number]),
                self.spec(guest),
            )
            for number, guest in enumerate(self.packed.guests)
            if guest.movable
        ]

    def search(self, most: int = 3, decisions: int = 1_000_000, seconds: float = 600.0) -> MoveSearch:
        """Look for moves on the fleet, which is as before afterwards."""
        self.table.seen_since(NOW - 60)
        snapshot = MovingSnapshot(self.fleet, self.pools, self.held, NOW)
        movable = [
            MovableInstance(each, self.held[each.instance], self.table.index_of_node(each.node) or 0)
            for each in self.residents()
        ]
        request = self.request()
        hosts = hosts_lacking_least(snapshot, request, 100)
        return find_moves(snapshot, request, movable, hosts, most, seconds=seconds, decisions=decisions)

    def carry_out(self, move: ProposedMove) -> bool:
        """Move an instance by the command of a ledger's writer, as a conductor does; False: it is refused."""
        held, spec = self.held[move.instance], self._spec_of(move.instance)
        migration = uuid_of(0x2000 + int(move.instance[-4:], 16))
        handed = HandedClaim(held.allocations, held.consumer.generation, None, consumer=migration)
        place = MovePlace(1, Selection(move.source, "", move.cell, held.allocations, {}, 0.0), spec)
        asked = Move(
            uuid=migration,
            instance=move.instance,
            kind="migrate",
            state=REQUESTED,
            source=place,
            spec=spec,
            by=Requester("", "", ""),
            began=NOW,
            changed_at=NOW,
            to_host=move.target,
        )
        on_the_way = spec_of_move(asked, move.cell)
        request = self._derived(HostRequest(on_the_way, (move.instance,), handed={move.instance: handed}))
        if not self.run(Decide(request, self.pools)).outcome.destinations:
            return False
        self.run(FreeConsumers((migration,)))
        for name in (move.source, move.target):
            [index] = self.table.indexes_of_host(name)
            before = self.table.report(index)
            there = {key: each for key, each in before.instances.items() if key != move.instance}
            if name == move.target:
                there[move.instance] = NodeInstance("project", "small")
            self.table.update([msgspec.structs.replace(before, instances=there, num_instances=len(there))])
        return True

    def _spec_of(self, instance: str) -> RequestSpec:
        return self.spec(self.packed.guests[int(instance[-4:], 16) - 0x100])

    def place(self) -> bool:
        """Decide the request; returns whether all of it fits."""
        return bool(self.run(Decide(self.request(), self.pools)).outcome.destinations)
