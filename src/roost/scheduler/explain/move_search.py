"""Finds instances that could move so that a refused request fits: one, else two, else three.

Why not every sequence of moves: N instances on H hosts have (N × H)³ of them, and each try is a decision. The
search goes backwards instead, from a host that could take the request:

    room on host H for the request     the instances of H that are in its way leave, one after another
      an instance leaves H for T       T takes it as it is,
      or room on T for the instance    or the instances of T that are in its way leave first

Before a host is searched it is asked whether the request would fit if all of its instances that may move were
gone, and before an instance is moved as the last one, whether the request would fit without it. Both are
decisions about one host, by the filters and claims of any run.

A way that is found has been decided as a whole: its moves in their order, then the request on all hosts. What
the search does not find:

- ways on which an instance moves twice;
- ways on which an instance leaves a host on which nothing that moves or is requested goes, such as to free a
  pool that hosts share; members of an affinity group whose request has only one instance are looked at;
- of moves before others, those to other hosts than the `MOST_TARGETS` best, and those of the hosts and
  instances that were not read.
"""

from collections.abc import Iterator, Sequence

import msgspec

from roost.model.allocation import AFFINITY, SOFT_AFFINITY, Resources
from roost.model.reasons import MoveSearch, ProposedMove
from roost.scheduler.errors import SchedulerError
from roost.scheduler.explain.lacking_hosts import amounts_of, covered_by, suffice
from roost.scheduler.explain.moving_snapshot import MovableInstance, MovingSnapshot
from roost.scheduler.explain.snapshot import host_name
from roost.scheduler.explain.survey import TimeLimit
from roost.scheduler.request.scheduling_request import SchedulingRequest

MOST_HOSTS = 64
"""Hosts whose instances are looked at: those that lack least."""
MOST_TARGETS = 24
"""Targets that are tried for a move before another one, best first."""
MOST_DECISIONS = 3_000
"""Decisions of one search. Beyond them it ends without a result, whatever the speed of the machine."""
SUMS = 0.02
"""The part of a decision as which the sums over the tree of a host count."""
HOSTS_OF_A_DECISION = 200
"""A decision about all hosts counts as one more for each so many of them."""


class SearchEnded(Exception):
    """The decisions or the time of a search are used up."""


class _Blocked(msgspec.Struct, frozen=True):
    """A request that wants a host: that of the search (``moving`` is None), or an instance that moves."""

    name: str
    amounts: Resources
    moving: MovableInstance | None = None


def find_moves(
    snapshot: MovingSnapshot,
    request: SchedulingRequest,
    movable: Sequence[MovableInstance],
    hosts: Sequence[int],
    most: int,
    *,
    seconds: float,
    decisions: int = MOST_DECISIONS,
) -> MoveSearch:
    """Return the fewest moves, up to ``most``, with which a request fits that is refused as it is.

    ``hosts``: the nodes whose instances were read, nearest first; ``movable``: those that may move.
    ``seconds``: time after which the search ends.

    Raises: `SchedulerError` if the request cannot be judged.
    """
    searching = _Search(snapshot, request, movable, hosts, TimeLimit(seconds), decisions)
    found = MoveSearch(most=most, hosts=len(hosts), instances=len(movable))
    try:
        for number in range(1, most + 1):
            host = searching.within(number)
            if host is not None:
                return msgspec.structs.replace(found, moves=searching.proposed(), host=host)
    except SearchEnded:
        return msgspec.structs.replace(found, complete=False)
    return msgspec.structs.replace(found, complete=not searching.cut)


class _Search:
    """``cut``: whether some ways were left out."""

    def __init__(
        self,
        snapshot: MovingSnapshot,
        request: SchedulingRequest,
        movable: Sequence[MovableInstance],
        hosts: Sequence[int],
        time_limit: TimeLimit,
        decisions: int,
    ) -> None:
        self._snapshot = snapshot
        self._hosts = hosts
        self._time_limit = time_limit
        self._decisions = float(decisions)
        self._of_all_hosts = 1.0 + len(snapshot.table) // HOSTS_OF_A_DECISION
        self._request = request
        self._goal = _Blocked("", amounts_of(request))
        self._on: dict[int, list[MovableInstance]] = {}
        for each in sorted(movable, key=lambda each: each.uuid):
            self._on.setdefault(each.index, []).append(each)
        self._by_uuid = {each.uuid: each for each in movable}
        self._path: list[tuple[MovableInstance, int]] = []
        self._proposed: tuple[ProposedMove, ...] = ()
        self._known: dict[tuple[object, ...], bool] = {}
        self._targets_of: dict[tuple[object, ...], list[int]] = {}
        self._classes: dict[str, tuple[object, ...]] = {}
        self._lacks: dict[tuple[object, ...], Resources] = {}
        self._leaving: dict[tuple[object, ...], bool] = {}
        self._goals: dict[str, _Blocked] = {}
        self._in_vain: set[tuple[object, ...]] = set()
        self._pools_are_shared = bool(snapshot.fleet.sharing())
        self.cut = False

    def within(self, number: int) -> str | None:
        """Return the host of the request's last instance after at most so many moves; None: there is no such
        way."""
        group = self._request.spec.group
        together = group is not None and group.policy in (AFFINITY, SOFT_AFFINITY)
        anywhere = len(self._request.instances) > 1 or together
        for host in (None,) if anywhere else self._hosts:
            for _ in self._room(self._goal, host, number, frozenset()):
                name = self._proven()
                if name is not None:
                    return name
        return None

    def proposed(self) -> tuple[ProposedMove, ...]:
        """Return the moves of the way that was found."""
        return self._proposed

    def _proven(self) -> str | None:
        """Return the host of the request's last instance, decided on all hosts after the moves of the path;
        None if it is refused."""
        self._spend(self._of_all_hosts)
        table = self._snapshot.table
        name = self._snapshot.works(self._request_now(), None, None)
        if name is not None:
            self._proposed = tuple(
                ProposedMove(
                    instance=each.uuid,
                    source=host_name(table, each.index),
                    target=host_name(table, target),
                    cell=table.cells[table.cell.item(each.index)],
                    project_id=each.resident.project_id,
                    flavor=each.resident.flavor,
                )
                for each, target in self._path
            )
        return name

    # The search

    def _room(self, goal: _Blocked, host: int | None, number: int, locked: frozenset[str]) -> Iterator[int]:
        """Yield with room on a host for a goal, after at most ``number`` moves; yields their number.

        ``host``: None for any host. ``locked``: instances that must not move: they have moved, or are about
        to.
        """
        if self._fits(goal, host):
            yield 0
            return
        key = (host, self._state(), number)
        if goal is self._goal and key in self._in_vain:
            return
        leaving = self._in_the_way(goal, host, number, locked) if number else ()
        for each in leaving:
            if number == 1 and not self._fits(goal, host, (each,)):
                continue
            now = locked | {each.uuid}
            for used in self._leave(each, number, now):
                for more in self._room(goal, host, number - used, now | self._moved()):
                    yield used + more
        if goal is self._goal:
            # Whatever came of it was not a way for the request on all hosts either.
            self._in_vain.add(key)

    def _leave(self, moving: MovableInstance, number: int, locked: frozenset[str]) -> Iterator[int]:
        """Yield with an instance on another host, after at most ``number`` moves; yields their number."""
        direct = self._targets(moving)
        for target in direct:
            if self._may_move(moving, target):
                with self._on_path(moving, target) as moved:
                    if moved:
                        yield 1
        if number < 2:
            return
        goal = self._goal_of(moving)
        for target in self._hosts:
            if target == moving.index:
                continue
            for used in self._room(goal, target, number - 1, locked):
                if used:
                    with self._on_path(moving, target) as moved:
                        if moved:
                            yield used + 1

    def _in_the_way(
        self, goal: _Blocked, host: int | None, number: int, locked: frozenset[str]
    ) -> Sequence[MovableInstance]:
        """Return the instances of a host that may leave it for a goal, those first that free most of what is
        lacking; none if all of them would not do."""
        hosts = self._hosts if host is None else (host,)
        there = [each for index in hosts for each in self._on.get(index, ()) if each.uuid not in locked]
        if host is None:
            return there
        lacking = self._lacking(goal, host)
        there = [each for each in there if self._can_leave(each, number)]
        covered = {each.uuid: covered_by(each, lacking) for each in there}
        if not suffice([*covered.values()], lacking, number):
            return ()
        if not there or not self._fits(goal, host, there):
            return ()
        if number == 1:
            there = [each for each in there if covered[each.uuid] == lacking]
        return sorted(
            there,
            key=lambda each: -sum(covered[each.uuid][name] / amount for name, amount in lacking.items()),
        )

    def _lacking(self, goal: _Blocked, host: int) -> Resources:
        """Return the amounts by which a host's tree has too little for a goal.

        Nothing where pools are shared: another tree may have the rest.
        """
        if self._pools_are_shared:
            return {}
        key = (tuple(goal.amounts.items()), host, self._state())
        if key not in self._lacks:
            self._spend(SUMS)
            fleet, names = self._snapshot.fleet, [*goal.amounts]
            totals = fleet.totals_of_tree(names, fleet.row(self._snapshot.table.nodes[host]))
            lacking = {
                name: goal.amounts[name] - capacity + used
                for name, (capacity, used) in zip(names, totals, strict=True)
            }
            self._lacks[key] = {name: amount for name, amount in lacking.items() if amount > 0}
        return self._lacks[key]

    def _can_leave(self, moving: MovableInstance, number: int) -> bool:
        """Return whether an instance might leave its host with so many moves, its own among them.

        By amounts alone where another one would have to leave its target first.
        """
        key = (self._class_of(moving), moving.index, self._state(), number)
        if key not in self._leaving:
            self._leaving[key] = bool(self._targets(moving)) or (
                number > 1
                and any(
                    self._might_take(self._goal_of(moving), host, number - 1)
                    for host in self._hosts
                    if host != moving.index
                )
            )
        return self._leaving[key]

    def _might_take(self, goal: _Blocked, host: int, number: int) -> bool:
        lacking = self._lacking(goal, host)
        there = [each for each in self._on.get(host, ()) if self._can_leave(each, number)]
        return bool(there) and suffice([covered_by(each, lacking) for each in there], lacking, number)

    # Decisions

    def _fits(self, goal: _Blocked, host: int | None, without: Sequence[MovableInstance] = ()) -> bool:
        """Return whether a host takes a goal after the moves of the path, and without some instances."""
        if not without and host is not None and self._lacking(goal, host):
            return False
        key = (goal.name, host, self._state(), frozenset(each.uuid for each in without))
        if key not in self._known:
            self._spend(self._of_all_hosts if host is None else 1.0)
            with self._snapshot.without(*without):
                self._known[key] = self._decided(goal, host)
        return self._known[key]

    def _decided(self, goal: _Blocked, host: int | None) -> bool:
        if goal.moving is None:
            return self._snapshot.works(self._request_now(), None, host) is not None
        assert host is not None
        with self._snapshot.moved(goal.moving, host) as moved:
            return moved

    def _targets(self, moving: MovableInstance) -> list[int]:
        """Return the nodes that may take an instance as they are, best first."""
        key = (self._class_of(moving), self._state())
        if key not in self._targets_of:
            self._spend(self._of_all_hosts)
            self._targets_of[key] = self._allowed(moving)
        found = [target for target in self._targets_of[key] if target != moving.index]
        self.cut = self.cut or len(found) > MOST_TARGETS
        return found[:MOST_TARGETS]

    def _class_of(self, moving: MovableInstance) -> tuple[object, ...]:
        """Return a key that is equal for instances that may go to the same hosts, but for their own."""
        spec = moving.resident.spec
        if spec.group is not None or spec.scheduler_hints:
            return (moving.uuid,)
        if moving.uuid not in self._classes:
            table = self._snapshot.table
            cell, store = table.cell.item(moving.index), self._snapshot.store_of(moving)
            self._classes[moving.uuid] = (cell, store, msgspec.msgpack.encode(spec))
        return self._classes[moving.uuid]

    def _allowed(self, moving: MovableInstance) -> list[int]:
        """Return the best of the nodes that may take an instance, its own among them."""
        try:
            pool = self._snapshot.pool(self._snapshot.request_of(moving, anywhere=True))
            pool.ready()
            return [pool.index(host) for host in pool.best(MOST_TARGETS + 2)]
        except SchedulerError:
            return []

    def _may_move(self, moving: MovableInstance, target: int) -> bool:
        return self._fits(self._goal_of(moving), target)

    def _goal_of(self, moving: MovableInstance) -> _Blocked:
        if moving.uuid not in self._goals:
            amounts = amounts_of(self._snapshot.request_of(moving))
            self._goals[moving.uuid] = _Blocked(moving.uuid, amounts, moving)
        return self._goals[moving.uuid]

    def _request_now(self) -> SchedulingRequest:
        """Return the request after the moves of the path: its server group is no longer where they began."""
        spec, table = self._request.spec, self._snapshot.table
        group = spec.group
        if group is None or not group.hosts:
            return self._request
        hosts = [*group.hosts]
        for each, _ in self._path:
            source = table.hosts[each.index]
            if each.held.consumer.group == group.uuid and source in hosts:
                hosts.remove(source)
        group = msgspec.structs.replace(group, hosts=tuple(hosts))
        return msgspec.structs.replace(self._request, spec=msgspec.structs.replace(spec, group=group))

    def _on_path(self, moving: MovableInstance, target: int) -> "_Step":
        return _Step(self._snapshot, self._path, moving, target)

    def _moved(self) -> frozenset[str]:
        return frozenset(each.uuid for each, _ in self._path)

    def _state(self) -> frozenset[tuple[str, int]]:
        return frozenset((each.uuid, target) for each, target in self._path)

    def _spend(self, decisions: float) -> None:
        self._decisions -= decisions
        if self._decisions < 0 or self._time_limit.over():
            raise SearchEnded


class _Step:
    """A move of the path, for the time of a context."""

    def __init__(
        self,
        snapshot: MovingSnapshot,
        path: list[tuple[MovableInstance, int]],
        moving: MovableInstance,
        target: int,
    ) -> None:
        self._move = snapshot.moved(moving, target)
        self._path, self._step = path, (moving, target)

    def __enter__(self) -> bool:
        moved = self._move.__enter__()
        self._path.append(self._step)
        return moved

    def __exit__(self, *error: object) -> None:
        self._path.pop()
        self._move.__exit__(None, None, None)
