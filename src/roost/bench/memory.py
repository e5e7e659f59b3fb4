"""From a plan to a fleet in memory, without a database."""

from roost.bench.fleets import AGGREGATES, DISABLED_EVERY, FleetPlan
from roost.fleet import Fleet
from roost.ledger import State
from roost.ledger.vocabulary import FIRST_CUSTOM_CLASS, RegisterStandardNames
from roost.model.change import (
    AggregatesChanged,
    AllocationsChanged,
    InventoryChanged,
    ProviderChanged,
    ProviderFacts,
    ResourceClassChanged,
    TraitChanged,
    TraitsChanged,
)
from roost.model.host import HostReport
from roost.model.vocabulary import DISABLED_TRAIT
from roost.scheduler.hosts import HostTable

CELLS = 10
FIRST_CUSTOM_TRAIT = 10_000


def fleet_in_memory(plan: FleetPlan) -> Fleet:
    """The fleet that `roost.bench.filling.fill` writes, made change by change."""
    fleet = Fleet()
    RegisterStandardNames().run(State(fleet, {}, 0.0))
    classes, traits = plan.custom_names
    for number, name in enumerate(sorted(classes)):
        fleet.apply(ResourceClassChanged(name, None, FIRST_CUSTOM_CLASS + number))
    for number, name in enumerate(sorted(traits)):
        fleet.apply(TraitChanged(name, None, FIRST_CUSTOM_TRAIT + number))
    aggregates = plan.aggregates()
    parts = [(part, dict(part.inventories), tuple(sorted(part.traits))) for part in plan.tree]
    disabled = tuple(sorted((*plan.tree[0].traits, DISABLED_TRAIT)))
    for portion in plan.portions():
        for index, (consumer, used) in enumerate(zip(portion.consumers, portion.used.tolist(), strict=True)):
            host = portion.first + index
            uuids = portion.providers[index * len(parts) : (index + 1) * len(parts)]
            row = host * len(parts)
            held = {}
            for place, (part, stock, has) in enumerate(parts):
                uuid = uuids[place]
                above = None if part.parent is None else uuids[part.parent]
                facts = ProviderFacts(plan.host_name(host) + part.name, above, 0)
                fleet.apply(ProviderChanged(uuid, row + place, None, facts))
                fleet.apply(InventoryChanged(uuid, {}, stock))
                if not place and host % DISABLED_EVERY == DISABLED_EVERY - 1:
                    has = disabled
                if has:
                    fleet.apply(TraitsChanged(uuid, (), has))
                if part.held:
                    held[uuid] = {name: used * amount for name, amount in part.held.items()}
            fleet.apply(AggregatesChanged(uuids[0], (), (aggregates[host % AGGREGATES],)))
            fleet.apply(AllocationsChanged(consumer, None, None, {}, held))
    return fleet


def host_table(plan: FleetPlan) -> HostTable:
    """All hosts of a plan, up, dealt out to ten cells."""
    return HostTable(
        HostReport(host=plan.host_name(host), node=node, cell=f"cell{host % CELLS}", last_seen=0.0)
        for host, node in enumerate(plan.roots())
    )
