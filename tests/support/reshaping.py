"""Hosts whose instances run while their providers change shape."""

from msgspec.structs import replace

from roost.agent.drivers.simulated import Script, SimulatedDriver, SimulatedHost, SimulatedProvider
from roost.model.assignment import Assignment
from roost.model.instance import ACTIVE
from roost.model.inventory import Inventory
from roost.model.names import provider_uuid
from roost.model.spec import Selection
from roost.placement.commands.allocations import ConsumerWrite
from roost.state.cell_database.arrivals import AddInstances, find_instances
from support.agents import Hosts
from support.cells import NOW, instance

ROOT = provider_uuid("a")
FLAT = {"VCPU": Inventory(8), "MEMORY_MB": Inventory(1024), "VGPU": Inventory(8)}
CPUS = {"VCPU": Inventory(8), "MEMORY_MB": Inventory(1024)}


def described(inventory: dict[str, Inventory], **children: dict[str, Inventory]) -> SimulatedDriver:
    """The driver of host a with this inventory, and providers below it."""
    below = tuple(SimulatedProvider(suffix, each) for suffix, each in children.items())
    return SimulatedDriver(SimulatedHost("a", inventory, children=below), Script())


def cards(*totals: int) -> SimulatedDriver:
    """Host a with its virtual GPUs on cards."""
    return described(CPUS, **{f"gpu{n}": {"VGPU": Inventory(total)} for n, total in enumerate(totals, 1)})


async def put(
    world: Hosts,
    uuid: str,
    generation: int | None = 1,
    state: str = ACTIVE,
    assignment: Assignment | None = None,
    consumer: str = "",
    **resources: int,
) -> None:
    """Put an instance on host a, with its claim on the root. ``consumer``: its own uuid if empty."""
    await claimed(world, consumer or uuid, assignment=assignment, **resources)
    selection = Selection(
        "a",
        ROOT,
        "cell1",
        {ROOT: resources},
        {"": [ROOT]},
        0.5,
        assignment=assignment,
        ordinal=1,
        generation=generation,
    )
    new = replace(instance(uuid), node=ROOT, state=state, selection=selection, consumer=consumer or uuid)
    await world.cell.write(AddInstances((new,), NOW))


async def claimed(
    world: Hosts,
    uuid: str,
    kind: str = "INSTANCE",
    assignment: Assignment | None = None,
    **resources: int,
) -> None:
    """Claim something of the root of host a for a consumer that the cell does not have."""
    write = ConsumerWrite(
        consumer=uuid,
        allocations={ROOT: resources},
        project_id="project",
        user_id="user",
        consumer_type=kind,
        generation=None,
        assignment=assignment,
    )
    await world.placement.write_allocations([write])


async def held(world: Hosts, uuid: str) -> dict[str, dict[str, int]]:
    """What a consumer holds, by the name of the provider."""
    there = await world.placement.allocations_of(uuid)
    assert there is not None
    found = {}
    for provider, amounts in there.allocations.items():
        known = await world.placement.provider(provider)
        assert known is not None
        found[known.name] = dict(amounts)
    return found


async def follows(world: Hosts, uuid: str) -> bool:
    """Whether the row of an instance has what placement has."""
    row = (await world.cell.read(find_instances((uuid,))))[uuid]
    there = await world.placement.allocations_of(row.consumer)
    assert there is not None and row.selection is not None
    selection = row.selection
    return (selection.allocations, selection.generation) == (there.allocations, there.consumer.generation)
