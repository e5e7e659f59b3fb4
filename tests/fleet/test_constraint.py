"""The constraints of a query, and the providers that meet each."""

import numpy as np
from hypothesis import HealthCheck, given, settings

from roost.fleet.constraint import constraint_mask, constraints_of, narrowed
from roost.model.request import CandidateQuery
from support.constraints import meets
from support.fleets import fleet_of, queries, worlds
from support.oracle import World


@given(queries())
def test_a_query_is_the_sum_of_its_constraints(query: CandidateQuery) -> None:
    made = CandidateQuery(())
    for constraint in constraints_of(query):
        made = narrowed(made, constraint)
        assert str(constraint)
    assert made == query


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(worlds(), queries())
def test_the_mask_of_a_constraint_is_that_of_the_oracle(world: World, query: CandidateQuery) -> None:
    fleet = fleet_of(world)
    rows = np.array([fleet.row(uuid) for uuid in world], dtype=np.intp)
    for constraint in constraints_of(query):
        expected = [meets(world, uuid, constraint) for uuid in world]
        assert constraint_mask(fleet, rows, constraint).tolist() == expected, constraint
