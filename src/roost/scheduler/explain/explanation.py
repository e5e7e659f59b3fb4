"""Explains a refused run: the funnel, the near misses, the relaxations and the sentence."""

from collections.abc import Collection, Sequence

from msgspec.structs import replace

from roost.fleet.columns import Bools
from roost.fleet.constraint import TOGETHER, Constraint
from roost.model.reasons import Miss, MoveSearch, Reasons, Relaxation, Stage, WeighedHost
from roost.scheduler.explain.causes import FoundCauses, found_causes, is_whole, relaxation_of, told
from roost.scheduler.explain.hardware import lowered
from roost.scheduler.explain.misses import near, nearest, nearest_removed
from roost.scheduler.explain.pairs import pairs
from roost.scheduler.explain.phrases import listed, met_constraint, negated, singular
from roost.scheduler.explain.relaxations import proposals, working
from roost.scheduler.explain.snapshot import Condition, Snapshot, host_name, without_limits
from roost.scheduler.explain.survey import Survey, TimeLimit
from roost.scheduler.request.scheduling_request import SchedulingRequest

MOST_NAMED = 3
"""Conditions that the sentence names as met; further ones of a long request are left out."""


def sentences(
    survey: Survey,
    misses: Sequence[Miss],
    placed: int,
    wanted: int,
    refusal: str,
    causes: Sequence[Condition] = (),
) -> tuple[str, str]:
    """Return the sentence with names and numbers of hosts, and the one without, for the survey's fleet.

    ``refusal``: the plain reason of the run, for when hosts are left that were not tried. ``causes``: the
    conditions without which the request is placed.
    """
    first = f"only {placed} of {wanted} instances fit: " if placed else ""
    known = int(survey.is_host.sum())
    if not known:
        return first + _without_hosts(survey), first + "no host is there"
    binding, before = binding_of(survey)
    if causes and binding not in causes and not is_whole(binding):
        binding, before = causes[0], _others(survey, causes)
    if binding is None:
        return refusal, first + "a limit of the scheduler was met before all hosts were tried"
    words = binding.words
    met = [each.words for each, _ in before]
    own = next((each for each in misses if each.name == binding.name and each.kind == binding.kind), None)
    closest = own or (misses[0] if misses else nearest_removed(survey, binding))
    most = "" if own is not None else _most(survey, binding, before)
    n = before[-1][1] if met else known
    if met:
        named = met[-MOST_NAMED:]
        more = " (and more)" if len(met) > MOST_NAMED else ""
        verbs = listed(named if n > 1 else list(map(singular, named)))
        text = f"{n} of {known} hosts {verbs}{more}; "
        public_names = [each.public for each, _ in before][-MOST_NAMED:]
        public = f"no host that {listed(list(map(singular, public_names)))} {singular(binding.public)}"
    else:
        text, public = "", f"no host {singular(binding.public)}"
    if n == 1:
        one = "that one" if met else "the only host known"
        # The closest host that only this condition keeps from the request must be that one.
        text += f"{one} {negated(words)}{most}" if own is None else f"{one}, {own.host}, {own.text}"
        closest = None if own is not None else closest
    else:
        text += f"none of {'these' if met else f'{known} hosts'} {singular(words)}{most}"
    if closest is not None:
        text += f"; the closest, {closest.host}, {closest.text}"
    missing = survey.hosts - known
    if missing:
        text += f"; {missing} of {survey.hosts} hosts that report have no provider in placement"
    return first + text, first + public


def _without_hosts(survey: Survey) -> str:
    if not survey.hosts:
        return "no host is known"
    number = survey.hosts
    return f"placement is being filled: {number} of {number} hosts that report have no provider there"


def binding_of(survey: Survey) -> tuple[Condition | None, list[tuple[Condition, int]]]:
    """Return the condition that leaves no host, and those before it that remove hosts, each with how many
    remain.

    Unlike in the funnel, amounts come after the query's other conditions: an amount is what can be changed.
    """
    conditions = [each for each in survey.conditions if each.kind == "query"]
    conditions.sort(key=_order)
    left: Bools = survey.is_host
    before: list[tuple[Condition, int]] = []
    for each in conditions:
        if each.failing is None:
            continue
        after = left & (~each.failing | survey.offered)
        if not after.any():
            return each, before
        if int(after.sum()) < int(left.sum()):
            before.append((each, int(after.sum())))
        left = after
    if not (left & survey.offered).any():
        whole = [each for each in conditions if each.failing is None]
        return (whole[-1] if whole else _together(left)), before
    if int((left & survey.offered).sum()) < int(left.sum()):
        before.append((_together(left), int((left & survey.offered).sum())))
    left = left & survey.offered
    for each in survey.conditions:
        if each.kind == "query":
            continue
        after = left & ~each.removed
        if not after.any():
            return each, before
        if int(after.sum()) < int(left.sum()):
            before.append((each, int(after.sum())))
        left = after
    return None, before


def _others(survey: Survey, causes: Sequence[Condition]) -> list[tuple[Condition, int]]:
    """Return the conditions beside the causes that remove hosts, each with how many remain."""
    left: Bools = survey.is_host
    before: list[tuple[Condition, int]] = []
    for each in sorted((each for each in survey.conditions if each not in causes), key=_order):
        failing = each.removed if each.failing is None else each.failing
        after = left & ~(failing & ~survey.offered if each.kind == "query" else failing)
        if after.any() and int(after.sum()) < int(left.sum()):
            before.append((each, int(after.sum())))
            left = after
    return before


def _together(removed: Bools) -> Condition:
    """Return the condition that all constraints are met at once."""
    constraint = Constraint(None, TOGETHER)
    words = met_constraint(constraint, in_trees=True)
    return Condition(kind="query", name=str(constraint), words=words, subject=constraint, removed=removed)


def _most(survey: Survey, binding: Condition, before: Sequence[tuple[Condition, int]]) -> str:
    """Return in words the host that has most of a scarce amount, where it lacks something else too."""
    subject = binding.subject
    if not isinstance(subject, Constraint) or not subject.is_amount:
        return ""
    left: Bools = survey.is_host
    for each, _ in before:
        if each.failing is not None:
            left = left & ~each.failing
    found = survey.trees.best(subject, left)
    return "" if found is None else f"; the most, on {survey.name(found[0])}, is {found[1]}"


def _order(condition: Condition) -> int:
    if condition.kind != "query":
        return 3
    subject = condition.subject
    if not isinstance(subject, Constraint) or condition.failing is None:
        return 2
    return int(subject.is_amount)


def way_out(relaxations: Sequence[Relaxation]) -> str:
    """Return the end of the sentence: what may be changed. Of single changes one that the user can make."""
    mine = user_way_out(relaxations)
    pair = next((each for each in relaxations if each.kind == "pair"), None)
    if mine or pair is None:
        return mine
    first, second = pair.parts
    return f"; no single change works, both of these do: {_with(first)}, and {_with(second)}"


def user_way_out(relaxations: Sequence[Relaxation]) -> str:
    """Return the end of the sentence for the user: what may be changed, without names of hosts or filters."""
    mine = next((each for each in relaxations if each.kind in _SAID), None)
    if mine is not None:
        return f"; it fits {_with(mine)}"
    pairs = [each.parts for each in relaxations if each.kind == "pair"]
    pair = next((parts for parts in pairs if all(each.kind in _SAID for each in parts)), None)
    if pair is None:
        return ""
    first, second = pair
    return f"; no single change works, both of these do: {_with(first)}, and {_with(second)}"


_SAID = ("amount", "group", "devices", "cells")


def _with(relaxation: Relaxation) -> str:
    text = relaxation.text
    return text if text.startswith(("with ", "without ")) else f"with {text}"


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
    request = remaining(without_limits(request), placed)
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
            misses = nearest(found, MOST_MISSES)
            last, _ = binding_of(survey)
    if more == len(request.instances):
        return _fits(snapshot, request, placed, time_limit)
    causes = found_causes(snapshot, request, survey, found, last, time_limit)
    with snapshot.trying():
        if more:  # The survey is of the state with these placed.
            snapshot.decide(request)
        conditions = () if causes is None else causes.conditions
        texts = sentences(survey, misses, placed + more, wanted, outcome.refusal or "", conditions)
        named = () if causes is None else told(survey, causes)
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
    if causes is not None and not (
        relaxations if len(causes.conditions) > 1 else any(_is_of(each, causes) for each in relaxations)
    ):
        left_out = relaxation_of(survey, causes)
        relaxations = relaxations if left_out is None else (*relaxations, left_out)
    sentence, public = texts
    return replace(
        _counted(
            survey,
            survey.stages(conditions),
            sentence + way_out(relaxations),
            public + user_way_out(relaxations),
        ),
        placed=placed + more,
        causes=named,
        misses=misses,
        relaxations=relaxations,
        complete=survey.complete and not time_limit.over(),
    )


def _is_of(relaxation: Relaxation, causes: FoundCauses) -> bool:
    """Return whether a change is one of the causes of a refusal."""
    names = {each.name for each in relaxation.parts or (relaxation,)}
    return names == {each.name for each in causes.conditions}


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


def remaining(request: SchedulingRequest, placed: int) -> SchedulingRequest:
    """Return the request for the instances after the first ``placed``, of which all are to fit."""
    if not placed:
        return request
    rest = request.instances[placed:]
    return replace(request, instances=rest, min_count=len(rest))


def with_moves(reasons: Reasons, search: MoveSearch) -> Reasons:
    """Return reasons with the moves that were looked for; the sentence for the project does not tell them."""
    if not search.moves:
        return replace(reasons, move_search=search)
    number = "1 instance" if len(search.moves) == 1 else f"{len(search.moves)} instances"
    moves = ", then ".join(f"{each.instance} from {each.source} to {each.target}" for each in search.moves)
    sentence = f"{reasons.sentence}; it fits after moving {number}: {moves}"
    return replace(reasons, sentence=sentence, move_search=search)
