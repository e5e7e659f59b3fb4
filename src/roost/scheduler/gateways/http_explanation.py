"""Explains refusals of a placement service over HTTP by repeating the query with one condition less.

The state of placement is not in this process, so there is no funnel of its constraints. The queries are: the
query as it is, then without one constraint after another, and each lower amount that hosts have room for.
Filters and places are judged on the node table, as in a run. Only changes with which the request was really
decided are reported. Nothing is claimed.
"""

import asyncio
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from msgspec.structs import replace

from roost.fleet.constraint import RESOURCES, Constraint, constraints_of, replaced, with_amount, without
from roost.model.reasons import Miss, Reasons, Relaxation, Stage, StageKind, WeighedHost
from roost.model.request import CandidateQuery
from roost.placement.errors import BadRequest
from roost.scheduler.candidates.cached_answers import CachedAnswers
from roost.scheduler.candidates.fetched_candidates import FetchedCandidates
from roost.scheduler.candidates.unfilled_placement import filling
from roost.scheduler.errors import CannotWeigh
from roost.scheduler.explain.phrases import without_constraint
from roost.scheduler.explain.relaxations import flavor_with
from roost.scheduler.explain.sentence import way_out
from roost.scheduler.explain.snapshot import host_name
from roost.scheduler.explain.survey import TimeLimit
from roost.scheduler.filters.server_group_affinity import ServerGroupAffinityFilter
from roost.scheduler.filters.server_group_anti_affinity import ServerGroupAntiAffinityFilter
from roost.scheduler.gateways.asked_candidates import AskedCandidates
from roost.scheduler.gateways.error_translation import translated
from roost.scheduler.gateways.foreign_groups import Members, Sleep, look_for_members
from roost.scheduler.gateways.missing_providers import nodes_without_provider
from roost.scheduler.gateways.node_assignments import assignments_for
from roost.scheduler.gateways.recording_placement import RunPlacement
from roost.scheduler.plugins.plugin_calls import ask_key
from roost.scheduler.plugins.plugins import Filter
from roost.scheduler.pool.fresh_pool import FreshPool
from roost.scheduler.pool.group_members import progress_at_start
from roost.scheduler.pool.host_pool import KNOWN, OFFERED
from roost.scheduler.request.scheduling_request import GroupPlacement, SchedulingRequest
from roost.scheduler.selection.host_pools import HostPools

SECONDS = 2.0
"""Seconds after which no further query is sent for one explanation."""

MOST_QUERIES = 24
"""Queries of one explanation at most, in addition to the one of the request."""

MOST_CANDIDATES = 100
"""Candidates that a changed query asks for."""

MOST_FITTED = 100
"""Hosts that pass all filters and are checked for a remaining candidate."""

MOST_WAITING = 16
"""Refusals that wait for their explanation; further ones keep the plain reason."""

MOST_MISSES = 5
MOST_RELAXATIONS = 5
MOST_WEIGHED = 3
UNMEASURED = 0.5

TAKEN = "room that the other instances have taken"
"""The name of the stage of hosts that other instances of the request have filled."""

QUERY = "everything that placement is asked for"
"""The name of the stage of the whole query."""


class HttpExplanations:
    """Explains refusals one after another. ``members`` and ``sleep``: as of the gateway."""

    def __init__(self, placement: RunPlacement, pools: HostPools, members: Members, sleep: Sleep) -> None:
        self._pools = pools
        self._placement = placement
        self._members = members
        self._sleep = sleep
        self._turn = asyncio.Lock()
        self._waiting = 0

    async def explain(self, request: SchedulingRequest, placed: int) -> Reasons | None:
        """Return why the instance after the first ``placed`` ones is refused. None if too many wait.

        Raises: as a run.
        """
        if self._waiting >= MOST_WAITING:
            return None
        self._waiting += 1
        try:
            async with self._turn:
                group = request.spec.group
                claims, _ = await look_for_members(self._placement, group, self._members, self._sleep)
                progress = progress_at_start(request, self._pools.table, claims=claims)
                return await _Explanation(self._placement, request, self._pools, progress).reasons(placed)
        finally:
            self._waiting -= 1


class _Judged(NamedTuple):
    """The hosts of an answer after filtering: the steps, and the hosts that fit, best first.

    ``stages`` and ``left`` together make up all known hosts.
    """

    pool: FreshPool
    source: FetchedCandidates
    stages: tuple[Stage, ...]
    left: int
    fitting: list[int]


class _Explanation:
    def __init__(
        self,
        placement: RunPlacement,
        request: SchedulingRequest,
        pools: HostPools,
        progress: GroupPlacement,
    ) -> None:
        self._placement = placement
        self._request = replace(request, options=replace(request.options, host_list_seconds=0.0))
        self._pools = pools
        self._table = pools.table
        self._progress = progress
        self._clock = TimeLimit(SECONDS)
        self._queries = 0
        self._complete = True
        self._all_asked = True

    async def reasons(self, placed: int) -> Reasons:
        request, table = self._request, self._table
        candidates = AskedCandidates(self._placement, request, table, CachedAnswers())
        answer = await candidates.fetched()
        judged = await self._judged(request, answer)
        while not judged.fitting and not self._clock.over() and await candidates.read_on():
            answer = await candidates.fetched()
            judged = await self._judged(request, answer)
        wanted, more = len(request.instances), 0
        if judged.fitting and placed + 1 < wanted:
            more = _placed(judged, wanted - placed)
            if placed + more < wanted:
                # The answer is now without the amounts of these.
                judged = await self._judged(request, answer)
        placed += more
        found = Reasons(
            sentence="",
            public="",
            node_version=table.version,
            placed=placed,
            query=tuple(map(str, constraints_of(request.query))),
            hosts=len(table),
            stages=judged.stages,
            left=judged.left,
        )
        if judged.fitting:
            return replace(self._fits(found, judged), placed=wanted)
        misses, relaxations = await self._changes(judged, among_others=more > 0)
        if more and placed == more:
            relaxations = (*relaxations, _fewer(wanted, placed))
        sentence, public = await self._sentences(judged, misses)
        if candidates.bound is not None:
            sentence += f"; more candidates are not read: {candidates.bound} is met"
        first = f"only {placed} of {wanted} instances fit: " if placed else ""
        end = way_out(relaxations)
        return replace(
            found,
            sentence=first + sentence + end,
            public=first + public + end,
            misses=misses,
            relaxations=relaxations,
            complete=self._complete,
        )

    def _fits(self, found: Reasons, judged: _Judged) -> Reasons:
        pool, table = judged.pool, self._table
        weighed = tuple(
            WeighedHost(host_name(table, pool.index(host)), pool.weight(host), pool.numbers(host)())
            for host in judged.fitting[:MOST_WEIGHED]
        )
        number = "1 host" if judged.left == 1 else f"{judged.left} hosts"
        sentence = f"it fits: {number} may be used, and {weighed[0].host} is the best"
        return replace(found, sentence=sentence, public="it fits", weighed=weighed)

    async def _judged(
        self, request: SchedulingRequest, answer: FetchedCandidates, filters: Sequence[Filter] | None = None
    ) -> _Judged:
        """Filter and weigh the hosts of an answer, and find those with a candidate left."""
        table, pools = self._table, self._pools
        chosen = pools.plugins.filters if filters is None else filters
        assigned = await assignments_for(self._placement, request, pools, answer.index)
        source = answer.beside(assigned.on)
        pool = pools.of_source(source, request, self._progress, chosen)
        stages, left = list[Stage](), len(table)
        places = {place.step for place in request.places}
        names = {each.name for each in chosen}
        for step in pool.ready():
            if step.name == KNOWN:
                continue
            kind: StageKind = "query" if step.name == OFFERED else "filter" if step.name in names else "place"
            if step.name in places:
                kind = "place"
            stages.append(
                Stage(kind=kind, name=QUERY if kind == "query" else step.name, hosts=left - step.left)
            )
            left = step.left
        best = list(pool.best(MOST_FITTED)) if left else []
        fitting = [host for host in best if next(pool.candidates(host), None) is not None]
        if len(fitting) < len(best):
            name = " or ".join(self._narrowing(request, chosen)) or TAKEN
            stages.append(Stage(kind="candidate", name=name, hosts=len(best) - len(fitting)))
            left -= len(best) - len(fitting)
        return _Judged(pool, source, tuple(stages), left, fitting)

    def _narrowing(self, request: SchedulingRequest, filters: Sequence[Filter]) -> Iterator[str]:
        for each in filters:
            if each.narrow is not None and ask_key(each, request) is not None:
                yield each.name

    async def _changes(
        self, judged: _Judged, *, among_others: bool
    ) -> tuple[tuple[Miss, ...], tuple[Relaxation, ...]]:
        """Return hosts that one condition alone excludes, and changes with which the request fits.

        ``among_others``: other instances of the request are placed on the answer, unknown to placement. No
        further query is sent then.
        """
        misses, relaxations = list[Miss](), list[Relaxation]()
        for each in self._pools.plugins.filters:
            if isinstance(each.plugin, ServerGroupAffinityFilter | ServerGroupAntiAffinityFilter):
                continue  # Claims are judged by these whether or not the filter is asked.
            if not any(stage.name == each.name and stage.hosts for stage in judged.stages):
                continue
            left = [other for other in self._pools.plugins.filters if other is not each]
            without_it = await self._changed(self._request, judged.source, left)
            if without_it is not None and without_it.fitting:
                name = self._name(without_it, without_it.fitting[0])
                text = f"without {each.name}"
                relaxations.append(
                    Relaxation(kind="filter", name=each.name, text=text, distance=UNMEASURED, host=name)
                )
        for constraint in () if among_others else constraints_of(self._request.query):
            if constraint.is_amount:
                found, change = await self._lower(constraint)
            else:
                found, change = await self._without(constraint)
            misses += found
            relaxations += [] if change is None else [change]
        misses.sort(key=lambda miss: miss.distance)
        relaxations.sort(key=lambda each: each.distance)
        return tuple(misses[:MOST_MISSES]), tuple(relaxations[:MOST_RELAXATIONS])

    async def _without(self, constraint: Constraint) -> tuple[list[Miss], Relaxation | None]:
        judged = await self._asked(without(self._request.query, constraint))
        if judged is None or not judged.fitting:
            return [], None
        names = [self._name(judged, host) for host in judged.fitting[:MOST_MISSES]]
        text = f"does not meet '{constraint}'"
        misses = [
            Miss(host=name, kind="query", name=str(constraint), text=text, distance=UNMEASURED)
            for name in names
        ]
        return misses, Relaxation(
            kind="constraint",
            name=str(constraint),
            text=without_constraint(constraint),
            distance=UNMEASURED,
            host=names[0],
            group=constraint.group,
        )

    async def _lower(self, constraint: Constraint) -> tuple[list[Miss], Relaxation | None]:
        """Query one unit, read how much the hosts have free, and query the most of it.

        If no host has a unit, or the amount may be split, hosts that would serve without it are misses; a
        request without it is no change.
        """
        name, wanted = constraint.names[0], constraint.amount
        query = self._request.query
        whole = constraint.kind == RESOURCES and wanted > 1
        judged = await self._asked(replaced(query, constraint, name)) if whole else None
        if judged is None or not judged.fitting:
            found, _ = await self._without(constraint)
            return [replace(miss, distance=1.0) for miss in found], None
        misses = []
        for host in judged.fitting:
            free = _free(judged, host, constraint)
            if free < wanted:
                misses.append(
                    Miss(
                        host=self._name(judged, host),
                        kind="query",
                        name=str(constraint),
                        text=f"has {free} of the {wanted} {name} wanted",
                        distance=round((wanted - free) / wanted, 4),
                        resource_class=name,
                        wanted=wanted,
                        free=free,
                    )
                )
        misses.sort(key=lambda miss: miss.distance)
        most = max((miss.free or 0 for miss in misses), default=0)
        if not most:
            return [], None
        spec = self._request.spec
        lower = replace(self._request, spec=replace(spec, flavor=flavor_with(spec, constraint, most)))
        fits = await self._asked(with_amount(query, constraint, most), lower)
        if fits is None or not fits.fitting:
            return misses, None
        group = f" in group {constraint.group}" if constraint.group else ""
        return misses, Relaxation(
            kind="amount",
            name=str(constraint),
            text=f"{most} {name} instead of {wanted}{group}",
            distance=round((wanted - most) / wanted, 4),
            host=self._name(fits, fits.fitting[0]),
            group=constraint.group,
            before=wanted,
            after=most,
        )

    async def _asked(self, query: CandidateQuery, request: SchedulingRequest | None = None) -> _Judged | None:
        """Send another query; None if it cannot be sent, or if no more may be."""
        if self._queries == MOST_QUERIES or self._clock.over():
            self._complete = False
            return None
        self._queries += 1
        try:
            requests, summaries = await translated(self._placement.candidates(query, MOST_CANDIDATES))
        except BadRequest:
            self._all_asked = False  # Such as a query without any constraint.
            return None
        changed = replace(request or self._request, query=query, fallbacks=())
        return await self._changed(changed, FetchedCandidates(requests, summaries, self._table))

    async def _changed(
        self, request: SchedulingRequest, answer: FetchedCandidates, filters: Sequence[Filter] | None = None
    ) -> _Judged | None:
        """As `_judged`, for a changed request; None if a host without a weight would fail it."""
        try:
            return await self._judged(request, answer, filters)
        except CannotWeigh:
            return None

    async def _sentences(self, judged: _Judged, misses: Sequence[Miss]) -> tuple[str, str]:
        known = len(self._table)
        if not known:
            return "no host is known", "no host is there"
        if not len(judged.source.index):
            missing, number = await nodes_without_provider(self._placement, self._table)
            if missing:
                return filling(missing, number), "no host is there"
        left = known
        for stage in judged.stages:
            before, left = left, left - stage.hosts
            if left:
                continue
            closest = f"; the closest, {misses[0].host}, {misses[0].text}" if misses else ""
            if stage.kind == "query":
                every = self._complete and self._all_asked and not misses
                alone = "; no single part of it is the only reason" if every else ""
                return (
                    f"placement has no candidates for it on any of {known} hosts{closest}{alone}",
                    "no host has room for it with all that is asked for",
                )
            hosts = f"{before} of {known} hosts have candidates in placement; "
            if stage.name == TAKEN:
                taken = "has room beside the other instances"
                return f"{hosts}none of these {taken}", f"no host {taken}"
            if stage.kind == "candidate":
                return f"{hosts}none of these has what {stage.name} looks for", f"no host passes {stage.name}"
            if stage.kind == "place":
                text = f"is left after {stage.name}"
                return f"{hosts}none of these {text}", f"no host {text}"
            return f"{hosts}none of these passes {stage.name}", f"no host passes {stage.name}"
        return "every claim was refused", "a limit of the scheduler was met before all hosts were tried"

    def _name(self, judged: _Judged, host: int) -> str:
        return host_name(self._table, judged.pool.index(host))


def _placed(judged: _Judged, most: int) -> int:
    """Return how many instances fit together, ``most`` at most, and take them off the answer."""
    pool = judged.pool
    for number in range(most):
        if number:
            pool.ready()
        for host in pool.best(MOST_FITTED):
            candidate = next(pool.candidates(host), None)
            if candidate is not None:
                pool.claimed(host, candidate)
                break
            pool.drop(host)
        else:
            return number
    return most


def _fewer(wanted: int, placed: int) -> Relaxation:
    instances = "instance" if placed == 1 else "instances"
    return Relaxation(
        kind="count",
        name="instances",
        text=f"{placed} {instances} instead of {wanted}",
        distance=round((wanted - placed) / wanted, 4),
        host="",
        before=wanted,
        after=placed,
    )


def _free(judged: _Judged, host: int, constraint: Constraint) -> int:
    """Return the most that any provider which may serve a constraint on a host has free."""
    name = constraint.names[0]
    found = 0
    for candidate in islice(judged.pool.candidates(host), MOST_CANDIDATES):
        for provider, resources in candidate.allocations.items():
            if name in resources:
                capacity, used = judged.source.level(provider, name)
                found = max(found, capacity - used)
    return found
