"""Observers who look at different times see the same events: their marks are alike."""

from itertools import pairwise

from msgspec.structs import replace

from roost.conductor.events.observed import LeaseLook, transitions
from roost.state.api_database.events import MarkedEvent
from roost.state.leases import VACANT, Lease

HOST = Lease(
    name="host/a", kind="host", holder="n1", epoch=1, counter=7, host="a", service_version=1, since=10.0
)
AGAIN = replace(HOST, holder="n2", epoch=3, counter=0, since=50.0)
PROCESS = replace(HOST, name="conductor/m/1", kind="conductor", host="m")
TASK = replace(HOST, name="audit", kind="audit", host="m")


def look(*leases: Lease, down: tuple[str, ...] = ()) -> LeaseLook:
    up = {each.name for each in leases if not each.vacant and each.name not in down}
    return LeaseLook({each.name: each for each in leases}, up)


def observed(*looks: LeaseLook, at: float = 1.0) -> list[MarkedEvent]:
    return [
        each
        for before, now in pairwise(looks)
        for each in transitions(before, now, cell="cell1", tasks=("audit",), at=at)
    ]


def told(*looks: LeaseLook) -> list[tuple[str, str | None, str | None]]:
    return [(each.event.kind, each.event.host, each.event.name) for each in observed(*looks)]


def marks(*looks: LeaseLook, at: float) -> list[str]:
    return [each.mark for each in observed(*looks, at=at)]


def test_signs_of_life_are_no_events() -> None:
    later = replace(HOST, counter=9)
    assert told(look(HOST), look(later), look(later)) == []


def test_hosts_and_processes_that_come_and_go() -> None:
    assert told(look(), look(HOST), look(HOST, down=("host/a",)), look(replace(HOST, counter=8))) == [
        ("host_up", "a", None),
        ("host_down", "a", None),
        ("host_up", "a", None),
    ]
    name = PROCESS.name
    assert told(look(), look(PROCESS), look()) == [("service_up", "m", name), ("service_down", "m", name)]
    assert told(look(PROCESS, down=(name,)), look()) == [], "it was down before it was forgotten"


def test_observer_who_sees_the_lease_vacated_sees_the_same_end() -> None:
    vacated = replace(PROCESS, holder=VACANT, epoch=2)
    waited = look(PROCESS), look(PROCESS, down=(PROCESS.name,)), look(vacated)
    late = look(replace(PROCESS, counter=5)), look(vacated)
    assert marks(*waited, at=3.0) == marks(*late, at=4.5)
    assert len(marks(*waited, at=3.0)) == 1


def test_observer_who_misses_the_end_sees_the_same_beginning() -> None:
    closed = replace(HOST, holder=VACANT)
    every = marks(look(HOST), look(closed), look(AGAIN), at=1.0)
    some = marks(look(replace(HOST, counter=6)), look(replace(AGAIN, counter=2)), at=9.0)
    assert every[1:] == some


def test_one_holder_that_stands_still_twice_is_two_events() -> None:
    down = ("host/a",)
    later = replace(HOST, counter=20)
    found = marks(look(HOST), look(HOST, down=down), look(later), look(later, down=down), at=1.0)
    assert len(set(found)) == 3


def test_one_name_in_two_cells_is_two_hosts() -> None:
    [first] = transitions(look(), look(HOST), cell="cell1", tasks=(), at=1.0)
    [second] = transitions(look(), look(HOST), cell="cell2", tasks=(), at=1.0)
    assert first.mark != second.mark


def test_task_that_another_process_has_was_taken() -> None:
    other = replace(TASK, holder="n9", epoch=2, counter=0, host="o", since=60.0)
    vacated = replace(TASK, holder=VACANT, epoch=2)
    assert told(look(TASK), look(vacated), look(other), look(replace(other, counter=4))) == [
        ("task_taken", "o", "audit")
    ]
    assert told(look(TASK), look(), look(other)) == [("task_taken", "o", "audit")]
    assert marks(look(TASK), look(vacated), look(other), at=1.0) == marks(look(TASK), look(other), at=2.0)
