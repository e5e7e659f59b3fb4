"""The events and effects of the commit protocol: the vocabulary of `roost.ledger.commit_protocol`.

Each effect has its events: what can come of it. `Failed` can come of each of them.
"""

from collections.abc import Sequence
from typing import NamedTuple

import msgspec


class Position(NamedTuple):
    """A commit, by sequence number and by the token of its append; token None: before the first commit.

    The number alone does not tell one history from another: a standby that takes over may lack the newest
    commits and soon have others with their numbers.
    """

    seq: int
    token: str | None


# Effects, each followed by its events


class CheckHead(msgspec.Struct, frozen=True):
    """Discard any draft, and read the head and what the batch's consumers hold.

    ``single``, here and below: only the first command of the batch counts.
    """

    single: bool


class VerifyHead(msgspec.Struct, frozen=True):
    """The same, with the draft kept: it was made without a head check."""

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
    """The page was applied.

    ``tokens``: of its commits. ``reloaded``: the replica was loaded anew. ``complete``: the replica is at the
    head, and the holdings of the batch's consumers were read in the same snapshot. ``turn_requests``: of all
    writers, the oldest first.
    """

    tokens: Sequence[str]
    reloaded: bool
    complete: bool
    turn_requests: Sequence[str]


class Draft(msgspec.Struct, frozen=True):
    """Run the commands on the replica. ``unchecked``: without a head check before."""

    single: bool
    unchecked: bool


class Drafted(msgspec.Struct, frozen=True):
    """The commands ran, and the replica shows their changes tentatively.

    ``token``: unique to the draft's append. ``changes``: whether there are any. ``creates_all``: whether no
    command was refused and all their consumers are created; told of unchecked drafts only.
    """

    token: str
    changes: bool
    creates_all: bool


class Append(msgspec.Struct, frozen=True):
    """Append the draft to the replica's position, and withdraw some turn requests with it."""

    token: str
    withdrawn: Sequence[str]


class Appended(msgspec.Struct, frozen=True):
    """The append is durable, and the replica is at it."""


class AppendConflicted(msgspec.Struct, frozen=True):
    """The database has another commit under this number, or another one before it. Nothing was written."""


class AppendUnknown(msgspec.Struct, frozen=True):
    """The connection was lost during COMMIT: the append is written, or is not, or will be."""

    error: Exception


class AppendRefused(msgspec.Struct, frozen=True):
    """A rule of the tables was broken. Nothing was written."""

    error: Exception


class RequestTurn(msgspec.Struct, frozen=True):
    """Put a turn request into the database in place of others."""

    request: str
    withdrawn: Sequence[str]


class TurnRequested(msgspec.Struct, frozen=True):
    """The turn request is in the database, or the database did not answer."""


class WithdrawTurn(msgspec.Struct, frozen=True):
    """Take turn requests out of the database."""

    withdrawn: Sequence[str]


class TurnWithdrawn(msgspec.Struct, frozen=True):
    """They are out, or the database did not answer."""


class Probe(msgspec.Struct, frozen=True):
    """See whether the database answers."""


class Probed(msgspec.Struct, frozen=True):
    """Whether it does."""

    answers: bool


class Pause(msgspec.Struct, frozen=True):
    """Wait for so many seconds."""

    seconds: float


class Paused(msgspec.Struct, frozen=True):
    """The time is over."""


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


# Events that are no effect's own


class BatchReady(msgspec.Struct, frozen=True):
    """Commands wait. ``requires_new``: all of them refuse consumers that exist."""

    size: int
    requires_new: bool


class Failed(msgspec.Struct, frozen=True):
    """The effect ended with an error, and wrote nothing."""

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
    | Failed
)
