"""The commit protocol: how a batch of commands becomes one commit, as a pure state machine.

`transition` takes a state, an event and the time. It returns the next state and one effect. The caller
performs the effect and feeds its outcome back as the next event, until the effect is `Finish`. The machine
does no I/O, reads no clock and draws no random numbers, so that a test can drive it through any schedule of
writers, networks and failures. `roost.ledger.writer` performs the effects on a database.

      BatchReady
          ├───────────────── the head check may be skipped ──────────────────────┐
          ▼                                                                      ▼
     ┌──────────┐ CheckHead: unchanged                                      ┌──────────┐
     │ Checking │──────────────────────────────────────────────────────────▶│ Drafting │
     └──────────┘                                                           └──────────┘
       ▲  ▲   │ changed, or a turn is requested                              │   │   │ unchecked, and not all
       │  │   ▼                                 ReadDelta: at the head       │   │   │ consumers are created
       │  │ ┌───────────┐────────────────────────────────────────────────────┘   │   ▼
       │  │ │ Following │  (again for each page of the delta)         ▲          │ ┌───────────┐
       │  │ └───────────┘                                             ╵          │ │ Verifying │─▶ Checking
       │  │   │ another writer requested its turn before us        Drafting      │ └───────────┘  if changed
       │  │   ▼                                                                  ▼   │ unchanged
       │  │ ┌──────────┐                                                   ┌───────────┐
       │  └─│ Yielding │                                                   │ Appending │
       │    └──────────┘                                                   └───────────┘
       │                                                                     │   │   │ durable, or nothing
       │◀── conflict, or the net effect broke a rule ────────────────────────┤   │   │ to append
       │    ┌────────────┐                                                   │   │   ▼
       │◀───│ Requesting │◀── conflict for the fourth time ──────────────────┘   │ ┌───────────┐
       │    └────────────┘                                                       │ │ Answering │─▶ Finish
       │    ┌────────────┐                                                       │ └───────────┘
       └────│ Recovering │◀── the outcome is unknown ────────────────────────────┘   (by way of Withdrawing
            └────────────┘                                                            if a request is left)

The outcome of an append is unknown if the connection was lost during COMMIT. The batch then goes back to
`Checking`. If the new commits contain the append's token, the append took effect and the commands get the
answers of that draft. If not, the batch is drafted and appended again under the same sequence number, even if
it has no changes now, because the database accepts only one append of a number. If the server commits the
first append after all, the second one conflicts with it and the token is found; if the second append is
durable, the first one can never be.
"""

from collections.abc import Sequence

import msgspec

from roost.ledger.commit_states import (
    Answering,
    Appending,
    Checking,
    CommandBatch,
    Drafting,
    Following,
    Idle,
    Memory,
    Recovering,
    Requesting,
    State,
    Verifying,
    Withdrawing,
    Yielding,
)
from roost.ledger.commit_steps import (
    Answer,
    Answered,
    Append,
    AppendConflicted,
    Appended,
    AppendRefused,
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
    Finish,
    HeadChecked,
    Pause,
    Paused,
    Probe,
    Probed,
    ReadDelta,
    RequestTurn,
    TurnRequested,
    TurnWithdrawn,
    VerifyHead,
    WithdrawTurn,
)
from roost.ledger.errors import LedgerBusy
from roost.storage import DatabaseUnavailable, OutcomeUnknown

Step = tuple[State, Effect]

_with = msgspec.structs.replace


def may_skip_head_check(memory: Memory, now: float) -> bool:
    """Return whether a batch that requires new consumers may be drafted without a head check.

    A head check finds three things:

    - The commits of other writers. The append detects them as well, because its sequence number is taken.
    - The turn requests of other writers. They wait for `CommitLimits.skip` seconds at most.
    - The allocations of the batch's consumers. If the draft creates all consumers, the append detects as well
      that one of them exists. If it does not (a claim is refused, say), the head is verified before a command
      is answered.

    So no command gets another answer than it would have got after a head check.
    """
    return memory.no_skip_until < now < memory.skip_until


def head_checked(memory: Memory, unchanged: bool, now: float) -> Memory:
    """Return the memory after a head check. ``unchanged``: no commit of another writer, no turn request."""
    return _with(memory, skip_until=now + memory.limits.skip if unchanged else 0.0)


def transition(state: State, event: Event, now: float) -> Step:
    """Return the state after ``event``, and the effect to perform next. ``now``: monotonic seconds.

    Raises: `AssertionError` for an event that the state does not expect.
    """
    match state, event:
        case Idle(memory), BatchReady(size, requires_new):
            batch = CommandBatch(memory, size)
            if requires_new and may_skip_head_check(memory, now):
                return _draft(batch, unchecked=True)
            return _check(batch)
        case Checking(batch), HeadChecked(head, replica, turn_requested):
            unchanged = head == replica and not turn_requested
            batch = _with(batch, memory=head_checked(batch.memory, unchanged, now))
            return _draft(batch) if unchanged else (Following(batch), ReadDelta(batch.single))
        case Following(batch), DeltaRead():
            return _followed(batch, event, now)
        case Yielding(batch), Paused():
            return _check(batch)
        case Drafting(batch, unchecked), Drafted():
            if unchecked and not event.creates_all:
                return Verifying(batch, event), VerifyHead(batch.single)
            return _append(batch, event, unchecked, now)
        case Verifying(batch, drafted), HeadChecked(head, replica, turn_requested, consumers_found):
            if head == replica and not turn_requested and not consumers_found:
                return _append(batch, drafted, True, now)
            return _check(_stop_skipping(batch, now))
        case Appending(batch, token), Appended():
            return _answer(_with(batch, request=None), token)
        case Appending(batch, token), AppendConflicted():
            return _conflicted(_stop_skipping(batch, now), token, now)
        case Appending(batch, token), AppendUnknown(error):
            until = now + batch.memory.limits.recovery
            unknown = (*batch.unknown, token)
            batch = _with(_require_check(batch), unknown=unknown, recover_until=until, obstacle=error)
            return Recovering(batch, error), Probe()
        case Appending(batch, token, unchecked), AppendRefused(error):
            if unchecked:
                return _check(_stop_skipping(batch, now))
            if batch.single or batch.size == 1:
                return _fail(batch, error, 1)
            # The net effect of several commands may violate a constraint that no single command violates
            # (providers that swap their names, say), so each command gets a separate commit.
            return _check(_with(_require_check(batch), single=True))
        case Requesting(batch), TurnRequested():
            return _check(batch)
        case Recovering(batch, error), Probed(answers):
            if answers:
                return _check(batch)
            return _wait_for_database(batch, error, now)
        case Recovering(), Paused():
            return state, Probe()
        case Answering(batch), Answered():
            if batch.request is None:
                return Idle(batch.memory), Finish()
            return Withdrawing(batch), WithdrawTurn((batch.request,))
        case Withdrawing(batch), TurnWithdrawn() | EffectFailed():
            # If the request could not be withdrawn, others honour it for `CommitLimits.turn` seconds.
            return Idle(batch.memory), Finish()
        case (
            (Checking(batch) | Following(batch) | Requesting(batch)),
            EffectFailed(DatabaseUnavailable() as error),
        ) if batch.unknown and now < batch.recover_until:
            return Recovering(batch, error), Pause(batch.memory.limits.recovery_pause)
        case _, EffectFailed(error) if not isinstance(state, Idle | Answering):
            return _fail(_require_check(state.batch), error)
    raise AssertionError(f"{type(state).__name__} does not expect {event}")


def _check(batch: CommandBatch) -> Step:
    return Checking(batch), CheckHead(batch.single)


def _draft(batch: CommandBatch, unchecked: bool = False) -> Step:
    limit = batch.memory.limits.attempts
    if batch.attempts >= limit:
        busy = LedgerBusy(f"other writers were first {limit} times in a row; try again")
        return _fail(batch, busy if batch.obstacle is None else batch.obstacle)
    batch = _with(batch, attempts=batch.attempts + 1)
    return Drafting(batch, unchecked), Draft(batch.single, unchecked)


def _append(batch: CommandBatch, drafted: Drafted, unchecked: bool, now: float) -> Step:
    if not drafted.changes and not batch.unknown:
        # There is nothing to append. The answers, refusals too, are from a checked head, so they are not
        # older than any commit that a client has seen.
        return _answer(batch, drafted.token)
    dead = _dead_requests(batch.memory, now)
    ours = () if batch.request is None else (batch.request,)
    return Appending(batch, drafted.token, unchecked), Append(drafted.token, (*dead, *ours))


def _followed(batch: CommandBatch, delta: DeltaRead, now: float) -> Step:
    for token in delta.tokens:
        if token in batch.unknown:
            return _answer(batch, token)
    if batch.unknown and delta.reloaded:
        return _fail(batch, OutcomeUnknown("the commits that would tell what became of this one are gone"))
    if delta.tokens:
        # Another commit has the number of the appends with an unknown outcome: they can never be durable.
        batch = _with(batch, unknown=())
    if not delta.complete:
        return Following(batch), ReadDelta(batch.single)
    known = batch.memory.requests_seen
    seen = {request: known.get(request, now) for request in delta.turn_requests}
    batch = _with(batch, memory=_with(batch.memory, requests_seen=seen))
    if _others_first(batch, delta.turn_requests, now):
        return Yielding(batch), Pause(batch.memory.limits.turn_pause)
    return _draft(batch)


def _others_first(batch: CommandBatch, requests: Sequence[str], now: float) -> bool:
    """Return whether a live writer requested its turn before this one. ``requests``: the oldest first."""
    before = requests[: requests.index(batch.request)] if batch.request in requests else requests
    seen, turn = batch.memory.requests_seen, batch.memory.limits.turn
    return any(now - seen[request] < turn for request in before)


def _dead_requests(memory: Memory, now: float) -> tuple[str, ...]:
    """Return the turn requests that were first seen at least `CommitLimits.turn` seconds ago."""
    return tuple(name for name, since in memory.requests_seen.items() if now - since >= memory.limits.turn)


def _conflicted(batch: CommandBatch, token: str, now: float) -> Step:
    """Handle an append whose number is taken: after `CommitLimits.conflicts` of them, request a turn.

    To try again is not enough. A number goes to the first writer with a draft on the newest commit. A writer
    whose round trip to the database is longer than the others' whole batch is never first, and two of three
    equal writers can starve the third. So a writer that has lost a few times inserts a request into a table
    that all writers read with the head, and a writer that finds an older request than its own pauses. This is
    no lock: only the key of the commits decides which append succeeds. A writer that dies after its request
    delays the others once, for `CommitLimits.turn` seconds.
    """
    batch = _with(batch, conflicts=batch.conflicts + 1, obstacle=None)
    if batch.conflicts % batch.memory.limits.conflicts:
        return _check(batch)
    ours = () if batch.request is None else (batch.request,)
    batch = _with(batch, request=token)
    return Requesting(batch), RequestTurn(token, (*_dead_requests(batch.memory, now), *ours))


def _wait_for_database(batch: CommandBatch, error: Exception, now: float) -> Step:
    if now >= batch.recover_until:
        return _fail(batch, error)
    return Recovering(batch, error), Pause(batch.memory.limits.recovery_pause)


def _require_check(batch: CommandBatch) -> CommandBatch:
    """Return the batch with the next head check not skipped."""
    return _with(batch, memory=_with(batch.memory, skip_until=0.0))


def _stop_skipping(batch: CommandBatch, now: float) -> CommandBatch:
    """Return the batch with no head check skipped for `CommitLimits.no_skip` seconds."""
    memory = batch.memory
    return _with(batch, memory=_with(memory, skip_until=0.0, no_skip_until=now + memory.limits.no_skip))


def _answer(batch: CommandBatch, token: str) -> Step:
    return Answering(batch), Answer(token)


def _fail(batch: CommandBatch, error: Exception, count: int | None = None) -> Step:
    if batch.unknown and not isinstance(error, OutcomeUnknown):
        # Any other error would promise that nothing was written.
        error = OutcomeUnknown(f"it is unknown whether the changes were written: {error}")
    return Answering(batch), Fail(error, batch.size if count is None else count)
