"""The events and effects of the commit protocol: the vocabulary of `roost.ledger.commit_protocol`.

Each effect is followed by the events that can result from it. `EffectFailed` can result from every effect.
"""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec


class Position(NamedTuple):
    """A commit, by sequence number and by the token of its append; token None: before the first commit.

    The number alone does not identify a history: a standby that takes over may lack the newest commits and
    soon have others with the same numbers.
    """

    seq: int
    token: str | None


# Effects, each followed by its events


class CheckHead(msgspec.Struct, frozen=True):
    """Discard any draft, and read the head and the holdings of the batch's consumers.

    ``single``, here and below: only the first command of the batch is processed.
    """

    single: bool


class VerifyHead(msgspec.Struct, frozen=True):
    """Check the head as `CheckHead` does, but keep the draft, which was made without a head check."""

    single: bool


class HeadChecked(msgspec.Struct, frozen=True):
    """The database's head and the replica's position.

    ``turn_requested``: whether any writer requests its turn. ``consumers_found``: whether any consumer of the
    batch exists.
    """

    head: Position
    replica: Position
    turn_requested: bool
    consumers_found: bool


class ReadDelta(msgspec.Struct, frozen=True):
    """Read the next page of the delta and bring the replica up to its end."""

    single: bool


class DeltaRead(msgspec.Struct, frozen=True):
    """A page of the delta was applied to the replica.

    ``tokens``: of its commits. ``reloaded``: the replica was loaded anew. ``complete``: the replica is at the
    head, and the holdings of the batch's consumers were read in the same snapshot. ``turn_requests``: of all
    writers, the oldest first.
    """

    tokens: Sequence[str]
    reloaded: bool
    complete: bool
    turn_requests: Sequence[str]


class Draft(msgspec.Struct, frozen=True):
    """Run the commands on the replica. ``unchecked``: no head check was made before."""

    single: bool
    unchecked: bool


class Drafted(msgspec.Struct, frozen=True):
    """The commands ran, and the replica shows their changes tentatively.

    ``token``: unique to the draft's append. ``changes``: whether there are any. ``creates_all``: whether no
    command was refused and all of the commands' consumers are created; always False for checked drafts.
    """

    token: str
    changes: bool
    creates_all: bool


class Append(msgspec.Struct, frozen=True):
    """Append the draft after the replica's position, and withdraw turn requests in the same transaction."""

    token: str
    withdrawn: Sequence[str]


class Appended(msgspec.Struct, frozen=True):
    """The append is durable, and the replica is at its position."""


class AppendConflicted(msgspec.Struct, frozen=True):
    """The database has another commit under this number, or another one before it. Nothing was written."""


class AppendUnknown(msgspec.Struct, frozen=True):
    """The connection was lost during COMMIT. The append may be durable, may become so, or may be lost."""

    error: Exception


class AppendRefused(msgspec.Struct, frozen=True):
    """The append violated a constraint of the tables. Nothing was written."""

    error: Exception


class RequestTurn(msgspec.Struct, frozen=True):
    """Insert a turn request, and delete the withdrawn ones."""

    request: str
    withdrawn: Sequence[str]


class TurnRequested(msgspec.Struct, frozen=True):
    """The turn request is in the database, or the database did not answer."""


class WithdrawTurn(msgspec.Struct, frozen=True):
    """Delete turn requests."""

    withdrawn: Sequence[str]


class TurnWithdrawn(msgspec.Struct, frozen=True):
    """The turn requests are deleted, or the database did not answer."""


class Probe(msgspec.Struct, frozen=True):
    """Read from the database to learn whether it answers."""


class Probed(msgspec.Struct, frozen=True):
    """The result of a probe: whether the database answers."""

    answers: bool


class Pause(msgspec.Struct, frozen=True):
    """Wait for ``seconds``."""

    seconds: float


class Paused(msgspec.Struct, frozen=True):
    """The pause is over."""


class Answer(msgspec.Struct, frozen=True):
    """Give the commands the outcomes of the draft with this token."""

    token: str


class Fail(msgspec.Struct, frozen=True):
    """Give the first ``count`` commands an error."""

    error: Exception
    count: int


class Answered(msgspec.Struct, frozen=True):
    """The commands have their outcomes."""


class Finish(msgspec.Struct, frozen=True):
    """The batch is done."""


# Events that do not result from one particular effect


class BatchReady(msgspec.Struct, frozen=True):
    """A batch of ``size`` commands waits. ``requires_new``: all of them refuse consumers that exist."""

    size: int
    requires_new: bool


class EffectFailed(msgspec.Struct, frozen=True):
    """The effect raised ``error`` and wrote nothing."""

    error: Exception


Effect = (
    CheckHead
    | VerifyHead
    | ReadDelta
    | Draft
    | Append
    | RequestTurn
    | WithdrawTurn
    | Probe
    | Pause
    | Answer
    | Fail
    | Finish
)
Event = (
    BatchReady
    | HeadChecked
    | DeltaRead
    | Drafted
    | Appended
    | AppendConflicted
    | AppendUnknown
    | AppendRefused
    | TurnRequested
    | TurnWithdrawn
    | Probed
    | Paused
    | Answered
    | EffectFailed
)
