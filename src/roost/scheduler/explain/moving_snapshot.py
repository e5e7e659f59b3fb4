"""A snapshot on which instances move: each move is decided and claimed as a conductor of its cell does it.

In one claim the migration takes over what the instance holds, and the instance has the target. Then the
migration frees the source, as at the end of a move. So while an instance moves, both of its hosts are taken,
and the next move begins when both facts are settled.
"""

import uuid
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager

import msgspec

from roost.fleet import Fleet
from roost.ledger import Held
from roost.model.allocation import HandedClaim
from roost.model.change import AllocationsChanged
from roost.model.instance import Requester
from roost.model.move import Move, MovePlace, spec_of_move
from roost.model.move_states import REQUESTED
from roost.model.node import KEEPS_DISKS, NodeReport
from roost.model.spec import RequestSpec, Selection
from roost.placement.errors import PlacementError
from roost.scheduler.errors import SchedulerError
from roost.scheduler.explain.fleet_snapshot import FleetSnapshot
from roost.scheduler.nodes.outstanding import TakenAmounts, taken_by
from roost.scheduler.request.scheduling_request import HostRequest, SchedulingRequest
from roost.scheduler.selection.host_pools import HostPools
from roost.scheduler.selection.running_selection import set_aside
from roost.state.cell_database.residents import Resident

_NOBODY = Requester("", "", "")


class MovableInstance(msgspec.Struct, frozen=True):
    """An instance that may move: its row, what it holds, and the index of its node in the table."""

    resident: Resident
    held: Held
    index: int

    @property
    def uuid(self) -> str:
        """The uuid of the instance."""
        return self.resident.instance

    @property
    def consumer(self) -> str:
        """The consumer that has its claim."""
        return self.resident.holder


class MovingSnapshot(FleetSnapshot):
    """A copy of the fleet on which instances move, and are taken back.

    ``movable``: what those hold that may move. ``now``: seconds since the epoch, to judge heartbeats.
    """

    def __init__(self, fleet: Fleet, pools: HostPools, movable: Mapping[str, Held], now: float) -> None:
        super().__init__(fleet, pools, {**movable})
        self._now = now
        self._without_store: dict[str | None, frozenset[str]] = {}

    def request_of(
        self, moving: MovableInstance, target: int | None = None, *, anywhere: bool = False
    ) -> SchedulingRequest:
        """Return the request by which an instance looks for a target.

        ``target``: for this one host. ``anywhere``: its own host is not excluded.

        Raises: `SchedulerError`.
        """
        resident, table, held = moving.resident, self.table, self._state_of(moving.consumer)
        cell = table.cells[table.cell.item(moving.index)]
        migration = str(uuid.uuid5(uuid.NAMESPACE_OID, moving.uuid))
        source = "" if anywhere else resident.host
        move = Move(
            uuid=migration,
            instance=moving.uuid,
            kind="migrate",
            state=REQUESTED,
            source=MovePlace(
                0, Selection(source, resident.node, cell, held.allocations, {}, 0.0), resident.spec
            ),
            spec=resident.spec,
            by=_NOBODY,
            began=self._now,
            changed_at=self._now,
            to_host=None if target is None else table.hosts[target],
        )
        spec = spec_of_move(move, cell, self._hosts_without(self.store_of(moving)))
        handed = HandedClaim(
            held.allocations,
            held.consumer.generation,
            held.consumer.assignment,
            consumer=migration,
        )
        asked = HostRequest(spec, (moving.consumer,), handed={moving.consumer: handed})
        options = self.pools.options
        return SchedulingRequest.of(asked, self.queries(spec, options), options, self._now)

    def store_of(self, moving: MovableInstance) -> str | None:
        """Return the store that has the disks of an instance; None if its host keeps none."""
        return self.table.report(moving.index).stats.get(KEEPS_DISKS)

    def _hosts_without(self, store: str | None) -> frozenset[str]:
        """Return the hosts that do not have the disks of a store."""
        if store not in self._without_store:
            table = self.table
            self._without_store[store] = frozenset(
                table.hosts[index]
                for index in range(table.size)
                if table.index_of_node(table.nodes[index]) == index
                and table.report(index).stats.get(KEEPS_DISKS) != store
            )
        return self._without_store[store]

    @contextmanager
    def moved(self, moving: MovableInstance, target: int) -> Iterator[bool]:
        """Move an instance to a node until the end of the context; yields whether the scheduler moves it."""
        with ExitStack() as undoing:
            # Undone last: the claim of the move has taken the place of an outstanding one.
            undoing.callback(
                self._count_on_table, moving.consumer, self.table.outstanding.of(moving.consumer)
            )
            undoing.enter_context(self.trying())
            try:
                request = self.request_of(moving, target)
                self._state.name(request.consumers)
                set_aside(self._state, request)
                placed = bool(self.decide(request, only=target).destinations)
            except (SchedulerError, PlacementError):
                placed = False
            if placed:
                migration = request.handed[moving.consumer].consumer
                self._free(migration)
                self._leave(undoing, moving)
            yield placed

    @contextmanager
    def without(self, *leaving: MovableInstance) -> Iterator[None]:
        """Free what instances hold until the end of the context, wherever they would go."""
        with ExitStack() as undoing:
            undoing.enter_context(self.trying())
            for each in leaving:
                undoing.callback(
                    self._count_on_table, each.consumer, self.table.outstanding.of(each.consumer)
                )
                self.table.release(each.consumer)
                self._free(each.consumer)
                self._leave(undoing, each)
            yield

    def _state_of(self, consumer: str) -> Held:
        self._state.name((consumer,))
        held = self._state.held(consumer)
        assert held is not None
        return held

    def _free(self, consumer: str) -> None:
        held = self._state_of(consumer)
        self._state.apply(AllocationsChanged(consumer, held.consumer, None, held.allocations, {}))

    def _leave(self, undoing: ExitStack, leaving: MovableInstance) -> None:
        """Let the node report an instance no longer that has left it."""
        report = self.table.report(leaving.index)
        if leaving.consumer in report.instances:
            self.table.update([without_instance(report, leaving.consumer, leaving.resident.spec)])
            undoing.callback(self.table.update, (report,))

    def _count_on_table(self, instance: str, taken: TakenAmounts | None) -> None:
        """Have the table count the claim of an instance as before."""
        self.table.release(instance)
        if taken is not None:
            self.table.claim(instance, taken.index, taken.memory_mb, taken.disk_mb, taken.assignment)
            if not taken.building:
                self.table.built(instance)


def without_instance(report: NodeReport, instance: str, spec: RequestSpec) -> NodeReport:
    """Return the report of a node without one of its instances.

    The hardware that the report counts for it stays in use: a request that fits beside it fits without it.
    """
    memory_mb, disk_mb = taken_by(spec)
    free_ram, free_disk, vcpus = report.free_ram_mb, report.free_disk_mb, report.vcpus_used
    return msgspec.structs.replace(
        report,
        instances={name: each for name, each in report.instances.items() if name != instance},
        num_instances=max(0, report.num_instances - 1),
        free_ram_mb=None if free_ram is None else free_ram + memory_mb,
        free_disk_mb=None if free_disk is None else free_disk + disk_mb,
        vcpus_used=None if vcpus is None else max(0, vcpus - spec.flavor.vcpus),
    )
