"""What is counted of the steps of the commit protocol."""

from collections.abc import Iterator

import pytest

from roost.ledger.commit_states import (
    Appending,
    Checking,
    CommandBatch,
    Drafting,
    Memory,
    State,
    Verifying,
    Yielding,
)
from roost.ledger.commit_steps import (
    Answered,
    Append,
    AppendConflicted,
    Appended,
    AppendRefused,
    CheckHead,
    Draft,
    Drafted,
    Effect,
    Event,
    Fail,
    HeadChecked,
    Pause,
    Paused,
    Position,
    VerifyHead,
)
from roost.ledger.errors import LedgerBusy
from roost.ledger.step_metrics import count_step
from roost.process.metrics import catalogue as metrics
from roost.process.metrics.instruments import start_counting, stop_counting
from roost.storage import DatabaseFull, OutcomeUnknown

BATCH = CommandBatch(Memory(), 1)
HERE, THERE = Position(1, "a"), Position(2, "b")
DRAFTED = Drafted("t", True, True)


@pytest.fixture(autouse=True)
def counting() -> Iterator[None]:
    start_counting(metrics.CATALOGUE)
    yield
    stop_counting()


def counts() -> dict[tuple[str, ...], float]:
    """What is counted of batches, without zeros and durations."""
    rows = (metrics.COMMITS, metrics.OUTRUNS, metrics.HEAD_CHECKS, metrics.FAILED_BATCHES)
    return {
        (row.name, *labels): series.value
        for row in rows
        for labels, series in row.series.items()
        if series.value
    }


HEAD_CHECKS = "roost_ledger_head_checks_total"
OUTRUNS = "roost_ledger_outruns_total"
FAILED = "roost_ledger_failed_batches_total"
APPENDING, UNCHECKED = Appending(BATCH, "t", False), Appending(BATCH, "t", True)
APPEND = Append("t", ())


@pytest.mark.parametrize(
    ("state", "effect", "event", "counted"),
    [
        (APPENDING, APPEND, Appended(), [("roost_ledger_commits_total",)]),
        (APPENDING, APPEND, AppendConflicted(), [(OUTRUNS, "commit")]),
        (UNCHECKED, APPEND, AppendConflicted(), [(OUTRUNS, "commit"), (HEAD_CHECKS, "missed")]),
        (UNCHECKED, APPEND, AppendRefused(ValueError()), [(HEAD_CHECKS, "missed")]),
        (APPENDING, APPEND, AppendRefused(ValueError()), []),
        (Drafting(BATCH, True), Draft(False, True), DRAFTED, [(HEAD_CHECKS, "skipped")]),
        (Drafting(BATCH, False), Draft(False, False), DRAFTED, []),
        (
            Checking(BATCH),
            CheckHead(False),
            HeadChecked(HERE, HERE, False, False),
            [(HEAD_CHECKS, "unchanged")],
        ),
        (Checking(BATCH), CheckHead(False), HeadChecked(HERE, HERE, True, False), [(HEAD_CHECKS, "changed")]),
        (
            Checking(BATCH),
            CheckHead(False),
            HeadChecked(THERE, HERE, False, False),
            [(HEAD_CHECKS, "changed")],
        ),
        (Verifying(BATCH, DRAFTED), VerifyHead(False), HeadChecked(HERE, HERE, False, False), []),
        (
            Verifying(BATCH, DRAFTED),
            VerifyHead(False),
            HeadChecked(HERE, HERE, False, True),
            [(HEAD_CHECKS, "missed")],
        ),
        (Yielding(BATCH), Pause(0.1), Paused(), [(OUTRUNS, "turn")]),
        (Checking(BATCH), Fail(DatabaseFull(""), 1), Answered(), [(FAILED, "unavailable")]),
        (Checking(BATCH), Fail(OutcomeUnknown(""), 1), Answered(), [(FAILED, "unknown")]),
        (Checking(BATCH), Fail(LedgerBusy(""), 1), Answered(), [(FAILED, "busy")]),
        (Checking(BATCH), Fail(ValueError(), 1), Answered(), [(FAILED, "other")]),
    ],
)
def test_steps(state: State, effect: Effect, event: Event, counted: list[tuple[str, ...]]) -> None:
    count_step(state, effect, event, 0.002)
    assert counts() == dict.fromkeys(counted, 1)
    stages = metrics.STAGE_DURATION.series.values()
    assert sum(sum(stage.counts) for stage in stages) == 1
    assert sum(stage.sum for stage in stages) == 0.002


def test_every_effect_has_a_stage() -> None:
    for effect in Effect.__args__:
        if effect.__name__ != "Finish":
            assert any(effect is kind for kind in _stages()), effect


def _stages() -> list[type]:
    from roost.ledger.step_metrics import STAGES

    return list(STAGES)
