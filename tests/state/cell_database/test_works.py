"""The works of a cell's database: arrivals behind fences, confirmations, limits, orders, guests, owners."""

from collections.abc import Iterator
from functools import partial
from typing import TypeVar

import msgspec
import pytest
import sqlalchemy as sa
from msgspec.structs import replace

from roost.model.instance import (
    ABANDONED,
    ACTIVE,
    ASSIGNED,
    DELETING,
    DESTROYED,
    FAILED,
    LOST,
    STARTING,
    AttemptKey,
    BuildResult,
    DestroyOrder,
    Instance,
)
from roost.model.spec import Selection
from roost.process.context import Work
from roost.state.cell_database.arrivals import (
    AddInstances,
    Arrival,
    find_instances,
    settle_takeover,
    trim_fences,
)
from roost.state.cell_database.building import ConfirmAttempt, ReportResults, ended_attempts_of, fail_attempts
from roost.state.cell_database.conductor_work import (
    Ownership,
    abandon_instance,
    find_wanting_work,
    reassign_instance,
    take_work,
)
from roost.state.cell_database.deletions import (
    DeleteInstances,
    end_deletions,
    forget_destroyed,
    note_destroyed,
)
from roost.state.cell_database.guests import (
    GuestsReported,
    expected_guests,
    instances_with_unknown_guests,
    unknown_guests_of,
)
from roost.state.cell_database.host_work import give_orders, hosts_with_orders, work_of_hosts
from roost.state.cell_database.hosts import remove_host_row
from roost.state.cell_database.tables import metadata
from roost.state.leases import AcquireLease, leases_of_kind, vacate_leases
from support.cells import NOW, built, failed, instance, selection
from support.state_changes import check_log

T = TypeVar("T")

FIRST, SECOND = AttemptKey("i", 1), AttemptKey("i", 2)


class Tables:
    """The tables of a cell in memory."""

    def __init__(self, connection: sa.Connection) -> None:
        self.connection = connection

    def do(self, work: Work[T]) -> T:
        return work(self.connection)

    def add(self, epoch: int = 0, uuid: str = "i", **facts: object) -> Arrival:
        new = instance(uuid, epoch=epoch, selection=selection("a"), **facts)
        return self.do(AddInstances((new,), NOW))[uuid]

    def report(self, *results: BuildResult) -> None:
        self.do(ReportResults(results, NOW, "cell1"))

    def reassign(self, key: AttemptKey = FIRST, owner: Ownership | None = None) -> bool:
        to: Selection = selection("b")
        return self.do(reassign_instance(key=key, selection=to, alternates=(), at=NOW, owner=owner))

    def one(self, uuid: str = "i") -> Instance:
        return self.do(find_instances((uuid,)))[uuid]

    def state(self, uuid: str = "i") -> str | None:
        found = self.do(find_instances((uuid,)))
        return found[uuid].state if found else None


@pytest.fixture
def cell() -> Iterator[Tables]:
    engine = sa.create_engine("sqlite://")
    with engine.begin() as connection:
        metadata.create_all(connection)
        yield Tables(connection)
        check_log(connection)
    engine.dispose()


def test_late_insert_of_an_earlier_owner_does_not_pass_the_takeover(cell: Tables) -> None:
    assert cell.do(settle_takeover(("i",), 2, NOW)) == {}
    assert cell.add(epoch=1) is Arrival.FENCED
    assert cell.add(epoch=2) is Arrival.ADDED
    assert cell.add(epoch=2) is Arrival.THERE
    assert cell.add(epoch=9) is Arrival.THERE


def test_takeover_adopts_what_has_arrived(cell: Tables) -> None:
    cell.add(epoch=1)
    assert cell.do(settle_takeover(("i", "other"), 2, NOW)) == {"i": cell.one()}
    assert cell.add(epoch=1, uuid="other") is Arrival.FENCED


def test_what_is_deleted_cannot_come_back(cell: Tables) -> None:
    cell.add(epoch=1)
    gone = cell.do(DeleteInstances(("i", "on its way"), NOW, "cell1"))
    assert gone.here == {"i"}
    cell.do(note_destroyed((DestroyOrder("i", 1, "a"),), NOW))
    cell.do(forget_destroyed(("i",), NOW))
    for uuid in ("i", "on its way"):
        assert cell.add(epoch=1000, uuid=uuid) is Arrival.FENCED


def test_fences_of_what_is_not_here_are_removed_in_time(cell: Tables) -> None:
    cell.add(epoch=1)
    cell.do(settle_takeover(("gone",), 5, NOW))
    assert cell.do(trim_fences(NOW)) == 0
    assert cell.do(trim_fences(NOW + 1)) == 1
    assert cell.add(epoch=1) is Arrival.THERE


def test_attempt_is_confirmed_to_its_host_as_long_as_it_is_wanted(cell: Tables) -> None:
    cell.add(alternates="b")
    assert not cell.do(ConfirmAttempt(FIRST, "b", NOW)), "another host"
    assert not cell.do(ConfirmAttempt(SECOND, "a", NOW)), "another attempt"
    assert cell.do(ConfirmAttempt(FIRST, "a", NOW))
    assert cell.do(ConfirmAttempt(FIRST, "a", NOW)), "the first answer may have been lost"
    assert cell.state() == STARTING
    cell.do(fail_attempts((FIRST,), "too long", NOW, "cell1"))
    assert cell.state() == STARTING, "its host may run it: no limit ends it"
    cell.report(built())
    assert not cell.do(ConfirmAttempt(FIRST, "a", NOW)), "it runs"


def test_attempt_that_took_too_long_is_not_confirmed_and_its_host_is_to_clean_up(cell: Tables) -> None:
    cell.add(alternates="b")
    [end] = cell.do(fail_attempts((FIRST, SECOND), "too long", NOW, "cell1"))
    assert (end.host, end.reason, end.result) == ("a", "too long", "failed")
    assert cell.do(fail_attempts((FIRST,), "too long", NOW, "cell1")) == []
    assert not cell.do(ConfirmAttempt(FIRST, "a", NOW))
    cell.report(built())
    assert cell.state() == FAILED
    order = DestroyOrder("i", 1, "a")
    assert cell.do(work_of_hosts(("a",))).orders == [order]
    assert cell.do(hosts_with_orders()) == {"a"}
    assert cell.reassign()
    cell.do(note_destroyed((order,), NOW))
    assert cell.do(hosts_with_orders()) == frozenset()
    assert cell.state() == ASSIGNED, "the order was for another attempt"
    [attempt] = cell.do(ended_attempts_of("i"))
    assert (attempt.attempt, attempt.host, attempt.node, attempt.code) == (1, "a", "node-a", "TimedOut")


def test_cause_that_no_host_can_cure_ends_the_building(cell: Tables) -> None:
    cell.add(alternates="bc")
    cell.report(failed(reason="no IP"))
    cell.reassign()
    result = BuildResult("i", "b", 2, "the image is damaged", code="BadImage", retryable=False)
    cell.report(result)
    one = cell.one()
    assert one.state == ABANDONED
    assert one.reason is not None
    for part in ("attempt 1 on a: no IP", "attempt 2 on b: the image is damaged"):
        assert part in one.reason
    assert [each.code for each in cell.do(ended_attempts_of("i"))] == [None, "BadImage"]


def test_deletion_goes_on_without_a_dead_host_which_keeps_its_order(cell: Tables) -> None:
    cell.add()
    cell.report(built())
    assert cell.do(end_deletions((FIRST,), NOW)) == [], "it is not being deleted"
    cell.do(DeleteInstances(("i",), NOW, "cell1"))
    assert cell.do(end_deletions((SECOND, FIRST), NOW)) == [FIRST]
    assert cell.state() == DESTROYED
    cell.do(forget_destroyed(("i",), NOW))
    assert cell.do(work_of_hosts(("a",))).orders == [DestroyOrder("i", 1, "a")]


def test_attempt_that_took_too_long_is_deleted_on_its_dead_host_with_the_order_that_is_there(
    cell: Tables,
) -> None:
    cell.add()
    cell.do(fail_attempts((FIRST,), "too long", NOW, "cell1"))
    cell.do(DeleteInstances(("i",), NOW, "cell1"))
    assert cell.do(end_deletions((FIRST,), NOW)) == [FIRST]
    assert cell.state() == DESTROYED
    assert cell.do(work_of_hosts(("a",))).orders == [DestroyOrder("i", 1, "a")]


@pytest.mark.parametrize("done", [DestroyOrder("i", 2, "a"), DestroyOrder("i", 1, "b")])
def test_another_hosts_or_attempts_destruction_ends_no_deletion(cell: Tables, done: DestroyOrder) -> None:
    cell.add()
    cell.do(DeleteInstances(("i",), NOW, "cell1"))
    cell.do(note_destroyed((done,), NOW))
    assert cell.state() == DELETING


def test_guest_that_vanished_is_lost_until_it_is_seen_again(cell: Tables) -> None:
    cell.add()
    cell.add(uuid="building")
    cell.report(built())
    assert cell.do(expected_guests("a")) == {"i": 1}
    compared = cell.do(GuestsReported("a", {"stray": 1}, NOW))
    assert (compared.lost, compared.found, compared.unknown) == ({"i"}, frozenset(), {"stray"})
    assert (cell.state(), cell.state("building")) == (LOST, ASSIGNED)
    assert cell.do(GuestsReported("a", {"i": 2}, NOW)).unknown == {"i"}, "a guest of another attempt"
    assert cell.do(GuestsReported("a", {"i": 1}, NOW)).found == {"i"}
    assert (cell.state(), cell.one().reason) == (ACTIVE, None)


def unknown(cell: Tables) -> list[tuple[str, int, str, float]]:
    return [
        msgspec.structs.astuple(each) for each in cell.do(partial(unknown_guests_of, uuids=("i", "stray")))
    ]


def test_guests_that_the_cell_does_not_know_are_kept_while_their_host_has_them(cell: Tables) -> None:
    cell.add()
    cell.report(built())
    cell.do(GuestsReported("a", {"i": 1, "stray": 3, "x" * 37: 1}, NOW))
    assert unknown(cell) == [("stray", 3, "a", NOW)]
    cell.do(GuestsReported("b", {"i": 1}, NOW + 1))
    cell.do(GuestsReported("a", {"i": 1, "stray": 3}, NOW + 2))
    assert unknown(cell) == [("i", 1, "b", NOW + 1), ("stray", 3, "a", NOW)]
    assert cell.do(instances_with_unknown_guests(1)) == ["i"]
    assert cell.do(instances_with_unknown_guests(2, "i")) == ["stray"]
    cell.do(GuestsReported("a", {"i": 1}, NOW + 3))
    assert unknown(cell) == [("i", 1, "b", NOW + 1)]


def test_a_guest_that_was_destroyed_by_an_order_is_forgotten(cell: Tables) -> None:
    cell.do(GuestsReported("a", {"stray": 3}, NOW))
    order = DestroyOrder("stray", 3, "a")
    cell.do(give_orders((order,), NOW))
    assert unknown(cell) == [("stray", 3, "a", NOW)]
    cell.do(note_destroyed((order,), NOW))
    assert unknown(cell) == []


def test_the_unknown_guests_of_a_host_leave_with_it(cell: Tables) -> None:
    cell.do(GuestsReported("a", {"stray": 3}, NOW))
    assert cell.do(remove_host_row("a", None)) is None
    assert unknown(cell) == []


def hold(cell: Tables, *holders: str) -> None:
    """Give each holder a lease."""
    for holder in holders:
        lease = AcquireLease(
            name=f"cell-conductor/{holder}",
            kind="cell-conductor",
            holder=holder,
            host="here",
            service_version=0,
            now=NOW,
        )
        assert cell.do(lease) is not None


def take(cell: Tables, owner: str, most: int = 5) -> list[Instance]:
    """Take what there is, by a conductor that knows nothing of what it has."""
    return cell.do(take_work(owner, tuple(cell.do(find_wanting_work(owner, most)))))


def vacate(cell: Tables, holder: str) -> None:
    """Take the lease of a holder, as of one that was seen to stand still."""
    [seen] = [lease for lease in cell.do(leases_of_kind("cell-conductor")) if lease.holder == holder]
    assert cell.do(vacate_leases([seen])) == 1


def test_one_conductor_at_a_time_works_on_an_instance(cell: Tables) -> None:
    cell.add()
    cell.add(uuid="j")
    hold(cell, "me", "you", "him")
    assert take(cell, "me") == []
    cell.report(failed(), failed("j"))
    [mine] = take(cell, "me", 1)
    [other] = take(cell, "you")
    assert {mine.uuid, other.uuid} == {"i", "j"}
    assert take(cell, "him") == []
    assert cell.one(mine.uuid) == mine
    vacate(cell, "you")
    assert take(cell, "him") == [replace(other, owner="him", owner_epoch=2)]


def test_writes_of_an_owner_that_lost_its_instance_change_nothing(cell: Tables) -> None:
    cell.add()
    cell.report(failed())
    hold(cell, "me", "him")
    [mine] = take(cell, "me")
    assert take(cell, "him") == []
    vacate(cell, "me")
    [his] = take(cell, "him")
    stale = Ownership("me", mine.owner_epoch)
    rewound = Ownership("me", his.owner_epoch)
    for owner in (stale, rewound):
        assert not cell.reassign(owner=owner)
        assert not cell.do(abandon_instance(key=FIRST, reason="no", at=NOW, owner=owner))
    assert cell.one() == his
    assert cell.reassign(owner=Ownership("him", his.owner_epoch))
    assert cell.one().owner is None


def test_work_taken_by_a_write_whose_answer_was_lost_is_taken_again_by_its_owner(cell: Tables) -> None:
    cell.add()
    cell.report(failed())
    hold(cell, "me", "you")
    [lost] = take(cell, "me")
    assert take(cell, "you") == []
    assert take(cell, "me") == [replace(lost, owner_epoch=2)]
