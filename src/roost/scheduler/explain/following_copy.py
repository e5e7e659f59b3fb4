"""The copy of a fleet and a node table that follows a ledger in another process, and answers about refusals.

It is told each commit of the ledger and each event of the node table, in messages. A message may ask why a
request is refused, or which moves make it fit; for the second question the instances that may move, and what
they hold, come with the message.
"""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import msgspec

from roost.fleet import Fleet
from roost.ledger import Held
from roost.ledger.feed import Commit, decode_changes
from roost.model.change import AllocationsChanged, Change
from roost.model.node import KEEPS_DISKS
from roost.model.node_event import NodeEvent
from roost.model.reasons import MoveSearch, Reasons
from roost.model.spec import RequestSpec
from roost.scheduler.errors import SchedulerError
from roost.scheduler.explain.explainer import SECONDS_TRYING
from roost.scheduler.explain.explanation import explain, remaining
from roost.scheduler.explain.fleet_snapshot import FleetSnapshot
from roost.scheduler.explain.lacking_hosts import hosts_lacking_least
from roost.scheduler.explain.move_search import MOST_HOSTS, find_moves
from roost.scheduler.explain.moving_snapshot import MovableInstance, MovingSnapshot
from roost.scheduler.explain.snapshot import without_limits
from roost.scheduler.request.scheduling_request import HostRequest, SchedulingRequest
from roost.scheduler.selection.host_pools import HostPools
from roost.state.cell_database.residents import Resident

SECONDS_MOVING: Final = 2.0
"""Seconds after which no further moves are tried, whatever is left of the decisions of a search."""
COMMITS_REMEMBERED: Final = 1_000
"""Commits of which a copy knows the consumers, to tell what was read before them."""


class Refused(msgspec.Struct, frozen=True, array_like=True):
    """A refused request: the parts of its `SchedulingRequest` that are not made anew from the copy's state.

    ``placed``: so many of the first instances hold their hosts. ``silent``: see `NodeTable.silent`.
    """

    spec: RequestSpec
    instances: tuple[str, ...]
    min_count: int
    now: float
    seed: int
    placed: int
    silent: dict[str, float]
    held_by: dict[str, str] = {}


class ReadResidents(msgspec.Struct, frozen=True, array_like=True):
    """The instances of some hosts that may move, and what they held at a ``version`` of the ledger."""

    residents: tuple[Resident, ...]
    held: dict[str, Held]
    version: int


class MovesQuestion(msgspec.Struct, frozen=True, array_like=True):
    """The question which moves make a refused request fit, up to ``most``.

    ``hosts``: the nodes whose instances were read, by root provider. None: the question is which they are.
    """

    most: int
    hosts: tuple[str, ...] | None = None
    read: ReadResidents | None = None


class CopyMessage(msgspec.Struct, frozen=True, array_like=True):
    """The commits and events since the last message, and a refused request to explain after them.

    ``node_version``: of the node table after the events. ``moves``: asked instead of the reasons.
    """

    commits: Sequence[Commit]
    events: Sequence[NodeEvent]
    node_version: int | None
    refused: Refused | None = None
    moves: MovesQuestion | None = None


encode_message = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(CopyMessage).decode
_encode = msgspec.msgpack.Encoder().encode


class Copy:
    """The copy, and its answers to messages. Fleet and table must belong to nobody else."""

    def __init__(self, fleet: Fleet, pools: HostPools) -> None:
        self.fleet = fleet
        self.table = pools.table
        self._pools = pools
        self._written = WrittenConsumers(fleet.version)
        self.table.become_copy()

    def handle(self, message: bytes) -> bytes | None:
        """Apply a message and explain its refused request, if any. Raises if the state is not the
        scheduler's."""
        received = _decode(message)
        for commit in received.commits:
            changes = decode_changes(commit.changes)
            self.fleet.advance(commit.seq, changes, commit.at)
            self._written.add(commit.seq, changes)
        for event in received.events:
            self.table.apply(event)
        self.table.version = received.node_version
        refused, asked = received.refused, received.moves
        if refused is None:
            return None
        self.table.set_silent(refused.silent)
        try:
            return _encode(self._reasons(refused) if asked is None else self._moves(refused, asked))
        except SchedulerError:
            # A plugin fails on the present state. The run itself was refused without a fault.
            return _encode(None)

    def _reasons(self, refused: Refused) -> Reasons:
        snapshot = FleetSnapshot(self.fleet, self._pools)
        return explain(
            snapshot, self._request(snapshot, refused), placed=refused.placed, seconds=SECONDS_TRYING
        )

    def _moves(self, refused: Refused, asked: MovesQuestion) -> MoveSearch | list[str] | None:
        """Return the moves that were found, or the nodes whose instances are needed to find some."""
        read = asked.read or ReadResidents((), {}, 0)
        held = {name: each for name, each in read.held.items() if self._written.is_as_of(name, read.version)}
        snapshot = MovingSnapshot(self.fleet, self._pools, held, refused.now)
        request = remaining(without_limits(self._request(snapshot, refused)), refused.placed)
        if asked.hosts is None:
            found = hosts_lacking_least(snapshot, request, MOST_HOSTS)
            return [self.table.nodes[index] for index in found]
        moving = {*refused.instances, *refused.held_by.values()}
        movable = [each for each in self._movable(read, held) if each.consumer not in moving]
        indexes = [self.table.index_of_node(node) for node in asked.hosts]
        there = [index for index in indexes if index is not None]
        return find_moves(snapshot, request, movable, there, asked.most, seconds=SECONDS_MOVING)

    def _movable(self, read: ReadResidents, held: Mapping[str, Held]) -> Iterator[MovableInstance]:
        for each in read.residents:
            index, holds = self.table.index_of_node(each.node), held.get(each.holder)
            if index is None or KEEPS_DISKS not in self.table.report(index).stats:
                continue
            if holds is not None and each.node in self.fleet:
                tree = {self.fleet.uuid(row) for row in self.fleet.subtree(self.fleet.row(each.node))}
                if not tree.isdisjoint(holds.allocations):
                    yield MovableInstance(each, holds, index)

    def _request(self, snapshot: FleetSnapshot, refused: Refused) -> SchedulingRequest:
        options, spec = self._pools.options, refused.spec
        asked = HostRequest(spec, refused.instances, 0, refused.min_count, held_by=refused.held_by)
        queries = snapshot.queries(spec, options)
        return SchedulingRequest.of(asked, queries, options, refused.now, seed=refused.seed)


class WrittenConsumers:
    """The versions at which consumers were written lately, by the commits that a copy has followed.

    A copy does not know what single consumers hold. What was read of them elsewhere is what they hold in the
    copy if they were not written since. ``version``: that of the copy at first.
    """

    def __init__(self, version: int) -> None:
        self._since = version
        self._commits: deque[tuple[int, frozenset[str]]] = deque()

    def add(self, version: int, changes: Sequence[Change]) -> None:
        """Note a commit."""
        written = frozenset(each.consumer for each in changes if isinstance(each, AllocationsChanged))
        self._commits.append((version, written))
        while len(self._commits) > COMMITS_REMEMBERED:
            self._since = self._commits.popleft()[0]

    def is_as_of(self, consumer: str, version: int) -> bool:
        """Return whether a consumer was not written after a version."""
        if version < self._since:
            return False
        return not any(seq > version and consumer in written for seq, written in self._commits)
