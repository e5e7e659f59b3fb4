"""Counts and times the steps of the commit protocol, which is pure and has no metrics itself."""

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
from roost.process.metrics import catalogue as metrics
from roost.process.metrics.instruments import Distribution, counting
from roost.storage import DatabaseUnavailable, OutcomeUnknown

STAGES: Final[Mapping[type[Effect], str]] = {
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
    effect: metrics.STAGE_DURATION.labels(stage) for effect, stage in STAGES.items()
}
_UNCHANGED, _CHANGED, _SKIPPED, _MISSED = (
    metrics.HEAD_CHECKS.labels(result) for result in ("unchanged", "changed", "skipped", "missed")
)
_BY_COMMIT, _BY_TURN = (metrics.OUTRUNS.labels(cause) for cause in ("commit", "turn"))


def count_step(state: State, effect: Effect, event: Event, seconds: float) -> None:
    """Count a step: in ``state`` the writer performed ``effect`` in ``seconds``, with result ``event``."""
    if not counting():
        return
    _DURATIONS[type(effect)].observe(seconds)
    # Each claim takes three of these branches: a match statement takes twice the time.
    if isinstance(effect, Draft):
        if effect.unchecked:
            _SKIPPED.inc()
    elif isinstance(effect, Append):
        _count_append(state, event)
    elif isinstance(effect, CheckHead | VerifyHead) and isinstance(event, HeadChecked):
        unchanged = event.head == event.replica and not event.turn_requested
        if isinstance(effect, CheckHead):
            (_UNCHANGED if unchanged else _CHANGED).inc()
        elif not unchanged or event.consumers_found:
            _MISSED.inc()
    elif isinstance(effect, Pause) and isinstance(state, Yielding):
        _BY_TURN.inc()
    elif isinstance(effect, Fail):
        metrics.FAILED_BATCHES.labels(_cause(effect.error)).inc()


def _count_append(state: State, event: Event) -> None:
    if isinstance(event, Appended):
        metrics.COMMITS.inc()
        return
    if isinstance(event, AppendConflicted):
        _BY_COMMIT.inc()
    if (
        isinstance(event, AppendConflicted | AppendRefused)
        and isinstance(state, Appending)
        and state.unchecked
    ):
        _MISSED.inc()


def _cause(error: Exception) -> str:
    if isinstance(error, OutcomeUnknown):
        return "unknown"
    if isinstance(error, DatabaseUnavailable):
        return "unavailable"
    return "busy" if isinstance(error, LedgerBusy) else "other"
