"""The instances of the cells, as a plan of a maintenance needs them."""

from collections.abc import Collection

import msgspec

from roost.model.instance import Instance
from roost.model.spec import RequestedDestination, RequestSpec
from roost.process.context import Context
from roost.scheduler.maintenance.live_fleet import GuestThere, WantedPlan
from roost.state.cell_database.instance_search import read_placed
from roost.state.cell_database.moves import refusal_of

_encode = msgspec.msgpack.Encoder(order="deterministic").encode


async def wanted_plan(
    context: Context,
    hosts: Collection[str],
    cells: Collection[str],
    *,
    reserve: bool = True,
    most_hosts: int | None = None,
) -> WantedPlan:
    """Return the question of a plan that empties hosts: with all instances of the cells ``cells``.

    Raises: `StorageError` of a cell.
    """
    names = sorted(cells)
    found = await context.together([_placed(context, name) for name in names])
    specs: dict[bytes, int] = {}
    distinct: list[RequestSpec] = []
    guests: list[GuestThere] = []
    for cell, there in zip(names, found, strict=True):
        for instance in there:
            if instance.spec is None or instance.selection is None or instance.node is None:
                # What it holds counts as in use; it cannot move, and nobody knows what it would need.
                continue
            spec = spec_of_guest(instance.spec, cell)
            number = specs.setdefault(_encode(spec), len(specs))
            if number == len(distinct):
                distinct.append(spec)
            claim = instance.selection.allocations
            guests.append(GuestThere(instance.uuid, instance.node, claim, number, _stays(instance)))
    return WantedPlan(tuple(sorted(hosts)), tuple(guests), tuple(distinct), reserve, most_hosts)


async def _placed(context: Context, cell: str) -> list[Instance]:
    return await context.read(f"cell/{cell}", read_placed())


def spec_of_guest(spec: RequestSpec, cell: str) -> RequestSpec:
    """Return the request by which an instance may be on the hosts of its cell, as its moves ask for them.

    Only what decides on hosts is left, so that equal requests of several users are one.
    """
    before = spec.requested_destination
    destination = RequestedDestination(
        cell=cell,
        aggregates=() if before is None else before.aggregates,
        forbidden_aggregates=frozenset() if before is None else before.forbidden_aggregates,
    )
    group = spec.group
    return msgspec.structs.replace(
        spec,
        user_id="",
        operation="migrate",
        requested_destination=destination,
        group=None if group is None else msgspec.structs.replace(group, hosts=()),
        force_hosts=(),
        force_nodes=(),
        retried_hosts=frozenset(),
    )


def _stays(instance: Instance) -> str | None:
    """Return why an instance cannot move now, None if it can."""
    if instance.move is not None:
        return f"instance {instance.uuid} moves already, by {instance.move}"
    refusal = refusal_of(instance)
    return None if refusal is None else f"instance {instance.uuid} cannot move: {refusal}"
