"""Which assignments on a node its report does not count."""

import pytest

from roost.model.assignment import AssignedCell, Assignment, digest
from roost.model.node import NodeInstance
from roost.scheduler.nodes.outstanding import unreported
from support.clouds import report

OLD, NEW = (Assignment("n", (AssignedCell(0, 0, pinned=((0, cpu),)),)) for cpu in (1, 2))


@pytest.mark.parametrize(
    ("listed", "counts"),
    [
        (None, False),
        (NodeInstance(), True),
        (NodeInstance(assignment=digest(NEW)), True),
        (NodeInstance(assignment=""), False),
        (NodeInstance(assignment=digest(OLD)), False),
    ],
    ids=["not listed", "a reporter that does not say", "the same", "none yet", "that of an earlier stay"],
)
def test_what_a_report_counts(listed: NodeInstance | None, counts: bool) -> None:
    instances = {} if listed is None else {"a": listed}
    left = unreported(report("host", "n", instances=instances), {"a": NEW})
    assert left == ({} if counts else {"a": NEW})


def test_a_reported_instance_without_an_assignment_is_no_concern() -> None:
    assert unreported(report("host", "n", instances={"a": NodeInstance()}), {}) == {}
