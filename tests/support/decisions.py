"""Steps of a `World`, drawn at random: decisions, reports of nodes, and what else happens to hosts."""

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from roost.model.aggregate import HostAggregate
from roost.model.inventory import Inventory
from roost.model.request import RequestGroup
from roost.model.spec import RequestedDestination, RequestSpec, ServerGroup
from roost.model.vocabulary import DISABLED_TRAIT, SHARING_TRAIT
from roost.placement.commands.allocations import FreeConsumers, WriteAllocations
from roost.placement.commands.inventories import SetInventories
from roost.placement.commands.providers import CreateProvider, DeleteProvider, UpdateProvider
from roost.placement.commands.traits_and_aggregates import SetAggregates, SetTraits
from roost.scheduler.request.demand.numa_groups import NUMA_ROOT
from support.clouds import AGGREGATES, TRAITS, holding, join, replace_report, report, uuid_of
from support.decided_worlds import FLAVORS, HOSTS, METADATA, World
from support.numa_hosts import reported, reported_cell

Step = Callable[[World], object]


def _host(draw: st.DrawFn) -> int:
    return draw(st.integers(0, HOSTS - 1))


@st.composite
def decisions(draw: st.DrawFn) -> Step:
    wishes: dict[str, Any] = {}
    kinds = ["zone", "traits", "host", "cell", "ignore", "retried", "group", "hints", "port"]
    for wish in draw(st.lists(st.sampled_from(kinds), max_size=2)):
        if wish == "zone":
            wishes["availability_zone"] = draw(st.sampled_from(["az0", "az1", "nova"]))
        elif wish == "traits":
            wishes["required_traits"] = frozenset({draw(st.sampled_from(TRAITS))})
        elif wish == "host":
            wishes["requested_destination"] = RequestedDestination(host=f"host{_host(draw)}")
        elif wish == "cell":
            wishes["requested_destination"] = RequestedDestination(
                cell=draw(st.sampled_from(["cell0", "cell1"]))
            )
        elif wish == "retried":
            wishes["retried_hosts"] = frozenset(f"host{_host(draw)}" for _ in range(draw(st.integers(1, 4))))
        elif wish == "ignore":
            wishes["ignore_hosts"] = frozenset(f"host{_host(draw)}" for _ in range(draw(st.integers(1, 4))))
        elif wish == "group":
            members = draw(st.lists(st.builds("host{}".format, st.integers(0, HOSTS - 1)), max_size=4))
            policy = draw(st.sampled_from(["affinity", "anti-affinity", "anti-affinity"]))
            wishes["group"] = ServerGroup("g", policy, tuple(members), draw(st.integers(1, 2)))
        elif wish == "hints":
            hints = draw(st.sets(st.sampled_from(["odd", "taste", "roomy"]), min_size=1))
            wishes["scheduler_hints"] = dict.fromkeys(hints, ("yes",))
        else:
            wishes["requested_resources"] = (RequestGroup({"VCPU": draw(st.integers(1, 2))}, "_port"),)
    flavor = draw(st.sampled_from(FLAVORS))
    project = draw(st.sampled_from(["p", "p", "q"]))
    count = draw(st.sampled_from([1, 1, 1, 2, 4]))
    alternates = draw(st.integers(0, 3))
    least = draw(st.sampled_from([1, count]))
    keep = draw(st.sampled_from([True, True, False]))

    def step(world: World) -> None:
        spec = RequestSpec(project_id=project, user_id="u", flavor=flavor, **wishes)
        place = spec.requested_destination
        if place is None or place.host is None or world.table.index(place.host) is not None:
            world.decide(spec, count, alternates, least, keep)

    return step


@st.composite
def happenings(draw: st.DrawFn) -> Step:
    """Something happens to one provider."""
    host = _host(draw)
    uuid = uuid_of(host)
    kind = draw(st.sampled_from(_KINDS))
    number = draw(st.integers(0, 3))
    if kind == "inventory":
        inventories = draw(_inventories())
        return lambda world: world.run(SetInventories(uuid, inventories, None))
    if kind == "traits":
        traits = draw(st.sets(st.sampled_from([*TRAITS, DISABLED_TRAIT, SHARING_TRAIT]), max_size=1))
        return lambda world: world.run(SetTraits(uuid, frozenset(traits), None, add_custom=True))
    if kind == "aggregates":
        aggregates = draw(st.sets(st.sampled_from(AGGREGATES), max_size=2))
        return lambda world: world.run(SetAggregates(uuid, frozenset(aggregates), None))
    if kind == "use":
        write = holding(uuid_of(0xC00000 + draw(st.integers(0, 9_999))), {uuid: {"VCPU": number + 1}})
        return lambda world: world.run(WriteAllocations((write,)))
    if kind == "free":
        return lambda world: world.run(FreeConsumers(tuple(world.held[-1 - number : len(world.held)])))
    if kind == "batch":
        # A batch ends: all is taken back, and comes again as a commit.
        def again(world: World) -> None:
            changes = world.state.changes.copy()
            world.state.take_back(world.batch)
            for change in changes[world.batch :]:
                world.state.apply(change)
            world.batch = len(world.state.changes)

        return again
    if kind == "child":
        return lambda world: world.run(CreateProvider(uuid_of(0xD0000 + host), f"child{host}", uuid))
    if kind in ("device", "cpus"):
        child = uuid_of(0xE0000 + 4 * host + number)
        has = (
            {"VGPU": Inventory(2)}
            if kind == "device"
            else {"VCPU": Inventory(3), "MEMORY_MB": Inventory(1024)}
        )
        return lambda world: (
            world.run(CreateProvider(child, f"{kind} {child}", uuid))
            and world.run(SetInventories(child, has, None))
            and kind == "cpus"
            and world.run(SetTraits(child, frozenset({NUMA_ROOT}), None, add_custom=False))
        )
    if kind == "pool":
        pool = uuid_of(0xF0000 + number % 2)

        def share(world: World) -> None:
            world.run(CreateProvider(pool, f"pool {pool}", None))
            world.run(SetInventories(pool, {"DISK_GB": Inventory(20 + 40 * number)}, None))
            world.run(SetTraits(pool, frozenset({SHARING_TRAIT}), None, add_custom=True))
            world.run(SetAggregates(pool, frozenset(AGGREGATES[number:]), None))

        return share
    if kind == "childless":
        return lambda world: world.run(DeleteProvider(uuid_of(0xD0000 + host)))
    if kind in ("moved", "removed"):
        below = uuid_of(0xE0000 + 4 * host + number)
        above = None if number == 3 else uuid_of(draw(st.integers(0, HOSTS - 1)))
        if kind == "removed":
            return lambda world: world.run(DeleteProvider(below))
        return lambda world: (
            below in world.fleet and world.run(UpdateProvider(below, f"moved {below}", above))
        )
    if kind == "no pool":
        return lambda world: world.run(DeleteProvider(uuid_of(0xF0000 + number % 2)))
    if kind == "gone":
        return lambda world: world.run(DeleteProvider(uuid))
    return lambda world: make(world, host)


_KINDS = [
    "inventory",
    "traits",
    "aggregates",
    "use",
    "use",
    "free",
    "batch",
    "child",
    "childless",
    "device",
    "device",
    "cpus",
    "moved",
    "removed",
    "pool",
    "no pool",
    "gone",
    "come",
]


@st.composite
def reports(draw: st.DrawFn) -> Step:
    host = _host(draw)
    kind = draw(
        st.sampled_from(
            [
                "seen",
                "enabled",
                "failed",
                "metrics",
                "aggregates",
                "troubled",
                "alone",
                "cell",
                "node",
                "clock",
                "cells",
            ]
        )
    )
    number = draw(st.integers(0, 3))

    def step(world: World) -> None:
        if kind == "clock":
            world.now += (1.0, 40.0, 70.0, -30.0)[number]
            return
        index = world.table.index(f"host{host}")
        old = report(f"host{host}", uuid_of(host)) if index is None else world.table.report(index)
        joined = {
            "aggregates": [HostAggregate(AGGREGATES[number], AGGREGATES[number], METADATA[number])],
            "troubled": [HostAggregate(AGGREGATES[0], AGGREGATES[0], METADATA[4])],
            "alone": [],
        }.get(kind)
        if joined is not None:
            join(world.table, old.node, *joined)
            return
        new: dict[str, object] = {
            "seen": {"last_seen": world.now - 20.0 * number},
            "enabled": {"enabled": number > 1},
            "failed": {"failed_builds": number % 2},
            "metrics": {"metrics": {"heat": 10.0 * number} if number else {}},
            "cell": {"cell": f"cell{number % 2}"},
            "cells": {"numa_topology": None if number == 3 else _cells(number)},
            "node": {"node": uuid_of((host + number % 2) % HOSTS)},
        }[kind]
        world.table.update([replace_report(old, **new)])

    return step


@st.composite
def _inventories(draw: st.DrawFn) -> dict[str, Inventory]:
    found = {
        "VCPU": Inventory(draw(st.sampled_from([4, 8])), allocation_ratio=draw(st.sampled_from([1.0, 1.5]))),
        "MEMORY_MB": Inventory(draw(st.sampled_from([2048, 4096]))),
        "DISK_GB": Inventory(
            draw(st.sampled_from([40, 40, 10])), step_size=draw(st.sampled_from([1, 1, 1, 5]))
        ),
    }
    if not draw(st.integers(0, 5)):
        del found["DISK_GB"]
    if not draw(st.integers(0, 5)):
        found["VCPU"] = Inventory(8, min_unit=2)
    if not draw(st.integers(0, 2)):
        found["PCPU"] = Inventory(4)
    return found


def _cells(pinned: int) -> dict[str, Any]:
    """What a host of two cells reports, in one of which CPUs are pinned."""
    pages = {4: 2**18, 2048: 300}
    first = reported_cell(0, range(3), pages=pages, pinned_cpus=list(range(pinned)))
    return reported(first, reported_cell(1, range(3, 6), pages=pages))


def make(world: World, host: int, inventories: dict[str, Inventory] | None = None) -> None:
    uuid = uuid_of(host)
    if world.run(CreateProvider(uuid, f"name{host}", None)):
        stock = {"VCPU": Inventory(8), "MEMORY_MB": Inventory(4096), "DISK_GB": Inventory(40)}
        world.run(SetInventories(uuid, inventories or stock, None))


@st.composite
def made(draw: st.DrawFn) -> Step:
    """Hosts to begin with, some of them in use."""
    present = draw(st.lists(st.integers(0, HOSTS - 1), min_size=3, unique=True))
    inventories = {host: draw(st.none() | _inventories()) for host in present}
    cells = [draw(st.sampled_from(["cell0", "cell0", "cell1"])) for _ in present]

    def step(world: World) -> None:
        for host, stock in inventories.items():
            make(world, host, stock)
        world.table.update(
            report(
                f"host{host}",
                uuid_of(host),
                cell=cell,
                metrics={"heat": float(host)},
                numa_topology=_cells(host % 2) if host % 3 else None,
            )
            for host, cell in zip(present, cells, strict=True)
        )

    return step
