"""Makes recorded decisions again: the same command on the same state, without a commit."""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import msgspec

from roost.fleet import Fleet, FleetError
from roost.ledger import Held, State
from roost.ledger.past_fleet import HistoryMissing
from roost.model.change import AllocationsChanged, Change
from roost.model.record import Run
from roost.model.spec import RequestSpec
from roost.placement.errors import PlacementError
from roost.records import RunWithAttempts
from roost.scheduler.errors import BadOptions, SchedulerError
from roost.scheduler.gateways.http import HttpGateway
from roost.scheduler.gateways.local import Decide
from roost.scheduler.nodes.journal import PastTable
from roost.scheduler.nodes.table import NodeTable
from roost.scheduler.options import SchedulerOptions
from roost.scheduler.plugins.plugins import Plugins
from roost.scheduler.replay.histories import FleetHistory, NodeHistory
from roost.scheduler.replay.kept_consumers import kept_consumers
from roost.scheduler.replay.past_placement import Diverged, PastPlacement
from roost.scheduler.replay.recorded import (
    DecisionDifference,
    NotReproducible,
    alternates_used,
    differences,
    hides_something,
    options_of,
    other_versions,
    request_of,
)
from roost.scheduler.request.changed import (
    Changes,
    changed_options,
    changed_queries,
    changed_spec,
    plugins_of,
)
from roost.scheduler.request.query import placement_queries
from roost.scheduler.request.rebuild import NOTHING, is_rebuild, judge_rebuild
from roost.scheduler.request.request_filters.narrowed_query import FilterFacts
from roost.scheduler.request.scheduling_request import HostRequest, PlacementQueries, SchedulingRequest
from roost.scheduler.run_records import as_claimed
from roost.scheduler.selection.host_pools import HostPools
from roost.scheduler.selection.outcome import Outcome
from roost.state.api_database.node_journal import JournalMissing

MOST_TABLES = 4
"""Most node tables that are kept between decisions."""

TIME = "max_run_seconds="
"""The text in the refusal of a run that exceeded its time limit."""


class Replayed(NamedTuple):
    """A decision made again.

    ``differences``: to the record; empty if something was changed on purpose. ``notes``: reasons why the
    decision may differ, each a sentence.
    """

    run: Run
    outcome: Outcome
    differences: list[DecisionDifference]
    notes: list[str]


class DecisionReplay:
    """Makes decisions again on the histories of one deployment.

    ``fleet`` is moved between versions and changed: it must not be shared. Runs in order of their versions
    are the quickest.
    """

    def __init__(
        self,
        fleet: FleetHistory,
        journals: NodeHistory,
        pools: Callable[[NodeTable, SchedulerOptions, Plugins], HostPools] = HostPools,
    ) -> None:
        """``pools``: makes the host pools of runs."""
        self._fleet = fleet
        self._newest = fleet.version
        self._journals = journals
        self._tables: OrderedDict[tuple[str, str], PastTable] = OrderedDict()
        self._plugins: dict[str, tuple[SchedulerOptions, Plugins]] = {}
        self._make_pools = pools
        self._pools: HostPools | None = None

    @property
    def pools(self) -> HostPools | None:
        """The host pools of the decision that was made last."""
        return self._pools

    async def again(self, recorded: RunWithAttempts, changes: Changes = Changes()) -> Replayed:  # noqa: B008
        """Make a decision again, with ``changes`` if there are any.

        Raises:
            NotReproducible: the record shows that it cannot be made again.
            NoSuchConstraint: the request lacks a constraint that is to be left out.
        """
        recorded = _as_claimed(recorded)
        run = recorded.run
        spec = changed_spec(request_of(run), changes)
        options, plugins = self._decided_with(run, changes)
        if not changes.now:
            _check(run, spec)
        try:
            fleet, ahead, held = await self._state(run, changes)
            table, asked = await self._asked(run, spec, options, fleet, changes)
        except (HistoryMissing, JournalMissing) as error:
            raise NotReproducible(str(error)) from error
        wanted = HostRequest(
            spec,
            run.instances,
            run.num_alternates,
            run.min_count,
            run.generations,
            run.id,
            # On today's state nobody knows what the instances hold. It counts as used, if they still hold it.
            beside={} if changes.now else run.beside,
            held_by=run.held_by,
            handed={} if changes.now else run.handed,
            of_instances=run.of_instances,
        )
        if changes.now:
            migrations = {each: handed.consumer for each, handed in run.handed.items()}
            wanted = msgspec.structs.replace(wanted, held_by={**run.held_by, **migrations})
        request = SchedulingRequest.of(wanted, asked, options, run.started_at, seed=run.seed or 0)
        pools = self._pools_of(table, options, plugins)
        unlike: list[DecisionDifference] = []
        try:
            if run.told and changes == Changes():
                if run.generations:
                    raise NotReproducible("the run replaced claims over HTTP, of which no version tells")
                outcome = await self._decided_over_http(run, request, pools)
            else:
                outcome = _decided(request, pools, fleet, ahead, held)
        except (SchedulerError, PlacementError) as error:
            outcome = Outcome((), (), (), str(error))
        except Diverged as error:
            outcome = Outcome((), (), (), str(error))
            unlike = [DecisionDifference("calls of placement", error.recorded, error.again)]
        except (HistoryMissing, JournalMissing) as error:
            raise NotReproducible(str(error)) from error
        notes = [] if run.settings is None else other_versions(run.settings, pools)
        if hides_something(run):
            notes.append("the record hides parts of the request that look like secrets")
        if later := alternates_used(run, recorded.attempts):
            notes.append(f"{later} attempts on alternates came after the run, and are not decided again")
        if changes == Changes() and not unlike:
            unlike = differences(run, recorded.attempts, outcome)
        return Replayed(run, outcome, unlike, notes)

    def _decided_with(self, run: Run, changes: Changes) -> tuple[SchedulerOptions, Plugins]:
        if run.settings is None:
            options_of(None)
        digest = "" if run.settings is None else run.settings.digest
        key = f"{digest} {changes.without}"
        if key not in self._plugins:
            options = changed_options(options_of(run.settings), changes)
            try:
                self._plugins[key] = options, Plugins.enabled(options)
            except BadOptions as error:
                raise NotReproducible(f"the options of the run cannot be used: {error}") from error
        return self._plugins[key]

    def _pools_of(self, table: NodeTable, options: SchedulerOptions, plugins: Plugins) -> HostPools:
        """Return the host pools of a run; their cache serves runs with the same options one after another."""
        pools = self._pools
        if pools is None or pools.table is not table or pools.plugins is not plugins:
            pools = self._pools = self._make_pools(table, options, plugins)
        return pools

    async def _state(self, run: Run, changes: Changes) -> tuple[Fleet, list[Change], dict[str, Held]]:
        """Return the fleet that the run was decided on, the changes before it in its batch, and the
        allocations of instances that the run replaced or kept."""
        if changes.now:
            return await self._fleet.at(self._newest), [], {}
        if run.told:
            # A changed request is decided on the version of the run's first response, in one step.
            fleet = await self._fleet.at(_first_version(run))
            return fleet, [], kept_consumers(fleet, run)
        if run.version is None:
            return await self._fleet.at(self._fleet.version), [], {}
        fleet = await self._fleet.at(run.version)
        after = await self._fleet.next_changes(run.version)
        if run.position and (after is None or len(after) < run.position):
            raise HistoryMissing(
                f"commit {run.version + 1} has no {run.position} changes: the ledger was restored since"
            )
        if run.destinations:
            made = {change.consumer for change in after or () if isinstance(change, AllocationsChanged)}
            if run.destinations[0].instance not in made:
                raise HistoryMissing(
                    f"commit {run.version + 1} does not have the claims of the run: the ledger was restored "
                    "from a backup since, or its commits are of another database"
                )
        position = run.position or 0
        held = {**kept_consumers(fleet, run), **_replaced(run, list(after or ())[position:])}
        return fleet, list(after or ())[:position], held

    async def _asked(
        self, run: Run, spec: RequestSpec, options: SchedulerOptions, fleet: Fleet, changes: Changes
    ) -> tuple[NodeTable, PlacementQueries]:
        """Return the node table that the run was decided on, and its queries to placement."""
        # ``options`` have them no more.
        plugins = plugins_of(options_of(run.settings)) if changes.without else ()
        if changes.now:
            newest = await self._journals.newest()
            if newest is None:
                raise JournalMissing("there is no node journal")
            table = await self._table(*newest)
            return table, changed_queries(
                _queries(spec, table, options, fleet), request_of(run), plugins, changes
            )
        if run.journal is None or run.node_version is None or run.asked is None:
            raise JournalMissing("the record names no version of a node journal")
        if is_rebuild(spec):
            return await self._table(run.journal, run.node_version), NOTHING
        asked = PlacementQueries(run.asked.query, run.asked.fallbacks, run.asked.limit)
        if changes.flavor is not None or _names_places(spec, asked):
            # Runs overlap: the queries of this run may be older than the last decision of another one. With a
            # second table for queries, no table need go back.
            first = run.node_version if run.asked.node_version is None else run.asked.node_version
            anew = _queries(spec, await self._table(run.journal, first, "asked"), options, fleet)
            places = anew.places
            asked = anew if changes.flavor is not None else msgspec.structs.replace(asked, places=places)
        asked = changed_queries(asked, request_of(run), plugins, changes)
        return await self._table(run.journal, run.node_version), asked

    async def _decided_over_http(self, run: Run, request: SchedulingRequest, pools: HostPools) -> Outcome:
        """Decide with the recorded responses of placement. Raises: `Diverged`."""
        assert run.journal is not None
        key = run.journal, "decided"
        past = self._tables[key]

        async def arrive(version: int | None) -> None:
            await past.at(run.node_version or 0 if version is None else version)

        kept = kept_consumers(await self._fleet.at(_first_version(run)), run)
        placement = PastPlacement(self._fleet, run.told, run.started_at, arrive, kept)
        try:
            with pools.table.reading():
                decided = await HttpGateway(placement, pools).decide(request)
            placement.end()
        except FleetError as error:
            raise NotReproducible(f"the history contradicts itself: {error}") from error
        finally:
            # The table has moved on with the run, whose own claims are in the journal as well.
            del self._tables[key]
        return decided.outcome

    async def _table(self, journal: str, version: int, use: str = "decided") -> NodeTable:
        past = self._tables.pop((journal, use), None) or PastTable(self._journals, journal)
        self._tables[journal, use] = past
        if len(self._tables) > MOST_TABLES:
            self._tables.popitem(last=False)
        return await past.at(version)


def _replaced(run: Run, made: list[Change]) -> dict[str, Held]:
    """Return the allocations that a run replaced, by instance, from the changes of its commit.

    Raises: `NotReproducible` if the commit lacks them, as for a run that was refused.
    """
    held: dict[str, Held] = {}
    for change in made:
        if isinstance(change, AllocationsChanged) and change.before is not None:
            held.setdefault(change.consumer, Held(change.before, change.held))
    missing = sorted(run.generations.keys() - held.keys())
    if missing:
        raise NotReproducible(f"what {missing[0]} held is kept nowhere: the run would have replaced it")
    return {instance: held[instance] for instance in run.generations}


def in_order(runs: Iterable[RunWithAttempts]) -> list[RunWithAttempts]:
    """Return runs in the order in which they are made again the quickest."""
    return sorted(runs, key=lambda each: (_first_version(each.run), each.run.position or 0))


def _as_claimed(recorded: RunWithAttempts) -> RunWithAttempts:
    """Return a recorded run as it was decided: by the consumers of its instances."""
    if not recorded.run.of_instances:
        return recorded
    run, attempts = as_claimed(recorded.run, recorded.attempts)
    return RunWithAttempts(run, tuple(attempts))


def _first_version(run: Run) -> int:
    """Return the version of the ledger that a run began on; 0 if the record names none."""
    told = next((version for each in run.told for version in each.versions), 0)
    return told if run.version is None else run.version


def _check(run: Run, spec: RequestSpec) -> None:
    """Raise `NotReproducible` if the record shows that the decision cannot be made again."""
    if run.refusal is not None and TIME in run.refusal:
        raise NotReproducible(f"the run ended by the clock, which is not kept: {run.refusal}")
    if is_rebuild(spec) and run.node_version is not None:
        return
    if run.version is None and run.refusal is not None and not run.steps:
        raise NotReproducible(f"no decision was made: {run.refusal}")
    if run.version is None and not run.told:
        raise NotReproducible(
            "the record names no version of a ledger: hosts came from the cells' databases, or over HTTP "
            "from a placement service that names none, or from responses that were kept (host_list_seconds)"
        )


def _names_places(spec: RequestSpec, asked: PlacementQueries) -> bool:
    """Return whether the nodes that a run may use depend on the node table at the time of its queries."""
    named = spec.requested_destination or spec.retried_hosts or spec.force_hosts or spec.force_nodes
    return bool(named) or all(group.granular for group in asked.query.groups)


def _queries(
    spec: RequestSpec, table: NodeTable, options: SchedulerOptions, fleet: Fleet
) -> PlacementQueries:
    segments = {each for network in spec.requested_networks for each in network.segments}
    aggregates: Mapping[str, frozenset[str]] = {
        each: frozenset(fleet.aggregates_of(fleet.row(each)) if each in fleet else ()) for each in segments
    }
    try:
        return placement_queries(spec, FilterFacts(table, options, aggregates=aggregates))
    except SchedulerError as error:
        raise NotReproducible(f"the request cannot be asked for: {error}") from error


def _decided(
    request: SchedulingRequest,
    pools: HostPools,
    fleet: Fleet,
    ahead: list[Change],
    held: dict[str, Held],
) -> Outcome:
    """Decide, and leave fleet and table as they were."""
    if is_rebuild(request.spec):
        try:
            return judge_rebuild(request, pools)
        finally:
            pools.table.release(*request.instances)
    state = State(fleet, dict(held), request.now)
    try:
        for change in ahead:
            state.apply(change)
        state.name(request.consumers)
        return Decide(request, pools).run(state).outcome
    except FleetError as error:
        raise NotReproducible(f"the history contradicts itself: {error}") from error
    finally:
        state.take_back(0)
        pools.table.release(*request.instances)
