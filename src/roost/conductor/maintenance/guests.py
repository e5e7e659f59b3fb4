"""The instances of the cells, as a plan of a maintenance needs them."""

from collections.abc import Collection, Iterable

import msgspec

from roost.model.instance import Instance
from roost.model.move import version_for_move
from roost.model.node import YES
from roost.model.spec import RequestedDestination, RequestSpec
from roost.process.context import Context
from roost.scheduler.maintenance.live_fleet import GuestThere, WantedPlan
from roost.state.cell_database.instance_search import read_placed
from roost.state.cell_database.moves import keeps_no_disks, refusal_of
from roost.state.cell_database.nodes import read_disk_stores

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
    found = await context.together([_of_cell(context, name) for name in names])
    specs: dict[bytes, int] = {}
    distinct: list[RequestSpec] = []
    guests: list[GuestThere] = []
    for cell, (there, stores) in zip(names, found, strict=True):
        for instance in there:
            if instance.spec is None or instance.selection is None or instance.node is None:
                # What it holds counts as in use; it cannot move, and nobody knows what it would need.
                continue
            _, store = stores.get(instance.node, ("", YES))
            spec = spec_of_guest(
                instance.spec, cell, (host for host, other in stores.values() if other != store)
            )
            number = specs.setdefault(_encode(spec), len(specs))
            if number == len(distinct):
                distinct.append(spec)
            claim = instance.selection.allocations
            stays = _stays(instance, has_store=store is not None)
            guests.append(GuestThere(instance.uuid, instance.node, claim, number, stays))
    return WantedPlan(tuple(sorted(hosts)), tuple(guests), tuple(distinct), reserve, most_hosts)


async def _of_cell(context: Context, cell: str) -> tuple[list[Instance], dict[str, tuple[str, str | None]]]:
    """Return the instances of a cell, and host and disk store of each node."""
    placed = await context.read(f"cell/{cell}", read_placed())
    return placed, await context.read(f"cell/{cell}", read_disk_stores())


def spec_of_guest(spec: RequestSpec, cell: str, without: Iterable[str]) -> RequestSpec:
    """Return the request by which an instance may be on the hosts of its cell, as its moves ask for them.

    Only what decides on hosts is left, so that equal requests of several users are one. ``without``: the
    hosts that do not have its disks.
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
        ignore_hosts=spec.ignore_hosts.union(without),
        needs_version=max(spec.needs_version, version_for_move(spec)),
    )


def _stays(instance: Instance, *, has_store: bool) -> str | None:
    """Return why an instance cannot move now, None if it can."""
    if instance.move is not None:
        return f"instance {instance.uuid} moves already, by {instance.move}"
    refusal = refusal_of(instance)
    if refusal is None and not has_store:
        refusal = keeps_no_disks(instance.host)
    return None if refusal is None else f"instance {instance.uuid} cannot move: {refusal}"
