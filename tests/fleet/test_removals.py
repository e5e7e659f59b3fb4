"""What each constraint of a query removes, against the plain oracle."""

from hypothesis import HealthCheck, given, settings

from roost.fleet.constraint import REQUIRED, RESOURCES, Constraint
from roost.fleet.near_misses import explain_fully
from roost.model.request import CandidateQuery
from support import oracle
from support.constraints import WHOLE, meets
from support.fleets import fleet_of, queries, worlds
from support.oracle import World


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(worlds(), queries())
def test_what_is_removed_is_what_counting_finds(world: World, query: CandidateQuery) -> None:
    explanation = explain_fully(fleet_of(world), query, 0)
    roots = [uuid for uuid, provider in world.items() if provider.parent is None]
    done: list[Constraint] = []
    left = set(roots)
    for step in explanation.steps:
        constraint = step.constraint
        if constraint.kind in WHOLE:
            continue
        before = [each for each in done if each.group == constraint.group]
        failing = [uuid for uuid in world if not meets(world, uuid, constraint)]
        assert step.providers_alone == len(failing)
        assert step.providers == sum(all(meets(world, uuid, each) for each in before) for uuid in failing)
        alone = [
            root
            for root in roots
            if not any(meets(world, p, constraint) for p in world if oracle.reaches(world, p, root))
        ]
        assert constraint.group is None or step.trees_alone == len(alone)
        done.append(constraint)
        now = {root for root in left if part_is_there(world, root, done)}
        assert step.trees == len(left) - len(now)
        left = now
    served = oracle.candidates(world, query)
    assert (explanation.served, explanation.unknown) == (len(served), 0)
    assert explanation.trees - sum(step.trees for step in explanation.steps) == len(served)


def part_is_there(world: World, anchor: str, done: list[Constraint]) -> bool:
    """Whether each part of the query so far has a provider that the tree reaches."""
    near = [uuid for uuid in world if oracle.reaches(world, uuid, anchor)]
    for suffix in {each.group for each in done}:
        mine = [each for each in done if each.group == suffix]
        if suffix is None:
            ok = all(meets(world, anchor, each) for each in mine)
        elif suffix:
            ok = any(all(meets(world, uuid, each) for each in mine) for uuid in near)
        else:
            fit = [each for each in mine if each.kind == RESOURCES]
            traits = [each for each in mine if each.kind == REQUIRED]
            rest = [each for each in mine if each.kind not in (RESOURCES, REQUIRED)]
            able = [uuid for uuid in near if all(meets(world, uuid, each) for each in rest)]
            serving = [uuid for uuid in able if any(meets(world, uuid, each) for each in fit)]
            ok = all(any(meets(world, uuid, each) for uuid in able) for each in fit)
            ok = ok and all(any(meets(world, uuid, each) for uuid in serving) for each in traits)
        if not ok:
            return False
    return True
