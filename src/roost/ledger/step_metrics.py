"""Counts the steps of the commit protocol, which itself knows no metrics."""

from collections.abc import Mapping
from typing import Final

from roost.ledger.commit_states import Appending, State, Yielding
from roost.ledger.commit_steps import (
    Answer,
    Append,
    AppendConflicted,
    Appended,
    AppendRefused,
    CheckHead,
    Draft,
    Effect,
    Event,
    Fail,
    HeadChecked,
    Pause,
    Probe,
    ReadDelta,
    RequestTurn,
    VerifyHead,
    WithdrawTurn,
)
from roost.ledger.errors import LedgerBusy
from roost.metrics import catalogue as metrics
from roost.metrics.instruments import Distribution, counting
from roost.storage import DatabaseUnavailable, OutcomeUnknown

_STAGES: Final[Mapping[type[Effect], str]] = {
    CheckHead: "check",
    ReadDelta: "follow",
    Draft: "draft",
    VerifyHead: "verify",
    Append: "append",
    RequestTurn: "turn",
    WithdrawTurn: "turn",
    Pause: "pause",
    Probe: "probe",
    Answer: "answer",
    Fail: "answer",
}
_DURATIONS: Final[Mapping[type[Effect], Distribution]] = {
    effect: metrics.STAGE_DURATION.labels(stage) for effect, stage in _STAGES.items()
}
_UNCHANGED, _CHANGED, _SKIPPED, _MISSED = (
    metrics.HEAD_CHECKS.labels(result) for result in ("unchanged", "changed", "skipped", "missed")
)
_BY_COMMIT, _BY_TURN = (metrics.OUTRUNS.labels(cause) for cause in ("commit", "turn"))


def count_step(state: State, effect: Effect, event: Event, seconds: float) -> None:
    """Count a step: in ``state`` the writer performed ``effect`` in ``seconds``, and ``event`` came of it."""
    if not counting():
        return
    _DURATIONS[type(effect)].observe(seconds)
    match effect, event:
        case Append(), Appended():
            metrics.COMMITS.inc()
        case Append(), AppendConflicted() | AppendRefused():
            if isinstance(event, AppendConflicted):
                _BY_COMMIT.inc()
            if isinstance(state, Appending) and state.unchecked:
                _MISSED.inc()
        case Draft(unchecked=True), _:
            _SKIPPED.inc()
        case CheckHead(), HeadChecked(head, replica, turn_requested):
            (_UNCHANGED if head == replica and not turn_requested else _CHANGED).inc()
        case VerifyHead(), HeadChecked(head, replica, turn_requested, consumers_found):
            if head != replica or turn_requested or consumers_found:
                _MISSED.inc()
        case Pause(), _ if isinstance(state, Yielding):
            _BY_TURN.inc()
        case Fail(error), _:
            metrics.FAILED_BATCHES.labels(_cause(error)).inc()


def _cause(error: Exception) -> str:
    if isinstance(error, OutcomeUnknown):
        return "unknown"
    if isinstance(error, DatabaseUnavailable):
        return "unavailable"
    return "busy" if isinstance(error, LedgerBusy) else "other"
