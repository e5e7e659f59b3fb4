"""The history of an instance in its cell: each state that it enters, in the statement that puts it there."""

from collections.abc import Iterator
from typing import TypeVar

import msgspec
import pytest
import sqlalchemy as sa

from roost.model.instance import (
    ABANDONED,
    ACTIVE,
    ASSIGNED,
    DELETING,
    DESTROYED,
    ERROR,
    FAILED,
    GONE,
    LOST,
    STARTING,
    AttemptKey,
    BuildResult,
    DestroyOrder,
    Instance,
    Requester,
    Transition,
)
from roost.process.context import Work
from roost.state.cell_database.arrivals import AddInstances, trim_fences
from roost.state.cell_database.building import ConfirmAttempt, ReportResults, fail_attempts
from roost.state.cell_database.conductor_work import abandon_instance, put_in_error, reassign_instance
from roost.state.cell_database.deletions import (
    HOST_GONE,
    NOT_ANSWERED,
    DeleteInstances,
    end_deletions,
    forget_destroyed,
    give_up_on_host,
    note_destroyed,
)
from roost.state.cell_database.guests import GuestsReported
from roost.state.cell_database.history import MOST_OF_GUESTS, StoredHistory, prune_past, read_history
from roost.state.cell_database.tables import metadata
from support.cells import instance, selection
from support.state_changes import check_log

T = TypeVar("T")

BY = Requester("operator", "admin", "req-2")


class Tables:
    """The tables of a cell in memory, and how many statements were executed."""

    def __init__(self, connection: sa.Connection) -> None:
        self.connection = connection
        self.statements = 0
        sa.event.listen(connection, "before_cursor_execute", self._count)

    def do(self, work: Work[T]) -> T:
        return work(self.connection)

    def add(self, at: float = 1.0, **facts: object) -> None:
        self.do(AddInstances((instance(selection=selection("a"), **facts),), at))

    def report(self, at: float, host: str = "a", attempt: int = 1, **facts: object) -> None:
        result = BuildResult("i", host, attempt, **facts)  # type: ignore[arg-type]
        self.do(ReportResults((result,), at, "cell1"))

    def history(self, uuid: str = "i") -> StoredHistory:
        found = self.do(read_history(uuid))
        assert found is not None
        return found

    def told(self) -> list[tuple[str, float]]:
        return [(each.state, each.at) for each in self.history().transitions]

    def _count(self, *_: object) -> None:
        self.statements += 1


@pytest.fixture
def cell() -> Iterator[Tables]:
    engine = sa.create_engine("sqlite://")
    with engine.begin() as connection:
        metadata.create_all(connection)
        yield Tables(connection)
        check_log(connection)
    engine.dispose()


def reassign(cell: Tables, attempt: int, host: str, at: float) -> None:
    assert cell.do(
        reassign_instance(key=AttemptKey("i", attempt), selection=selection(host), alternates=(), at=at)
    )


def test_from_two_failed_hosts_to_the_third_and_to_the_end(cell: Tables) -> None:
    cell.add()
    cell.do(ConfirmAttempt(AttemptKey("i", 1), "a", 2.0))
    cell.do(ConfirmAttempt(AttemptKey("i", 1), "a", 2.5))
    cell.report(3.0, failure="no IP", code="NoMoreAddresses")
    reassign(cell, 1, "b", 4.0)
    cell.do(fail_attempts((AttemptKey("i", 2),), "too long", 5.0, "cell1"))
    reassign(cell, 2, "c", 6.0)
    cell.do(ConfirmAttempt(AttemptKey("i", 3), "c", 7.0))
    cell.report(8.0, "c", 3)
    assert cell.history() == StoredHistory(
        uuid="i",
        request_id="req",
        run="run",
        project_id="project",
        user_id="user",
        flavor="small",
        state=ACTIVE,
        transitions=(
            Transition(state=ASSIGNED, at=1.0, attempt=1, host="a", node="node-a", ordinal=1),
            Transition(state=STARTING, at=2.0),
            Transition(state=FAILED, at=3.0, reason="no IP", code="NoMoreAddresses"),
            Transition(state=ASSIGNED, at=4.0, attempt=2, host="b", node="node-b", ordinal=2),
            Transition(state=FAILED, at=5.0, reason="too long", code="TimedOut"),
            Transition(state=ASSIGNED, at=6.0, attempt=3, host="c", node="node-c", ordinal=3),
            Transition(state=STARTING, at=7.0),
            Transition(state=ACTIVE, at=8.0),
        ),
        complete=True,
    )
    cell.do(DeleteInstances(("i",), 9.0, "cell1"))
    cell.do(DeleteInstances(("i",), 9.5, "cell1"))
    cell.do(note_destroyed((DestroyOrder("i", 3, "c"),), 10.0))
    cell.do(forget_destroyed(("i",), 11.0))
    past = cell.history()
    assert (past.state, past.complete, past.request_id) == (GONE, True, "req")
    assert cell.told()[8:] == [(DELETING, 9.0), (DESTROYED, 10.0), (GONE, 11.0)]


def test_no_alternate_is_left(cell: Tables) -> None:
    cell.add()
    cell.report(2.0, failure="no IP")
    assert cell.do(abandon_instance(key=AttemptKey("i", 1), reason="all failed", at=3.0))
    cell.do(put_in_error(("i",), 4.0))
    assert cell.told() == [(ASSIGNED, 1.0), (FAILED, 2.0), (ABANDONED, 3.0), (ERROR, 4.0)]
    assert cell.history().transitions[2].reason == "all failed"


def test_failure_that_no_host_can_cure(cell: Tables) -> None:
    cell.add()
    cell.report(2.0, failure="no such image", retryable=False)
    assert cell.history().transitions[1:] == (Transition(state=ABANDONED, at=2.0, reason="no such image"),)


def test_instance_that_was_never_placed(cell: Tables) -> None:
    cell.do(AddInstances((instance(host=None, state=ERROR, attempt=0, reason="no valid host"),), 1.0))
    assert cell.history().transitions == (Transition(state=ERROR, at=1.0, reason="no valid host"),)
    cell.do(DeleteInstances(("i",), 2.0, "cell0"))
    cell.do(forget_destroyed(("i",), 3.0))
    assert cell.told() == [(ERROR, 1.0), (DELETING, 2.0), (DESTROYED, 2.0), (GONE, 3.0)]


def test_what_an_operator_ends_says_who_it_was(cell: Tables) -> None:
    cell.add()
    cell.report(2.0)
    cell.do(give_up_on_host(host="a", reason="it burned", at=3.0, cell="cell1", by=BY))
    assert cell.history().transitions[-1] == Transition(
        state=ABANDONED, at=3.0, reason="it burned", code=HOST_GONE, by=BY
    )
    cell.do(put_in_error(("i",), 4.0))
    assert cell.told()[-1] == (ERROR, 4.0)


def test_deletion_whose_host_does_not_answer(cell: Tables) -> None:
    cell.add()
    cell.do(DeleteInstances(("i",), 2.0, "cell1"))
    cell.do(end_deletions((AttemptKey("i", 1),), 3.0))
    assert cell.history().transitions[-1] == Transition(state=DESTROYED, at=3.0, reason=NOT_ANSWERED)


def test_guests_that_come_and_go_do_not_fill_the_history(cell: Tables) -> None:
    cell.add()
    cell.report(2.0)
    for at in range(3, 1003):
        cell.do(GuestsReported("a", {} if at % 2 else {"i": 1}, float(at)))
    found = cell.history()
    assert cell.told()[2:4] == [(LOST, 3.0), (ACTIVE, 4.0)]
    assert len(found.transitions) < MOST_OF_GUESTS / 20
    assert not found.complete
    cell.do(DeleteInstances(("i",), 2000.0, "cell1"))
    found = cell.history()
    assert cell.told()[-1] == (DELETING, 2000.0), "the end has room"
    assert not found.complete


@pytest.mark.parametrize("reason", ["line\nline", "a\u2028b\x85c", "\x00 \ud800", "x" * 100_000, '"\\'])
def test_reason_of_any_text(cell: Tables, reason: str) -> None:
    cell.add()
    cell.report(2.0, failure=reason)
    found = cell.history()
    assert [each.state for each in found.transitions] == [ASSIGNED, FAILED]
    assert found.complete
    assert found.transitions[1].reason
    assert len(found.transitions[1].reason) <= 1000


def test_secrets_are_hidden(cell: Tables) -> None:
    cell.add()
    cell.report(2.0, failure=f"{'x' * 990} http://user:hunter2-{'y' * 50}@nova/ refuses")
    reassign(cell, 1, "b", 3.0)
    cell.report(4.0, "b", 2, failure="cannot log in, password=hunter2")
    told = str(cell.history())
    assert "hunter2" not in told
    assert "***" in told


def test_histories_of_many_instances_cost_one_statement(cell: Tables) -> None:
    """That of the log of state changes: the histories themselves are in the statements that were there."""
    claimed = msgspec.structs.replace(selection("a"), generation=1)
    new: list[Instance] = [instance(str(n), selection=claimed) for n in range(20)]
    counted = []
    results = tuple(BuildResult(each.uuid, "a", 1) for each in new)
    keys = [ConfirmAttempt(AttemptKey(each.uuid, 1), "a", 2.0) for each in new]
    for work in (
        lambda: cell.do(AddInstances(tuple(new), 1.0)),
        lambda: ConfirmAttempt.together(cell.connection, keys),
        lambda: cell.do(ReportResults(results, 3.0, "cell1")),
        lambda: cell.do(DeleteInstances(tuple(each.uuid for each in new), 4.0, "cell1")),
    ):
        before = cell.statements
        work()
        counted.append(cell.statements - before)
    assert counted == [4, 3, 3, 3]


def test_past_histories_are_removed_in_time(cell: Tables) -> None:
    for uuid, at in (("old", 10.0), ("young", 20.0)):
        cell.do(AddInstances((instance(uuid, selection=selection("a")),), 1.0))
        cell.do(DeleteInstances((uuid,), 2.0, "cell1"))
        cell.do(note_destroyed((DestroyOrder(uuid, 1, "a"),), 3.0))
        cell.do(forget_destroyed((uuid,), at))
    assert cell.do(prune_past(10.0)) == 0
    assert cell.do(prune_past(20.0)) == 1
    assert cell.do(read_history("old")) is None
    assert cell.history("young").state == GONE


def test_instance_that_is_unknown_has_no_history(cell: Tables) -> None:
    assert cell.do(read_history("i")) is None


def test_instance_that_is_forgotten_twice_has_the_later_history(cell: Tables) -> None:
    """Its fence was trimmed, and the API database was taken back to before its deletion."""
    for begin in (10.0, 20.0):
        cell.do(trim_fences(begin))
        cell.add(begin)
        cell.do(DeleteInstances(("i",), begin + 1, "cell1"))
        cell.do(note_destroyed((DestroyOrder("i", 1, "a"),), begin + 2))
        cell.do(forget_destroyed(("i",), begin + 3))
    assert cell.told()[0] == (ASSIGNED, 20.0)
