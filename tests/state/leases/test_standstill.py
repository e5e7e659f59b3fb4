"""Counters that stand still, as an observer sees them."""

from hypothesis import given
from hypothesis import strategies as st

from roost.state.leases import Standstill


@given(
    st.lists(
        st.tuples(st.floats(0, 10), st.floats(0, 3), st.integers(0, 1), st.booleans()),
        min_size=1,
        max_size=30,
    )
)
def test_no_counter_stands_longer_than_it_was_seen_to(looks) -> None:
    """Never more than the time since the counter last changed, and nothing from before a gap or failure."""
    standing: Standstill[str] = Standstill(4.0)
    now, counter, ended = 0.0, 0, 0.0
    since: float | None = None
    for pause, reading, step, fails in looks:
        began = now = now + pause
        now += reading
        if fails:
            standing.interrupted()
            since = None
            continue
        counter += step
        standing.look({"a": counter}, began, now)
        if step or since is None or now - ended > 4.0:
            since = now
        ended = now
        assert standing.still("a") == max(began - since, 0.0)
        assert standing.still("b") == 0.0
