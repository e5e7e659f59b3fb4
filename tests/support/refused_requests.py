"""Refused requests of all causes, on small clouds of different hosts, drawn from a seed."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from roost.fleet import Fleet
from roost.fleet.hardware.pci_aliases import aliases_from
from roost.ledger import State
from roost.ledger.vocabulary import RegisterStandardNames
from roost.model.aggregate import HostAggregate
from roost.model.inventory import Inventory
from roost.model.reasons import Reasons
from roost.model.record import Run
from roost.model.spec import RequestedDestination, RequestSpec, ServerGroup
from roost.model.vocabulary import DISABLED_TRAIT
from roost.placement.commands.allocations import WriteAllocations
from roost.placement.commands.inventories import SetInventories
from roost.placement.commands.names import AddResourceClass, AddTrait
from roost.placement.commands.providers import CreateProvider
from roost.placement.commands.traits_and_aggregates import SetAggregates, SetTraits
from roost.records import RunWithAttempts
from roost.scheduler import SchedulerOptions
from roost.scheduler.explain.explanation import explain
from roost.scheduler.explain.fleet_snapshot import FleetSnapshot
from roost.scheduler.gateways.local import Decide
from roost.scheduler.options import DEFAULT_FILTERS, PciOptions
from roost.scheduler.plugins.plugins import Plugins
from roost.scheduler.request.changed import Changes, changed_options, changed_queries, changed_spec
from roost.scheduler.request.query import placement_queries
from roost.scheduler.request.request_filters.narrowed_query import FilterFacts
from roost.scheduler.request.scheduling_request import HostRequest, SchedulingRequest
from roost.scheduler.selection.host_pools import HostPools
from roost.scheduler.selection.outcome import Outcome
from support.clouds import AGGREGATES, GPU, NOW, TRAITS, holding, report, spec, table_of, uuid_of
from support.numa_hosts import two_cells

CAUSES: Final = ("class", "trait", "numa", "pci", "group", "zone", "aggregate", "disabled", "two")

_ALIAS = "pci_passthrough:alias"
OPTIONS: Final = SchedulerOptions(
    filters=(
        *DEFAULT_FILTERS,
        "NUMATopologyFilter",
        "PciPassthroughFilter",
        "AggregateInstanceExtraSpecsFilter",
    ),
    pci=PciOptions(
        aliases_from(
            ['{"name": "gpu", "vendor_id": "10de", "product_id": "2236", "device_type": "type-PCI"}']
        )
    ),
)
_METADATA: Final[dict[str, dict[str, str]]] = {
    AGGREGATES[0]: {"availability_zone": "az0"},
    AGGREGATES[1]: {"availability_zone": "az1"},
    AGGREGATES[2]: {"ssd": "yes"},
    AGGREGATES[3]: {},
}


AS_IT_IS: Final = Changes()


@cache
def _decided_by(changes: Changes) -> tuple[SchedulerOptions, Plugins]:
    options = changed_options(OPTIONS, changes)
    return options, Plugins.enabled(options)


class RefusalWorld:
    """A cloud of a few hosts that differ in room, traits, devices, cells, zones, states and guests."""

    def __init__(self, chosen: random.Random) -> None:
        self.chosen = chosen
        self.fleet = Fleet()
        self.state = State(self.fleet, {}, NOW)
        self._run(RegisterStandardNames())
        for trait in TRAITS:
            self._run(AddTrait(trait))
        self._run(AddResourceClass(GPU))
        self.table = table_of([self._host(number) for number in range(chosen.randint(4, 12))])
        self.consumers = 0x5000

    def _run(self, command: Any) -> None:
        self.state.name(command.consumers())
        command.run(self.state)

    def _host(self, number: int) -> Any:
        chosen, node = self.chosen, uuid_of(number)
        self._run(CreateProvider(node, f"host{number}", None))
        vcpus, memory = chosen.choice([8, 16]), chosen.choice([8192, 16384])
        inventories = {
            "VCPU": Inventory(vcpus),
            "PCPU": Inventory(8),
            "MEMORY_MB": Inventory(memory),
            "DISK_GB": Inventory(chosen.choice([50, 200])),
        }
        self._run(SetInventories(node, inventories, None))
        if chosen.random() < 0.4:
            child = uuid_of(0x1000 + number)
            self._run(CreateProvider(child, f"gpus of host{number}", node))
            self._run(SetInventories(child, {GPU: Inventory(2)}, None))
        enabled = chosen.random() < 0.8
        traits = {each for each in TRAITS if chosen.random() < 0.5}
        if not enabled:
            traits.add(DISABLED_TRAIT)
        self._run(SetTraits(node, frozenset(traits), None, add_custom=True))
        zone = chosen.choice([AGGREGATES[0], AGGREGATES[1], None])
        others = [each for each in AGGREGATES[2:] if chosen.random() < 0.5]
        aggregates = frozenset([*others, *([zone] if zone else [])])
        self._run(SetAggregates(node, aggregates, None))
        used = {
            name: amount
            for name, most in (("VCPU", vcpus), ("MEMORY_MB", memory // 1024))
            if (amount := chosen.choice([0, 0, most // 2, most - 1]) * (1024 if name == "MEMORY_MB" else 1))
        }
        if used:
            self._run(WriteAllocations((holding(uuid_of(0xF000 + number), {node: used}),)))
        more: dict[str, Any] = {}
        if chosen.random() < 0.6:
            pinned = chosen.sample(range(8), chosen.choice([0, 2, 5]))
            more["numa_topology"] = two_cells((4, 4), pinned_cpus=sorted(p for p in pinned if p < 4))
        if chosen.random() < 0.5:
            more["pci_device_pools"] = (
                {
                    "vendor_id": "10de",
                    "product_id": "2236",
                    "dev_type": "type-PCI",
                    "count": chosen.choice([1, 2]),
                    "numa_node": 0,
                },
            )
        return report(
            f"host{number}",
            node,
            enabled=enabled,
            last_seen=NOW - (1.0 if chosen.random() < 0.85 else 900.0),
            cell=chosen.choice(["cell1", "cell2"]),
            aggregates=tuple(HostAggregate(each, each, _METADATA[each]) for each in sorted(aggregates)),
            **more,
        )

    @property
    def hosts(self) -> tuple[str, ...]:
        """The names of the hosts."""
        return tuple(self.table.hosts)

    def stop(self, host: str, *, down: bool) -> None:
        """Disable a host, or let its heartbeats end (``down``)."""
        [index] = self.table.indexes_of_host(host)
        node = self.table.nodes[index]
        if down:
            self.table.update([replace(self.table.report(index), last_seen=NOW - 900.0)])
            return
        self.table.update([replace(self.table.report(index), enabled=False, last_seen=NOW - 1.0)])
        traits = frozenset(self.fleet.traits_of(self.fleet.row(node)))
        self._run(SetTraits(node, traits | {DISABLED_TRAIT}, None, add_custom=True))

    # Decisions

    def request(
        self, wanted: RequestSpec, changes: Changes = AS_IT_IS
    ) -> tuple[SchedulingRequest, HostPools]:
        """Return the request for one instance with changes, and the pools to decide it by."""
        options, plugins = _decided_by(changes)
        changed = changed_spec(wanted, changes)
        queries = placement_queries(changed, FilterFacts(self.table, OPTIONS))
        queries = changed_queries(queries, wanted, OPTIONS.filters, changes)
        asked = HostRequest(changed, (uuid_of(self.consumers),), run="run")
        request = SchedulingRequest.of(asked, queries, options, NOW)
        return request, HostPools(self.table, options, plugins)

    def decided(self, wanted: RequestSpec, changes: Changes = AS_IT_IS, *, keep: bool = False) -> Outcome:
        """Decide a request as the scheduler does. ``keep``: its claim stays."""
        request, pools = self.request(wanted, changes)
        mark = len(self.state.changes)
        self.state.name(request.instances)
        outcome = Decide(request, pools).run(self.state).outcome
        if keep and outcome.destinations:
            self.consumers += 1
        else:
            self.state.take_back(mark)
            self.table.release(*request.instances)
        return outcome

    def fits(self, wanted: RequestSpec, changes: Changes = AS_IT_IS) -> bool:
        """Return whether a request fits."""
        return bool(self.decided(wanted, changes).destinations)

    def explained(self, wanted: RequestSpec) -> Reasons:
        """Return the reasons of a refusal."""
        request, pools = self.request(wanted)
        return explain(FleetSnapshot(self.fleet, pools), request)

    def record(self, wanted: RequestSpec) -> RunWithAttempts:
        """Return the record of a refused request."""
        outcome, reasons = self.decided(wanted), self.explained(wanted)
        assert outcome.refusal is not None
        run = Run(
            id=uuid_of(0xD0),
            request_id="req-1",
            project_id=wanted.project_id,
            user_id=wanted.user_id,
            instances=(uuid_of(self.consumers),),
            spec=msgspec.to_builtins(wanted),
            started_at=NOW,
            finished_at=NOW,
            version=self.fleet.version,
            steps=outcome.steps,
            refusal=outcome.refusal,
            reasons=reasons,
        )
        return RunWithAttempts(run)


@dataclass
class RefusedRequest:
    """A request that fitted before one thing was asked for in addition, or two.

    ``added``: the causes by which it does not fit.
    """

    world: RefusalWorld
    spec: RequestSpec
    added: tuple[str, ...]


Change = Callable[[RefusalWorld, RequestSpec], Callable[[RequestSpec], RequestSpec]]


def _of_class(world: RefusalWorld, base: RequestSpec) -> Callable[[RequestSpec], RequestSpec]:
    chosen = world.chosen
    name, amount = chosen.choice(
        [
            ("vcpus", 16),
            ("vcpus", 40),
            ("memory_mb", 16384),
            ("memory_mb", 90000),
            ("disk_gb", 300),
            (GPU, 2),
            (GPU, 4),
        ]
    )
    if name == GPU:
        return lambda of: _with_extra(of, **{f"resources:{GPU}": str(amount)})
    return lambda of: replace(of, flavor=replace(of.flavor, **{name: amount}))


def _of_trait(world: RefusalWorld, base: RequestSpec) -> Callable[[RequestSpec], RequestSpec]:
    trait, wish = world.chosen.choice(TRAITS), world.chosen.choice(["required", "required", "forbidden"])
    return lambda of: _with_extra(of, **{f"trait:{trait}": wish})


def _of_numa(world: RefusalWorld, base: RequestSpec) -> Callable[[RequestSpec], RequestSpec]:
    cells = world.chosen.choice(["1", "2"]) if base.flavor.vcpus > 1 else "1"
    return lambda of: _with_extra(of, **{"hw:cpu_policy": "dedicated", "hw:numa_nodes": cells})


def _of_pci(world: RefusalWorld, base: RequestSpec) -> Callable[[RequestSpec], RequestSpec]:
    count = world.chosen.choice([1, 2, 3])
    return lambda of: _with_extra(of, **{_ALIAS: f"gpu:{count}"})


def _of_group(world: RefusalWorld, base: RequestSpec) -> Callable[[RequestSpec], RequestSpec]:
    fitting = tuple(host for host in world.hosts if world.fits(_on(base, host)))
    others = tuple(host for host in world.hosts if host not in fitting)
    if others and world.chosen.random() < 0.4:
        group = ServerGroup("g", "affinity", (world.chosen.choice(others),))
    else:
        group = ServerGroup("g", "anti-affinity", fitting)
    return lambda of: replace(of, group=group)


def _of_zone(world: RefusalWorld, base: RequestSpec) -> Callable[[RequestSpec], RequestSpec]:
    zone = world.chosen.choice(["az0", "az1", "nova"])
    return lambda of: replace(of, availability_zone=zone)


def _of_aggregate(world: RefusalWorld, base: RequestSpec) -> Callable[[RequestSpec], RequestSpec]:
    if world.chosen.random() < 0.5:
        wish = world.chosen.choice(["yes", "no"])
        return lambda of: _with_extra(of, **{"aggregate_instance_extra_specs:ssd": wish})
    destination = RequestedDestination(aggregates=(frozenset({world.chosen.choice(AGGREGATES)}),))
    return lambda of: replace(of, requested_destination=destination)


def _disabled(world: RefusalWorld, base: RequestSpec) -> Callable[[RequestSpec], RequestSpec]:
    for host in world.hosts:
        if world.fits(_on(base, host)):
            world.stop(host, down=world.chosen.random() < 0.3)
    return lambda of: of


def _with_extra(of: RequestSpec, **more: str) -> RequestSpec:
    return replace(of, flavor=replace(of.flavor, extra_specs={**of.flavor.extra_specs, **more}))


def _on(of: RequestSpec, host: str) -> RequestSpec:
    return replace(of, requested_destination=RequestedDestination(host=host))


_CHANGES: Final[dict[str, Change]] = {
    "class": _of_class,
    "trait": _of_trait,
    "numa": _of_numa,
    "pci": _of_pci,
    "group": _of_group,
    "zone": _of_zone,
    "aggregate": _of_aggregate,
    "disabled": _disabled,
}


def refused_request(seed: int, cause: str) -> RefusedRequest:
    """Return a refused request of a cause, always the same for a seed.

    With the cause ``two`` each of two things refuses it, alone too.
    """
    for attempt in range(10_000):
        chosen = random.Random(f"{seed} {cause} {attempt}")
        world = RefusalWorld(chosen)
        base = spec(chosen.choice([1, 2, 4]), chosen.choice([512, 1024, 4096]), chosen.choice([5, 20]))
        if not world.fits(base):
            continue
        # Disabling hosts changes the world, so it comes last.
        added = (
            (cause,)
            if cause != "two"
            else tuple(sorted(chosen.sample(CAUSES[:-1], 2), key="disabled".__eq__))
        )
        wanted = base
        for each in added:
            change = _CHANGES[each](world, base)
            if world.fits(change(base)):
                break
            wanted = change(wanted)
        else:
            return RefusedRequest(world, wanted, added)
    raise AssertionError(f"no refusal by {cause} in 10,000 worlds")
