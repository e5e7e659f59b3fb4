"""Counterfactuals of a decision: the same decision without one of its conditions or weighers, really made."""

from collections.abc import Callable, Coroutine, Iterator, Sequence
from typing import Any, Literal, NamedTuple, TypeVar

import msgspec

from roost.fleet import Fleet
from roost.fleet.constraint import ANY_PROVIDER, MEMBER_OF, constraints_of
from roost.model.aggregate import AVAILABILITY_ZONE
from roost.model.folded_names import host_names
from roost.model.reasons import HostNames
from roost.model.record import Run
from roost.model.vocabulary import DISABLED_TRAIT
from roost.records import RunWithAttempts
from roost.scheduler.explain.phrases import with_aggregates
from roost.scheduler.explain.snapshot import host_name
from roost.scheduler.nodes.table import NodeTable
from roost.scheduler.pool.host_pool import OFFERED, HostPool
from roost.scheduler.replay.histories import FleetHistory, NodeHistory
from roost.scheduler.replay.recorded import NotReproducible
from roost.scheduler.replay.replay import DecisionReplay, Replayed
from roost.scheduler.request.changed import GROUP, Changes
from roost.scheduler.request.scheduling_request import SchedulingRequest
from roost.scheduler.selection.host_pools import HostPools

_ZONE_FILTER = "AvailabilityZoneFilter"
_STATE_FILTER = "ComputeFilter"

MOST_NAMED = 200
"""Most hosts that a counterfactual names of those that would be there."""

T = TypeVar("T")

LeftOutKind = Literal["constraint", "place", "filter", "group", "weigher"]


class ChosenHost(msgspec.Struct, frozen=True):
    """The host of an instance: its name, the uuid of its root provider, and its weight."""

    name: str
    node: str
    weight: float


class Counterfactual(msgspec.Struct, frozen=True, kw_only=True):
    """A decision as it would have been without one thing.

    ``text``: the thing in words. ``without``: the names by which it is left out, see `Changes`. ``removed``:
    the hosts that it removed in its turn, None if the record does not tell. ``hosts``: where the instances
    would be, in their order; empty if none were placed. ``refusal``: why not all were. ``left``: how many
    hosts could be used. ``came``: the hosts that could be used in addition, ``number_came`` of them.
    ``same``: the instances are on the same hosts, or on none as well.
    """

    kind: LeftOutKind
    text: str
    without: tuple[str, ...]
    removed: int | None = None
    hosts: tuple[ChosenHost, ...] = ()
    refusal: str | None = None
    left: int = 0
    came: HostNames = HostNames()
    number_came: int = 0
    same: bool = True


class Redecided(msgspec.Struct, frozen=True, kw_only=True):
    """A decision made again, as it was and without each of its conditions.

    ``same``: the decision as it was is the recorded one; ``differences`` name the parts that differ.
    ``notes``: reasons why it may differ. ``left``: how many hosts could be used. ``complete``: False if the
    time was over before all were made.
    """

    same: bool
    differences: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    left: int = 0
    counterfactuals: tuple[Counterfactual, ...] = ()
    complete: bool = True


class WatchedPools(HostPools):
    """Host pools that note the hosts which a request could use when it was decided last."""

    usable: tuple[int, ...] = ()

    def of_fleet(self, fleet: Fleet, request: SchedulingRequest) -> HostPool:
        """See `HostPools`."""
        pool = self.fresh_of_fleet(fleet, request)
        pool.ready()
        self.usable = tuple(sorted(pool.index(host) for host in pool.best(len(self.table) + 1)))
        return super().of_fleet(fleet, request)


def redecided(
    fleet: FleetHistory, nodes: NodeHistory, recorded: RunWithAttempts, is_over: Callable[[], bool]
) -> Redecided:
    """Make a decision again, and without each of its conditions, until ``is_over`` returns True.

    The histories must never wait, see `roost.scheduler.replay.histories`.

    Raises:
        NotReproducible: the decision cannot be made again.
    """
    if recorded.run.told:
        raise NotReproducible("it was decided over HTTP: roost replay-decision makes it again")
    replay = DecisionReplay(fleet, nodes, WatchedPools)
    as_it_was, usable = _made(replay, recorded, Changes())
    table = _table(replay)
    before = _hosts(as_it_was)
    found: list[Counterfactual] = []
    complete = True
    for each in left_out(recorded.run, table):
        if is_over():
            complete = False
            break
        made, there = _made(replay, recorded, Changes(each.without))
        hosts, came = _hosts(made), sorted(set(there) - set(usable))
        named = [host_name(table, index) for index in came[:MOST_NAMED]]
        found.append(
            Counterfactual(
                kind=each.kind,
                text=each.text,
                without=each.without,
                removed=each.removed,
                hosts=hosts,
                refusal=made.outcome.refusal,
                left=len(there),
                came=host_names(named, len(came) - len(named)),
                number_came=len(came),
                same=[host.node for host in hosts] == [host.node for host in before],
            )
        )
    return Redecided(
        same=not as_it_was.differences,
        differences=tuple(each.what for each in as_it_was.differences),
        notes=tuple(as_it_was.notes),
        left=len(usable),
        counterfactuals=tuple(found),
        complete=complete,
    )


class LeftOut(NamedTuple):
    """One thing that a decision is made without; the fields are those of `Counterfactual`."""

    kind: LeftOutKind
    text: str
    without: tuple[str, ...]
    removed: int | None = None


def left_out(run: Run, table: NodeTable) -> Iterator[LeftOut]:
    """Yield what a run is decided without, each in its turn.

    A filter that excludes hosts for the same cause as a constraint goes with it. Filters that removed no
    host, and weighers that rated all hosts alike, changed nothing.
    """
    gone: set[str] = set()
    for each in _constraints(run, table):
        gone.update(each.without)
        yield each
    filters = {each.name for each in run.settings.filters} if run.settings is not None else set()
    for name, removed in _removed(run).items():
        if name not in gone and (removed or len(run.instances) > 1):
            yield LeftOut("filter" if name in filters else "place", name, (name,), removed)
    if run.spec.get("group") is not None:
        yield LeftOut("group", "the server group", (GROUP,))
    for name in dict.fromkeys(one.weigher for each in run.weighed for one in each.numbers):
        yield LeftOut("weigher", name, (name,))


def _constraints(run: Run, table: NodeTable) -> Iterator[LeftOut]:
    constraints = [] if run.asked is None else constraints_of(run.asked.query)
    amounts = sum(each.is_amount for each in constraints)
    zone = run.spec.get("availability_zone")
    of_zone = table.aggregates_with(AVAILABILITY_ZONE, str(zone)) if zone is not None else frozenset()
    for each in constraints:
        name = str(each)
        if each.kind == ANY_PROVIDER or (each.is_amount and amounts == 1):
            continue
        if each.kind == MEMBER_OF and frozenset(each.names) == of_zone:
            yield LeftOut("constraint", f"the availability zone {zone}", (name, _ZONE_FILTER))
        elif each.names == (DISABLED_TRAIT,):
            yield LeftOut("constraint", "being enabled and up", (name, _STATE_FILTER))
        else:
            yield LeftOut("constraint", str(with_aggregates(each, table)), (name,))


def _removed(run: Run) -> dict[str, int]:
    """Return how many hosts each step of a run removed, of those for the first instance."""
    removed: dict[str, int] = {}
    before: int | None = None
    for step in run.steps:
        if before is not None and step.name != OFFERED:
            removed.setdefault(step.name, max(0, before - step.left))
        before = step.left
    return removed


def _made(
    replay: DecisionReplay, recorded: RunWithAttempts, changes: Changes
) -> tuple[Replayed, Sequence[int]]:
    made: Replayed = finished(replay.again(recorded, changes))
    pools = replay.pools
    return made, pools.usable if isinstance(pools, WatchedPools) else ()


def _table(replay: DecisionReplay) -> NodeTable:
    if replay.pools is None:
        raise NotReproducible("nothing was decided")
    return replay.pools.table


def _hosts(made: Replayed) -> tuple[ChosenHost, ...]:
    return tuple(
        ChosenHost(each.selected.host, each.selected.node, each.selected.weight)
        for each in made.outcome.destinations
    )


def finished(coroutine: Coroutine[Any, Any, T]) -> T:
    """Return the result of a coroutine that never waits.

    Raises:
        RuntimeError: it does wait.
    """
    try:
        coroutine.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    coroutine.close()
    raise RuntimeError("a coroutine that must not wait waits")
