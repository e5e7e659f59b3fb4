"""The logs of several databases as one: each event once, each log in its order, by time if it can be."""

from hypothesis import given
from hypothesis import strategies as st

from roost.conductor.events.merge import LogPart, Merged, merged
from roost.state.api_database.event_types import CloudEvent


def event(name: str, at: float) -> CloudEvent:
    return CloudEvent(at=at, kind="host_up", host=name)


def part(log: str, *times: float, end: int | None = None, until: float | None = None) -> LogPart:
    """The events of a log at these times, at every second position."""
    events = [(2 * number, event(f"{log}{number}", at)) for number, at in enumerate(times, 1)]
    if end is None:
        return LogPart(events, 2 * len(times), 2 * len(times), until)
    return LogPart(events, end, end + 10, until)


def names(found: Merged) -> list[str | None]:
    return [each.host for each in found.events]


def test_events_of_several_logs_are_in_order_of_time() -> None:
    found = merged([part("a", 1.0, 4.0), part("b", 2.0, 3.0), part("c")], 9)
    assert names(found) == ["a1", "b1", "b2", "a2"]
    assert (found.positions, found.more) == ([4, 4, 0], False)


def test_what_does_not_go_on_a_page_is_on_the_next_one() -> None:
    found = merged([part("a", 1.0, 4.0), part("b", 2.0, 3.0)], 2)
    assert names(found) == ["a1", "b1"]
    assert (found.positions, found.more) == ([3, 3], True)


def test_a_log_keeps_its_order_whatever_the_clocks_of_its_writers_say() -> None:
    found = merged([part("a", 5.0, 1.0), part("b", 2.0, 6.0)], 9)
    assert names(found) == ["b1", "a1", "a2", "b2"]


def test_later_events_wait_for_a_log_that_is_not_read_through() -> None:
    found = merged([part("a", 1.0, 2.0, end=4, until=2.0), part("b", 1.5, 3.0)], 9)
    assert names(found) == ["a1", "b1", "a2"]
    assert (found.positions, found.more) == ([4, 3], True)
    filtered = merged([part("a", end=50, until=2.0), part("b", 3.0)], 9)
    assert (filtered.events, filtered.positions, filtered.more) == ([], [50, 1], True)


LOGS = st.lists(st.lists(st.integers(0, 9).map(float), max_size=12), min_size=1, max_size=4)


@given(logs=LOGS, most=st.integers(1, 7), looked=st.integers(1, 5))
def test_a_reader_gets_every_event_once_and_each_log_in_order(logs, most: int, looked: int) -> None:
    positions = [0] * len(logs)
    seen: list[str | None] = []
    for _ in range(200):
        parts = []
        for number, times in enumerate(logs):
            rows = [(place, event(f"{number}/{place}", at)) for place, at in enumerate(times, 1)]
            some = [row for row in rows if row[0] > positions[number]][:looked]
            end = some[-1][0] if some else len(times)
            until = some[-1][1].at if some else None
            parts.append(LogPart(some, end, len(times), until))
        found = merged(parts, most)
        seen += names(found)
        assert found.positions != positions or not found.more, "a reader gets on"
        positions = found.positions
        if not found.more:
            break
    for number, times in enumerate(logs):
        mine = [each for each in seen if each is not None and each.startswith(f"{number}/")]
        assert mine == [f"{number}/{place}" for place in range(1, len(times) + 1)]
