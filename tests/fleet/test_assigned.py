"""The assignments of a fleet: against an oracle, through changes, undoing and forks."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roost.fleet import Fleet, Inconsistent
from roost.model.allocation import Consumer
from roost.model.assignment import AssignedCell, Assignment
from roost.model.change import AllocationsChanged, ProviderChanged, ProviderFacts
from support.fleets import snapshot

NODES = ("h0", "h1")


def built() -> Fleet:
    fleet = Fleet()
    for row, name in enumerate(NODES):
        fleet.apply(ProviderChanged(name, row, None, ProviderFacts(f"name of {name}", None, 0)))
    return fleet


def assignment(node: str, cpu: int) -> Assignment:
    return Assignment(node, (AssignedCell(0, 0, pinned=((0, cpu),)),))


def owner(name: str, has: Assignment | None) -> Consumer:
    return Consumer(name, "project", "user", 1, "INSTANCE", assignment=has)


def write(name: str, had: Assignment | None, has: Assignment | None) -> AllocationsChanged:
    return AllocationsChanged(name, owner(name, had), owner(name, has), {}, {})


CHANGES = st.lists(
    st.tuples(
        st.sampled_from("abc"),
        st.none() | st.builds(assignment, st.sampled_from(NODES), st.integers(0, 3)),
    ),
    max_size=12,
)


@given(CHANGES)
@settings(max_examples=40, deadline=None)
def test_a_fleet_has_the_assignments_that_changes_left(steps: list[tuple[str, Assignment | None]]) -> None:
    fleet, has = built(), dict[str, Assignment]()
    done = []
    for name, after in steps:
        before, end = snapshot(fleet), fleet.invalidations.end
        change = write(name, has.get(name), after)
        fleet.apply(change)
        touched = {each.node for each in (has.get(name), after) if each is not None}
        if has.get(name) == after:
            touched = set()
        changed = fleet.invalidations.since(end)
        assert changed is not None
        assert {fleet.uuid(row) for row in changed} == touched
        done.append((change, before))
        if after is None:
            has.pop(name, None)
        else:
            has[name] = after
        on = {node: {name: each for name, each in has.items() if each.node == node} for node in NODES}
        assert {node: dict(fleet.assigned.on(node)) for node in NODES} == on
        assert sorted(fleet.assigned.nodes()) == sorted(node for node in NODES if on[node])
        assert len(fleet.assigned) == sum(map(bool, on.values()))
    fork = fleet.fork()
    for change, before in reversed(done):
        fork.undo([change])
        assert snapshot(fork)["assigned"] == before["assigned"]
    assert {name: each for node in NODES for name, each in fleet.assigned.on(node).items()} == has


def test_the_assignments_of_a_node_are_the_same_object_until_one_changes() -> None:
    fleet = built()
    fleet.apply(write("a", None, assignment("h0", 1)))
    first = fleet.assigned.on("h0")
    fleet.apply(write("b", None, assignment("h1", 1)))
    assert fleet.assigned.on("h0") is first
    fleet.apply(write("c", None, assignment("h0", 2)))
    assert fleet.assigned.on("h0") == {"a": assignment("h0", 1), "c": assignment("h0", 2)}
    assert first == {"a": assignment("h0", 1)}


def test_an_assignment_outlives_its_node() -> None:
    """Its provider may go if the consumer's allocations are in another tree by then."""
    fleet = built()
    fleet.apply(write("a", None, assignment("h0", 1)))
    fleet.apply(ProviderChanged("h0", 0, fleet.facts(0), None))
    fleet.apply(write("a", assignment("h0", 1), None))
    assert len(fleet.assigned) == 0


@pytest.mark.parametrize(
    "change",
    [
        write("a", assignment("h0", 2), None),
        write("b", assignment("h0", 1), assignment("h0", 2)),
        write("a", None, assignment("h0", 1)),
    ],
    ids=["another one", "none", "one that is not stated"],
)
def test_a_change_that_contradicts_the_assignments_is_refused(change: AllocationsChanged) -> None:
    fleet = built()
    fleet.apply(write("a", None, assignment("h0", 1)))
    before = snapshot(fleet)
    with pytest.raises(Inconsistent, match="assignment"):
        fleet.apply(change)
    assert snapshot(fleet) == before
