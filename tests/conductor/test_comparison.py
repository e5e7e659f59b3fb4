"""Which differences between claims and instances are errors, and which a moment on the way."""

from typing import Any

import msgspec
import pytest

from roost.conductor.comparison import ApiState, CellState, judge
from roost.ledger import Held
from roost.model.allocation import Consumer
from roost.model.instance import ACTIVE, ASSIGNED, DELETING, DESTROYED, ERROR, FAILED, Instance, Requester
from roost.model.move import Move, MovePlace
from roost.model.move_states import (
    DONE,
    FAILED_MOVE,
    HOLDS_TARGET,
    ON_TARGET,
    REQUESTED,
    RETRYING,
    RETURNING,
    REVERTED,
    UNDOING,
)
from roost.model.spec import Flavor, RequestSpec, Selection
from roost.state.api_database.cell_mappings import CellMapping

STATES = (ASSIGNED, ACTIVE, FAILED, ERROR, DELETING, DESTROYED)
ROOTS = {"node-1": "node-1", "numa-1": "node-1", "node-2": "node-2", "pool": "pool"}


def held(*providers: str, consumer_type: str = "INSTANCE") -> Held:
    owner = Consumer("i", "project", "user", 1, consumer_type)
    return Held(owner, {provider: {"VCPU": 1} for provider in providers})


def instance(state: str, host: str | None = "host-1", node: str | None = "node-1") -> Instance:
    return Instance(
        uuid="i",
        request_id="req",
        run="run",
        project_id="project",
        user_id="user",
        flavor="small",
        state=state,
        host=host,
        node=node,
        attempt=1,
    )


def found(
    *instances: Instance,
    claim: Held | None = None,
    mapped: str | None = "cell1",
    waiting: bool = False,
    deleted: bool = False,
    others: dict[str, CellState] | None = None,
    unread: tuple[str, ...] = (),
    nodes: dict[str, set[str]] | None = None,
) -> list[str]:
    """The kinds of finding where ``instances`` are in cell1."""
    if nodes is None:
        nodes = {"host-1": {"node-1"}, "host-2": {"node-2"}}
    cells = {"cell0": CellState([], {}), "cell1": CellState(list(instances), nodes), **(others or {})}
    api = ApiState(
        claims={} if claim is None else {"i": claim},
        roots=ROOTS,
        sharing=frozenset({"pool"}),
        waiting=frozenset({"i"}) if waiting else frozenset(),
        mappings={} if mapped is None else {"i": mapped},
        deleted=frozenset({"i"}) if deleted else frozenset(),
        cells=dict.fromkeys([*cells, *unread], "sqlite:///x"),
    )
    findings = list(judge(api, cells))
    assert all(finding.subject == "instance i" and finding.detail for finding in findings)
    return [finding.kind for finding in findings]


@pytest.mark.parametrize("state", [ASSIGNED, ACTIVE])
@pytest.mark.parametrize(
    ("claim", "kinds"),
    [
        (held("node-1"), []),
        (held("numa-1"), []),
        (held("node-1", "pool"), []),
        (None, ["missing-claim"]),
        (held("node-2"), ["wrong-host"]),
        (held("node-1", "node-2"), ["wrong-host"]),
        (held("not there"), ["wrong-host"]),
    ],
)
def test_an_instance_on_a_host_has_its_claim_there(state, claim, kinds):
    assert found(instance(state), claim=claim) == kinds
    assert found(instance(state), claim=claim, waiting=True, mapped=None) == kinds


def test_a_claim_counts_whatever_the_consumers_type():
    assert found(instance(ACTIVE), claim=held("node-1", consumer_type="unknown")) == []


def test_an_instance_on_a_host_whose_node_is_another():
    assert found(instance(ACTIVE), claim=held("node-1"), nodes={"host-1": {"node-2"}}) == ["wrong-host"]
    assert found(instance(ACTIVE), claim=held("node-1"), nodes={}) == []
    assert found(instance(ACTIVE), claim=held("node-1"), nodes={"host-1": {"node-1", "node-2"}}) == []


@pytest.mark.parametrize("state", [FAILED, DELETING, DESTROYED])
@pytest.mark.parametrize("claim", [None, held("node-1"), held("node-2")])
def test_the_claim_of_an_instance_on_its_way_may_be_anywhere(state, claim):
    assert found(instance(state), claim=claim) == []


@pytest.mark.parametrize("host", [None, "host-1"])
@pytest.mark.parametrize("waiting", [True, False])
def test_an_instance_in_error_holds_nothing(host, waiting):
    dead: dict[str, Any] = {"host": host, "node": host and "node-1"}
    assert found(instance(ERROR, **dead), waiting=waiting) == []
    # A request that is given up puts its instances in error first, and frees their claims before it ends.
    kinds = [] if host is None and waiting else ["leaked-claim"]
    assert found(instance(ERROR, **dead), claim=held("node-1"), waiting=waiting) == kinds


@pytest.mark.parametrize("mapped", [None, "cell1", "cell0"])
def test_a_claim_without_an_instance_has_leaked_unless_its_request_waits(mapped):
    lost = [] if mapped is None else ["missing-instance"]
    assert found(claim=held("node-1"), mapped=mapped) == [*lost, "leaked-claim"]
    assert found(claim=held("node-1"), mapped=mapped, waiting=True) == []


def test_a_claim_of_somebody_else_is_not_ours_to_judge():
    assert found(claim=held("node-1", consumer_type="MIGRATION"), mapped=None) == []


@pytest.mark.parametrize(
    ("mapped", "kinds"), [(None, []), ("far", []), ("cell1", ["missing-instance", "leaked-claim"])]
)
def test_a_claim_whose_instance_may_be_in_a_cell_that_could_not_be_read(mapped, kinds):
    assert found(claim=held("node-1"), mapped=mapped, unread=("far",)) == kinds


@pytest.mark.parametrize("state", STATES)
def test_an_instance_without_a_mapping_is_on_its_way_in_or_out(state):
    claim = held("node-1") if state in (ASSIGNED, ACTIVE) else None
    leaving = state in (DELETING, DESTROYED)
    assert found(instance(state), claim=claim, mapped=None) == ([] if leaving else ["unmapped-instance"])
    assert found(instance(state), claim=claim, mapped=None, waiting=True) == []


def test_an_instance_in_another_cell_than_mapped():
    assert found(instance(ACTIVE), claim=held("node-1"), mapped="cell0") == ["wrong-cell"]


def test_an_instance_in_two_cells():
    others = {"cell2": CellState([instance(FAILED)], {})}
    kinds = found(instance(ACTIVE), claim=held("node-1"), others=others)
    assert kinds == ["wrong-cell", "two-cells"]


def test_a_mapping_leads_to_an_instance_unless_somebody_works_on_it():
    assert found() == ["missing-instance"]
    assert found(mapped="cell0") == ["missing-instance"]
    assert found(mapped="far", unread=("far",)) == []
    assert found(waiting=True) == []
    assert found(deleted=True) == []


def test_an_instance_that_was_accepted_is_placed_or_waits():
    cells = dict.fromkeys(["cell0", "cell1"], CellMapping("x", "x"))
    api = ApiState({}, ROOTS, frozenset(), frozenset(), {"i": None}, frozenset(), cells)
    states = {name: CellState([], {}) for name in cells}
    assert [finding.kind for finding in judge(api, states)] == ["missing-instance"]
    assert list(judge(api, {"cell0": states["cell0"]})) == [], "cell1 may have it"


def test_without_cells_there_is_nothing_to_compare_with():
    api = ApiState({"i": held("node-1")}, ROOTS, frozenset(), frozenset(), {}, frozenset(), {})
    assert list(judge(api, {})) == []


def move_of(state, source="node-1", target="node-2"):
    """A move of the instance from one node to another."""

    def at(attempt, node):
        claimed = Selection(f"host-{node[-1]}", node, "cell1", {node: {"VCPU": 1}}, {}, 0.0)
        return MovePlace(attempt, claimed, spec)

    spec = RequestSpec(project_id="project", user_id="user", flavor=Flavor("small", 1, 1))
    return Move(
        uuid="m",
        instance="i",
        kind="migrate",
        state=state,
        source=at(1, source),
        spec=spec,
        by=Requester("user", "project", "req"),
        began=0.0,
        changed_at=0.0,
        target=at(2, target),
    )


def found_of_move(state, *, on="host-1", instance_on=None, move_on=None):
    """The findings about an instance that moves: kind and subject."""
    row = msgspec.structs.replace(instance(ACTIVE, on, f"node-{on[-1]}"), move="m")
    claims = {"i": instance_on, "m": move_on}
    api = ApiState(
        claims={
            uuid: held(node, consumer_type="INSTANCE" if uuid == "i" else "MIGRATION")
            for uuid, node in claims.items()
            if node is not None
        },
        roots=ROOTS,
        sharing=frozenset({"pool"}),
        waiting=frozenset(),
        mappings={"i": "cell1"},
        deleted=frozenset(),
        cells={"cell1": "sqlite:///x"},
    )
    nodes = {"host-1": {"node-1"}, "host-2": {"node-2"}}
    cells = {"cell1": CellState([row], nodes, {"m": move_of(state)})}
    return [(each.kind, each.subject) for each in judge(api, cells)]


@pytest.mark.parametrize("state", HOLDS_TARGET)
def test_an_instance_that_moves_holds_the_target_and_its_move_the_source(state):
    row = "host-1" if state in ON_TARGET else "host-2"
    assert found_of_move(state, on=row, instance_on="node-2", move_on="node-1") == []
    assert found_of_move(state, on=row, instance_on="node-1", move_on="node-1") == [
        ("wrong-host", "instance i")
    ]
    assert found_of_move(state, on=row, instance_on="node-2") == [("missing-claim", "move m")]
    assert found_of_move(state, on=row, instance_on="node-2", move_on="node-2") == [("wrong-host", "move m")]


@pytest.mark.parametrize("state", [REQUESTED, RETRYING, RETURNING, UNDOING])
def test_claims_that_a_conductor_is_about_to_exchange_are_not_judged(state):
    for claims in ({"instance_on": "node-1"}, {"instance_on": "node-2", "move_on": "node-1"}):
        assert found_of_move(state, **claims) == []


@pytest.mark.parametrize("state", [DONE, REVERTED, FAILED_MOVE])
def test_what_a_move_holds_after_its_end_has_leaked(state):
    assert ("leaked-claim", "move m") in found_of_move(state, instance_on="node-1", move_on="node-2")
