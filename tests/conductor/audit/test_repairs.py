"""Repairs of the audit whose instances change in between."""

from roost.conductor.audit.findings import CLAIM_AGAIN, MISSING_CLAIM, Observed
from roost.conductor.audit.repairs import repair
from roost.model.instance import ACTIVE
from roost.state.api_database.mappings import InstanceMapping
from roost.state.cell_database.building import note_claimed_again
from support.cells import instance, selection
from support.stepped_contexts import SteppedContext


def test_a_first_claim_of_an_instance_that_has_ended_meanwhile_is_freed_again() -> None:
    """Nobody else frees it: whoever ended the instance has seen that it had no claim."""
    row = instance("i", state=ACTIVE, selection=selection("a"))
    observed = Observed(
        kind=MISSING_CLAIM,
        instance="i",
        detail="",
        held=None,
        mapping=InstanceMapping("i", "cell1", 1, "req", "project", "user", False),
        rows={"cell1": row},
        nodes=("node-a",),
        is_past=False,
    )
    repairing = repair(SteppedContext(), CLAIM_AGAIN, observed)
    claim = repairing.send(None)
    assert claim.name == "placement.write_allocations"
    [[written]] = claim.arguments
    assert (written.generation, written.allocations) == (None, {"node-a": {"VCPU": 1}})
    noted = repairing.send(None)
    assert (noted.name, noted.arguments) == ("write", ("cell/cell1", note_claimed_again("i", 1, 1)))
    freed = repairing.send(False)
    assert freed.name == "placement.write_allocations"
    [[written]] = freed.arguments
    assert (written.consumer, written.generation, written.allocations) == ("i", 1, {})
    try:
        repairing.send(None)
    except StopIteration as end:
        assert end.value == "refused: the instance has changed since"
    else:
        raise AssertionError("the repair goes on")
