"""The commit protocol, event by event, where the simulation does not look at a single step."""

import pytest

from roost.ledger import LedgerBusy
from roost.ledger.commit_protocol import transition
from roost.ledger.commit_states import CommitLimits, Idle, Memory, State
from roost.ledger.commit_steps import (
    Append,
    AppendConflicted,
    AppendUnknown,
    BatchReady,
    CheckHead,
    DeltaRead,
    Draft,
    Drafted,
    Effect,
    EffectFailed,
    Event,
    Fail,
    HeadChecked,
    Pause,
    Paused,
    Position,
    Probe,
    Probed,
    ReadDelta,
    RequestTurn,
    TurnRequested,
)
from roost.storage import DatabaseUnavailable, OutcomeUnknown

HERE, THERE = Position(1, "a"), Position(2, "b")


class Machine:
    """A state machine that is told events, one a second."""

    def __init__(self, limits: CommitLimits = CommitLimits()) -> None:  # noqa: B008
        self.state: State = Idle(Memory(limits))
        self.now = 0.0

    def on(self, event: Event, seconds: float = 1.0) -> Effect:
        self.now += seconds
        self.state, effect = transition(self.state, event, self.now)
        return effect

    def follow(self, *requests: str) -> Effect:
        """A head check that shows something new, and the delta."""
        assert self.on(HeadChecked(THERE, HERE, False, False)) == ReadDelta(False)
        return self.on(DeltaRead(("b",), False, True, requests))

    def conflict(self, token: str) -> Effect:
        assert isinstance(self.on(Drafted(token, True, False)), Append)
        return self.on(AppendConflicted())


def test_writers_get_their_turns_in_the_order_of_their_requests():
    machine = Machine(CommitLimits(conflicts=1, turn=100.0))
    machine.on(BatchReady(1, False))
    assert machine.follow() == Draft(False, False)
    assert machine.conflict("ours") == RequestTurn("ours", ())
    machine.on(TurnRequested())
    assert isinstance(machine.follow("older", "ours", "newer"), Pause)
    assert machine.on(Paused()) == CheckHead(False)
    assert machine.follow("ours", "newer") == Draft(False, False)
    assert machine.on(Drafted("t2", True, False)) == Append("t2", ("ours",))


def test_a_dead_writer_is_waited_for_once_and_its_request_removed():
    machine = Machine(CommitLimits(turn=10.0))
    machine.on(BatchReady(1, False))
    assert isinstance(machine.follow("dead"), Pause)
    machine.on(Paused(), 5.0)
    assert isinstance(machine.follow("dead"), Pause)
    machine.on(Paused(), 5.0)
    assert machine.follow("dead", "newer") == Pause(CommitLimits().turn_pause)
    machine.on(Paused(), 10.0)
    assert machine.follow("dead") == Draft(False, False)
    assert machine.on(Drafted("t", True, False)) == Append("t", ("dead",))


def test_a_writer_that_always_conflicts_fails_as_busy():
    machine = Machine(CommitLimits(attempts=3, conflicts=100))
    machine.on(BatchReady(2, False))
    for number in range(3):
        machine.follow()
        machine.conflict(f"t{number}")
    failed = machine.follow()
    assert isinstance(failed, Fail)
    assert (type(failed.error), failed.count) == (LedgerBusy, 2)


def unknown(machine: Machine) -> None:
    machine.on(BatchReady(1, False))
    machine.follow()
    machine.on(Drafted("t", True, False))
    assert machine.on(AppendUnknown(OutcomeUnknown("cut off"))) == Probe()


@pytest.mark.parametrize("error", [DatabaseUnavailable("away"), LookupError("a fault of ours")])
def test_after_an_unknown_outcome_no_error_promises_that_nothing_was_written(error):
    machine = Machine()
    unknown(machine)
    machine.on(Probed(True))
    failed = machine.on(EffectFailed(error), 100.0)
    assert isinstance(failed, Fail)
    assert type(failed.error) is OutcomeUnknown


def test_a_database_that_goes_away_again_is_waited_for_until_the_time_is_over():
    machine = Machine(CommitLimits(recovery=10.0))
    unknown(machine)
    machine.on(Probed(True))
    assert isinstance(machine.on(EffectFailed(DatabaseUnavailable("away"))), Pause)
    assert machine.on(Paused()) == Probe()
    assert isinstance(machine.on(Probed(False), 7.0), Fail)


def test_what_failed_last_is_the_reason_of_the_failure():
    machine = Machine(CommitLimits(attempts=2))
    unknown(machine)
    machine.on(Probed(True))
    machine.follow()
    machine.on(Drafted("t2", True, False))
    machine.on(AppendUnknown(OutcomeUnknown("the disk is full")))
    machine.on(Probed(True))
    failed = machine.follow()
    assert isinstance(failed, Fail)
    assert str(failed.error) == "the disk is full"


def test_an_event_that_a_state_does_not_expect_is_a_fault():
    with pytest.raises(AssertionError, match="Idle does not expect Paused"):
        Machine().on(Paused())
