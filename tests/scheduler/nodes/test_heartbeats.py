"""Which services are alive is what looking at all heartbeats would say, and each change is told."""

from hypothesis import given
from hypothesis import strategies as st

from roost.scheduler.nodes.heartbeats import Heartbeats

TIMES = st.integers(0, 20).map(float)


@given(st.lists(st.tuples(st.integers(0, 4), TIMES | st.none()) | TIMES, max_size=40))
def test_as_looking_at_all(steps: list[tuple[int, float | None] | float]) -> None:
    told: dict[int, bool] = {}
    heartbeats = Heartbeats(told.__setitem__)
    seen: dict[int, float] = {}
    numbers = 0
    for step in steps:
        if not isinstance(step, tuple):
            heartbeats.look(step)
            assert {service for service in seen if told.get(service)} == {
                service for service, at in seen.items() if at >= step
            }
            continue
        # Services get their numbers one after the other.
        service = min(step[0], numbers)
        if step[1] is not None:
            numbers = max(numbers, service + 1)
            seen[service] = step[1]
            heartbeats.put(service, step[1])
        elif seen.pop(service, None) is not None:
            heartbeats.forget(service)
            told.pop(service, None)
        assert all(heartbeats.is_alive(each) == told.get(each, False) for each in range(6))


def test_heartbeats_of_the_living_are_not_told() -> None:
    told = []
    heartbeats = Heartbeats(lambda service, alive: told.append((service, alive)))
    heartbeats.put(0, 10.0)
    heartbeats.look(5.0)
    for now in range(11, 30):
        heartbeats.put(0, float(now))
        heartbeats.look(now - 5.0)
    assert told == [(0, True)]
