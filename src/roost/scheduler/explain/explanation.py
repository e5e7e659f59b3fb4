"""Explains a refused run: the funnel, the near misses, the relaxations and the sentence."""

from collections.abc import Collection

from msgspec.structs import replace

from roost.model.reasons import Reasons, Stage, WeighedHost
from roost.scheduler.explain.hardware import lowered
from roost.scheduler.explain.misses import near, nearest
from roost.scheduler.explain.pairs import pairs
from roost.scheduler.explain.relaxations import proposals, working
from roost.scheduler.explain.sentence import sentences, user_way_out, way_out
from roost.scheduler.explain.snapshot import Snapshot, host_name, without_limits
from roost.scheduler.explain.survey import Survey, TimeLimit
from roost.scheduler.request.scheduling_request import SchedulingRequest

MOST_MISSES = 5
MOST_RELAXATIONS = 5
MOST_PAIRS = 3
MOST_WEIGHED = 3
NEAR_EACH = 4
"""Hosts for each condition on which changes of the request are tried."""


def explain(
    snapshot: Snapshot, request: SchedulingRequest, *, placed: int = 0, seconds: float = 5.0
) -> Reasons:
    """Return why a request is refused on a snapshot, or its best hosts if it is not.

    ``placed``: so many of the request's first instances hold their hosts already. ``seconds``: time after
    which no further near misses and relaxations are sought.

    Raises: `SchedulerError` if the request cannot be judged.
    """
    time_limit = TimeLimit(seconds)
    request = _remaining(without_limits(request), placed)
    wanted = placed + len(request.instances)
    before = len(snapshot.claims)
    with snapshot.trying():
        outcome = snapshot.decide(request)
        more = len(snapshot.claims) - before
        if more < len(request.instances):
            instance = request.instances[more]
            refused = {each.host for each in outcome.tries if each.instance == instance and each.refusal}
            survey = _survey(snapshot, request, more, refused, time_limit)
            found = near(survey, NEAR_EACH + len(request.instances))
            snapshot.one_by_one = survey.can_weigh(snapshot.pools.plugins.weighers)
            stages, misses = survey.stages(), nearest(found, MOST_MISSES)
            texts = sentences(survey, misses, placed + more, wanted, outcome.refusal or "")
    if more == len(request.instances):
        return _fits(snapshot, request, placed, time_limit)
    # Of equal changes, first the ones that the user can make.
    proposed = [*lowered(snapshot, request, survey, time_limit)]
    proposed += proposals(request, survey, found, snapshot.pools.plugins.filters, 0 if placed else more)
    proposed.sort(key=lambda each: round(each.distance, 4))
    relaxations = tuple(working(snapshot, proposed, MOST_RELAXATIONS, time_limit))
    if not relaxations:
        both = working(
            snapshot, pairs(request, survey, snapshot.pools.plugins.filters), MOST_PAIRS, time_limit
        )
        relaxations = tuple(sorted(both, key=lambda each: each.distance))
    sentence, public = texts
    return replace(
        _counted(survey, stages, sentence + way_out(relaxations), public + user_way_out(relaxations)),
        placed=placed + more,
        misses=misses,
        relaxations=relaxations,
        complete=survey.complete and not time_limit.over(),
    )


def _fits(snapshot: Snapshot, request: SchedulingRequest, placed: int, time_limit: TimeLimit) -> Reasons:
    survey = _survey(snapshot, request, 0, (), time_limit)
    weighed = _weighed(snapshot, request)
    left = int(survey.left.sum())
    number = "1 host" if left == 1 else f"{left} hosts"
    sentence = f"it fits: {number} may be used, and {weighed[0].host} is the best"
    reasons = _counted(survey, survey.stages(), sentence, "it fits")
    placed += len(request.instances)
    return replace(reasons, placed=placed, weighed=weighed, complete=survey.complete)


def _survey(
    snapshot: Snapshot,
    request: SchedulingRequest,
    before: int,
    refused: Collection[str],
    time_limit: TimeLimit,
) -> Survey:
    """Return the survey for one instance, with the instances before it placed."""
    one = replace(request, instances=request.instances[before : before + 1], min_count=1)
    return Survey(snapshot, one, refused, time_limit)


def _counted(survey: Survey, stages: tuple[Stage, ...], sentence: str, public: str) -> Reasons:
    trees = survey.trees
    return Reasons(
        sentence=sentence,
        public=public,
        version=survey.snapshot.version,
        node_version=survey.table.version,
        query=trees.query,
        hosts=survey.hosts,
        trees=trees.trees or 0,
        providers=trees.providers or 0,
        stages=stages,
        left=int(survey.left.sum()),
        trees_left=0 if trees.trees is None else int(survey.offered.sum()),
    )


def _weighed(snapshot: Snapshot, request: SchedulingRequest) -> tuple[WeighedHost, ...]:
    """Return the best hosts for the first instance of a request, best first, with the numbers of all
    weighers."""
    pool = snapshot.pool(request)
    pool.ready()
    return tuple(
        WeighedHost(host_name(snapshot.table, pool.index(host)), pool.weight(host), pool.numbers(host)())
        for host in pool.best(MOST_WEIGHED)
    )


def _remaining(request: SchedulingRequest, placed: int) -> SchedulingRequest:
    if not placed:
        return request
    rest = request.instances[placed:]
    return replace(request, instances=rest, min_count=len(rest))
