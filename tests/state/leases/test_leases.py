"""Leases: one holder at a time, fenced by nonce and epoch, taken over only from holders that stand still."""

from contextlib import suppress

import msgspec
import pytest
import sqlalchemy as sa

from roost.state.leases import (
    AcquireLease,
    Lease,
    LeaseTimes,
    Tenure,
    create_leases,
    forget_leases,
    leases_of_kind,
    release_lease,
    renew_lease,
    vacate_all,
    vacate_leases,
    watch_leases,
)
from roost.state.leases.tenure import renew
from roost.storage import ConflictRolledBack, DatabaseUnavailable, OutcomeUnknown
from support.stepped_contexts import SteppedContext


@pytest.fixture
def connection():
    engine = sa.create_engine("sqlite://")
    with engine.begin() as connection:
        create_leases(connection)
        create_leases(connection)
        yield connection
    engine.dispose()


def acquire(holder: str, name: str = "conductor/a/1", seen: Lease | None = None) -> AcquireLease:
    return AcquireLease(
        name=name, kind="conductor", holder=holder, host="a", service_version=3, now=5.0, seen=seen
    )


def test_lease_has_one_holder(connection) -> None:
    first = acquire("A")(connection)
    assert (first.holder, first.epoch, first.counter, first.since) == ("A", 1, 0, 5.0)
    assert acquire("B")(connection) is None
    assert acquire("A")(connection) == first, "a repeated write, as after a lost answer, changes nothing"
    assert renew_lease(first.name, "A", 1, 2)(connection)
    assert not renew_lease(first.name, "B", 1, 3)(connection)
    assert not renew_lease(first.name, "A", 2, 3)(connection)
    [now] = leases_of_kind("conductor")(connection)
    assert now == msgspec.structs.replace(first, counter=2)
    assert renew_lease(first.name, "A", 1, 1)(connection)
    assert leases_of_kind("conductor")(connection) == [now], "a renewal that arrives late is no sign of life"
    assert acquire("B", seen=first)(connection) is None, "it has shown a sign of life"
    second = acquire("B", seen=now)(connection)
    assert (second.holder, second.epoch, second.counter) == ("B", 2, 0)
    assert not renew_lease(first.name, "A", 1, 3)(connection), "the first holder is fenced off"
    assert leases_of_kind("host")(connection) == []


def test_vacant_lease_is_acquired_at_a_higher_epoch(connection) -> None:
    seen = acquire("A")(connection)
    renew_lease(seen.name, "A", 1, 1)(connection)
    assert vacate_leases([seen])(connection) == 0
    [seen] = leases_of_kind("conductor")(connection)
    assert vacate_leases([seen])(connection) == 1
    [vacant] = leases_of_kind("conductor")(connection)
    assert vacant.vacant
    assert not renew_lease(seen.name, "A", 1, 2)(connection)
    again = acquire("A2")(connection)
    assert (again.holder, again.epoch) == ("A2", 3)
    forget_leases([vacant])(connection)
    assert leases_of_kind("conductor")(connection) == [again]


def test_lease_is_given_back_by_its_holder_alone(connection) -> None:
    lease = acquire("A")(connection)
    other = acquire("B", "conductor/b/1")(connection)
    release_lease(lease.name, "B")(connection)
    assert leases_of_kind("conductor")(connection) == [lease, other]
    release_lease(lease.name, "A")(connection)
    assert leases_of_kind("conductor")(connection) == [other]
    vacate_all("conductor")(connection)
    assert leases_of_kind("conductor")(connection) == []


class World(SteppedContext):
    """The context of leases' coroutines on a connection, in simulated time."""

    def __init__(self, connection: sa.Connection) -> None:
        super().__init__()
        self.connection = connection
        self.down = False
        self.answers_lost = 0

    async def read(self, database, work):
        if self.down:
            raise DatabaseUnavailable("gone")
        answer = work(self.connection)
        if self.answers_lost:
            self.answers_lost -= 1
            raise OutcomeUnknown("gone")
        return answer

    write = read

    def run(self, routine) -> None:
        """Run a coroutine to its end, or to its next sleep."""
        with suppress(StopIteration):
            assert routine.send(None).name == "sleep"


def test_process_begins_nothing_while_it_cannot_renew(connection) -> None:
    world, tenure = World(connection), Tenure("conductor/a/1", "conductor", "a")
    assert not tenure.holds(0.0)
    world.run(renew(world, "api", tenure))
    assert (tenure.holder, tenure.epoch) == ("nonce-1", 1)
    assert tenure.holds(7.9)
    assert not tenure.holds(8.0)
    world.now = 6.0
    world.run(renew(world, "api", tenure))
    assert tenure.holds(13.9)
    vacate_leases(leases_of_kind("conductor")(connection))(connection)
    world.run(renew(world, "api", tenure))
    assert (tenure.holder, tenure.epoch) == ("nonce-2", 3), "a taken lease is acquired under a new nonce"


def test_process_whose_answer_was_lost_has_its_lease_at_the_next_try(connection) -> None:
    world, tenure = World(connection), Tenure("conductor/a/1", "conductor", "a")
    world.answers_lost = 1
    with pytest.raises(OutcomeUnknown):
        world.run(renew(world, "api", tenure))
    assert not tenure.holder
    [there] = leases_of_kind("conductor")(connection)
    world.now = 7.0
    world.run(renew(world, "api", tenure))
    assert (tenure.holder, tenure.epoch) == (there.holder, 1)
    [now] = leases_of_kind("conductor")(connection)
    assert now.counter > there.counter, "it stood there for seven seconds"
    assert tenure.holds(14.9)


def test_two_that_make_the_row_of_a_lease_at_the_same_time_do_not_fail(connection) -> None:
    """The second one is run again, and finds the first."""

    class Second:
        """The connection of a transaction that does not see what the first one has not committed yet."""

        def execute(self, statement, *values):
            if statement.is_select:
                acquire("A")(connection)
                statement = statement.where(sa.false())
            return connection.execute(statement, *values)

    with pytest.raises(ConflictRolledBack):
        acquire("B")(Second())
    assert acquire("B")(connection) is None


def test_observer_takes_what_stands_still_and_begins_anew_after_an_outage(connection) -> None:
    world = World(connection)
    dead, living = acquire("A")(connection), acquire("B", "conductor/b/1")(connection)
    watching = watch_leases(world, "api", "conductor", LeaseTimes(forget=20.0))

    def look(seconds: int, lives: bool = True) -> list[str]:
        for _ in range(seconds):
            world.now += 1.0
            if lives:
                renew_lease(living.name, "B", 1, int(world.now))(connection)
            world.run(watching)
        return [lease.holder for lease in leases_of_kind("conductor")(connection)]

    assert look(7) == ["A", "B"]
    world.down = True
    assert look(30, lives=False) == ["A", "B"]
    world.down = False
    assert look(8) == ["A", "B"], "what was seen before the outage counts nothing"
    assert look(1) == ["", "B"]
    assert len(world.woken) == 1
    world.now += 60.0  # the observer itself was stopped
    assert look(8) == ["", "B"]
    assert look(20) == ["B"], "a vacant lease is forgotten"
    assert dead.name != living.name
