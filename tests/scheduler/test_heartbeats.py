"""Who was seen lately is what looking at all heartbeats would say, and whoever dies or revives is noted."""

from hypothesis import given
from hypothesis import strategies as st

from roost.fleet.invalidation_log import InvalidationLog
from roost.scheduler.heartbeats import Heartbeats

TIMES = st.integers(0, 20).map(float)


@given(st.lists(st.tuples(st.integers(0, 4), TIMES) | TIMES, max_size=40))
def test_as_looking_at_all(steps: list[tuple[int, float] | float]) -> None:
    invalidations = InvalidationLog()
    heartbeats = Heartbeats(invalidations)
    seen: dict[int, float] = {}
    known: list[bool] = []
    end = 0
    for step in steps:
        if isinstance(step, tuple):
            # Hosts get their indexes one after the other.
            index = min(step[0], len(seen))
            seen[index] = step[1]
            heartbeats.put(index, step[1])
            continue
        alive = heartbeats.since(step)[: len(seen)].tolist()
        assert alive == [seen[index] >= step for index in range(len(seen))]
        noted = invalidations.since(end)
        end = invalidations.end
        assert noted is not None
        changed = {index for index, is_alive in enumerate(alive) if known[index : index + 1] != [is_alive]}
        dead_from_the_start = {index for index in changed if index >= len(known) and not alive[index]}
        assert changed - dead_from_the_start <= noted
        known = alive


def test_heartbeats_of_the_living_are_not_noted() -> None:
    invalidations = InvalidationLog()
    heartbeats = Heartbeats(invalidations)
    heartbeats.put(0, 10.0)
    heartbeats.since(5.0)
    end = invalidations.end
    for now in range(11, 30):
        heartbeats.put(0, float(now))
        heartbeats.since(now - 5.0)
    assert invalidations.end == end
