"""The commit protocol: how a batch of commands becomes one commit, as a pure state machine.

`transition` takes a state, an event and the time. It returns the next state and one effect. The caller
performs the effect and feeds its outcome back as the next event, until the effect is `Finish`. The machine
does no I/O, reads no clock and draws no random numbers, so that a test can drive it through any schedule of
writers, networks and failures. `roost.ledger.batches` performs the effects on a database.

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

An append whose outcome is unknown (the connection was lost during COMMIT) is neither repeated blindly nor
given up: either would be wrong half of the time. The batch goes back to `Checking`. If the append is in the
history by then, its token tells, and the commands get the answers of that draft. If not, the batch is drafted
and appended again under the same sequence number, even if it has no changes now: the database accepts one
append of a number. Should the server commit the first one later, the second conflicts with it, and the token
tells. After the second one the first can never be committed.
"""

from collections.abc import Sequence

import msgspec

from roost.ledger.commit_states import (
    Answering,
    Appending,
    Batch,
    Checking,
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
    Event,
    Fail,
    Failed,
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
    """Whether a batch that requires new consumers may be drafted without a head check.

    A head check tells three things:

    - The commits of other writers. They show at the append as well, because its sequence number is taken.
    - The turn requests of other writers. They wait for `Limits.skip` at most.
    - What the batch's consumers hold. That they are new shows at the append as well, if the draft creates all
      of them. If it does not (a claim is refused, say), the head is verified before a command is answered.

    So no command gets another answer than it would have got after a head check.
    """
    return memory.no_skip_until < now < memory.skip_until


def head_checked(memory: Memory, unchanged: bool, now: float) -> Memory:
    """The memory after a head check. ``unchanged``: no commit of another writer, and no turn request."""
    return _with(memory, skip_until=now + memory.limits.skip if unchanged else 0.0)


def transition(state: State, event: Event, now: float) -> Step:
    """The state after ``event``, and the effect to perform next. ``now``: seconds of a monotonic clock.

    Raises: `AssertionError` for an event that the state does not expect.
    """
    match state, event:
        case Idle(memory), BatchReady(size, requires_new):
            batch = Batch(memory, size)
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
            batch = _with(_unsure(batch), unknown=unknown, recover_until=until, obstacle=error)
            return Recovering(batch, error), Probe()
        case Appending(batch, token, unchecked), AppendRefused(error):
            if unchecked:
                return _check(_stop_skipping(batch, now))
            if batch.single or batch.size == 1:
                return _fail(batch, error, 1)
            # The net effect of several commands may break a rule that none of them breaks in its turn (names
            # swapped in a circle): each gets a commit of its own.
            return _check(_with(_unsure(batch), single=True))
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
        case Withdrawing(batch), TurnWithdrawn() | Failed():
            # A request that stays behind is honoured for `Limits.turn`, which is bearable.
            return Idle(batch.memory), Finish()
        case (
            (Checking(batch) | Following(batch) | Requesting(batch)),
            Failed(DatabaseUnavailable() as error),
        ) if batch.unknown and now < batch.recover_until:
            return Recovering(batch, error), Pause(batch.memory.limits.recovery_pause)
        case _, Failed(error) if not isinstance(state, Idle | Answering):
            return _fail(_unsure(state.batch), error)
    raise AssertionError(f"{type(state).__name__} does not expect {event}")


def _check(batch: Batch) -> Step:
    return Checking(batch), CheckHead(batch.single)


def _draft(batch: Batch, unchecked: bool = False) -> Step:
    limit = batch.memory.limits.attempts
    if batch.attempts >= limit:
        busy = LedgerBusy(f"other writers were first {limit} times in a row; try again")
        return _fail(batch, busy if batch.obstacle is None else batch.obstacle)
    batch = _with(batch, attempts=batch.attempts + 1)
    return Drafting(batch, unchecked), Draft(batch.single, unchecked)


def _append(batch: Batch, drafted: Drafted, unchecked: bool, now: float) -> Step:
    if not drafted.changes and not batch.unknown:
        # Answered from the head, even if there is nothing to append: a refusal is an answer too, and must not
        # come from a state before what the client knows to be done.
        return _answer(batch, drafted.token)
    dead = _dead_requests(batch.memory, now)
    ours = () if batch.request is None else (batch.request,)
    return Appending(batch, drafted.token, unchecked), Append(drafted.token, (*dead, *ours))


def _followed(batch: Batch, delta: DeltaRead, now: float) -> Step:
    for token in delta.tokens:
        if token in batch.unknown:
            return _answer(batch, token)
    if batch.unknown and delta.reloaded:
        return _fail(batch, OutcomeUnknown("the commits that would tell what became of this one are gone"))
    if delta.tokens:
        # The number of the appends with an unknown outcome is taken by another one.
        batch = _with(batch, unknown=())
    if not delta.complete:
        return Following(batch), ReadDelta(batch.single)
    known = batch.memory.requests_seen
    seen = {request: known.get(request, now) for request in delta.turn_requests}
    batch = _with(batch, memory=_with(batch.memory, requests_seen=seen))
    if _others_first(batch, delta.turn_requests, now):
        return Yielding(batch), Pause(batch.memory.limits.turn_pause)
    return _draft(batch)


def _others_first(batch: Batch, requests: Sequence[str], now: float) -> bool:
    """Whether a live writer requested its turn before this one. ``requests``: the oldest first."""
    before = requests[: requests.index(batch.request)] if batch.request in requests else requests
    seen, turn = batch.memory.requests_seen, batch.memory.limits.turn
    return any(now - seen[request] < turn for request in before)


def _dead_requests(memory: Memory, now: float) -> tuple[str, ...]:
    """The turn requests of writers that have not appended in their time."""
    return tuple(name for name, since in memory.requests_seen.items() if now - since >= memory.limits.turn)


def _conflicted(batch: Batch, token: str, now: float) -> Step:
    """The append's number is taken. Every few conflicts the writer requests a turn.

    Why trying again is not enough: a number goes to the writer that is back first with a draft on the newest
    commit. A writer whose round trip to the database is longer than the others' whole batch is never first;
    two of three equal writers can starve the third as well. So a writer that lost a few times puts a request
    into a table that all writers read along with the head, and a writer that finds an older request than its
    own pauses. This is a courtesy and no lock: the key of the commits alone decides who is next, and a writer
    that dies after its request delays the others once, for `Limits.turn`.
    """
    batch = _with(batch, conflicts=batch.conflicts + 1, obstacle=None)
    if batch.conflicts % batch.memory.limits.conflicts:
        return _check(batch)
    ours = () if batch.request is None else (batch.request,)
    batch = _with(batch, request=token)
    return Requesting(batch), RequestTurn(token, (*_dead_requests(batch.memory, now), *ours))


def _wait_for_database(batch: Batch, error: Exception, now: float) -> Step:
    if now >= batch.recover_until:
        return _fail(batch, error)
    return Recovering(batch, error), Pause(batch.memory.limits.recovery_pause)


def _unsure(batch: Batch) -> Batch:
    """The next head check is made."""
    return _with(batch, memory=_with(batch.memory, skip_until=0.0))


def _stop_skipping(batch: Batch, now: float) -> Batch:
    """No head check is skipped for a while."""
    memory = batch.memory
    return _with(batch, memory=_with(memory, skip_until=0.0, no_skip_until=now + memory.limits.no_skip))


def _answer(batch: Batch, token: str) -> Step:
    return Answering(batch), Answer(token)


def _fail(batch: Batch, error: Exception, count: int | None = None) -> Step:
    if batch.unknown and not isinstance(error, OutcomeUnknown):
        # The other errors promise that nothing was written.
        error = OutcomeUnknown(f"it is unknown whether the changes were written: {error}")
    return Answering(batch), Fail(error, batch.size if count is None else count)
