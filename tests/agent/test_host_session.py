"""The states of a host's agent."""

import pytest

from roost.agent.host_session import (
    OTHER_DATABASE,
    TAKEN_BACK,
    TRANSITIONS,
    SessionEvent,
    SessionState,
    why_doubted,
)
from roost.agent.protocol.types import HistoryPosition

BEFORE = HistoryPosition("database", 1, 2, 3)


@pytest.mark.parametrize("state", SessionState)
@pytest.mark.parametrize("event", SessionEvent)
def test_each_event_changes_one_thing_in_each_state(state: SessionState, event: SessionEvent) -> None:
    """Two polls of a host are under way at times: no event may find a state that does not know it."""
    after = TRANSITIONS[state][event]
    has_session = {SessionEvent.OPENED: True, SessionEvent.ENDED: False}.get(event, state.has_session)
    is_held = {SessionEvent.DOUBTED: True, SessionEvent.ACCEPTED: False}.get(event, state.is_held)
    assert (after.has_session, after.is_held) == (has_session, is_held)


@pytest.mark.parametrize(
    ("before", "now", "reason"),
    [
        (None, BEFORE, None),
        (BEFORE, BEFORE, None),
        (BEFORE, HistoryPosition("database", 1, 3, 0), None),
        (BEFORE, HistoryPosition("database", 1, 2, 2), TAKEN_BACK),
        (BEFORE, HistoryPosition("other", 1, 9, 9), OTHER_DATABASE),
        (BEFORE, HistoryPosition("database", 2, 9, 9), OTHER_DATABASE),
    ],
)
def test_positions_of_one_database_rise(
    before: HistoryPosition | None, now: HistoryPosition, reason: str | None
) -> None:
    assert why_doubted(before, now) == reason
