"""The states of the commit protocol, and its limits: see `roost.ledger.commit_protocol`."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

import msgspec

from roost.ledger.commit_steps import Drafted


class CommitLimits(NamedTuple):
    """The protocol's limits. All times are in seconds."""

    attempts: int = 50
    """Most drafts of one batch. After them the batch fails with the error of its last append, or with
    `LedgerBusy` if another writer was first."""

    recovery: float = 10.0
    """Time that a batch with an unknown outcome waits for the database to answer again; then it fails."""

    recovery_pause: float = 0.1
    """Time between two probes of a database that does not answer."""

    skip: float = 0.05
    """Time after a head check that found nothing new during which a batch of new consumers may skip the next
    one. Turn requests of other writers are overlooked for this long at most."""

    no_skip: float = 0.25
    """Time during which no head check is skipped after a skipped one turned out to be needed."""

    conflicts: int = 4
    """Conflicts of one batch after which the writer requests a turn, and again after as many more."""

    turn: float = 2.0
    """Time for which a turn request is honoured. After it the writer is assumed to be dead."""

    turn_pause: float = 0.005
    """Time between two head checks while another writer has its turn."""


DEFAULT_LIMITS = CommitLimits()


class Memory(msgspec.Struct, frozen=True):
    """The state that a writer keeps from batch to batch. Times are seconds of the monotonic clock."""

    limits: CommitLimits = DEFAULT_LIMITS
    skip_until: float = 0.0
    no_skip_until: float = 0.0
    requests_seen: Mapping[str, float] = MappingProxyType({})
    """The turn requests of the last delta, each with the time at which this writer first saw it."""


class CommandBatch(msgspec.Struct, frozen=True):
    """One batch under way: the data that all states share.

    ``size``: its commands. ``attempts``: its drafts so far. ``conflicts``: its appends whose number was taken
    already.
    """

    memory: Memory
    size: int
    single: bool = False
    """Only the first command is drafted, because the net effect of all violated a constraint."""
    attempts: int = 0
    conflicts: int = 0
    unknown: tuple[str, ...] = ()
    """The tokens of appends whose outcome is unknown."""
    recover_until: float = 0.0
    """Time of the monotonic clock at which the batch stops waiting for the database."""
    obstacle: Exception | None = None
    """Error of the last append, if its outcome is unknown; None: another writer was first."""
    request: str | None = None
    """The turn request of this writer that may be in the database."""


class Idle(msgspec.Struct, frozen=True):
    """No batch is under way."""

    memory: Memory


class Checking(msgspec.Struct, frozen=True):
    """Waits for a head check."""

    batch: CommandBatch


class Following(msgspec.Struct, frozen=True):
    """Waits for a page of the delta."""

    batch: CommandBatch


class Yielding(msgspec.Struct, frozen=True):
    """Pauses, because another writer requested its turn first."""

    batch: CommandBatch


class Drafting(msgspec.Struct, frozen=True):
    """Waits for a draft; ``unchecked``: it is made without a head check."""

    batch: CommandBatch
    unchecked: bool


class Verifying(msgspec.Struct, frozen=True):
    """Waits for the head check that was skipped before the draft."""

    batch: CommandBatch
    drafted: Drafted


class Appending(msgspec.Struct, frozen=True):
    """Waits for the outcome of an append; ``unchecked``: drafted without a head check."""

    batch: CommandBatch
    token: str
    unchecked: bool


class Requesting(msgspec.Struct, frozen=True):
    """Waits until its turn request is in the database."""

    batch: CommandBatch


class Recovering(msgspec.Struct, frozen=True):
    """Waits until the database answers again, to learn the outcome of an append.

    ``error``: the database's last error. The batch fails with it after `CommitLimits.recovery` seconds.
    """

    batch: CommandBatch
    error: Exception


class Answering(msgspec.Struct, frozen=True):
    """The commands get their outcomes."""

    batch: CommandBatch


class Withdrawing(msgspec.Struct, frozen=True):
    """Waits until its turn request is out of the database."""

    batch: CommandBatch


State = (
    Idle
    | Checking
    | Following
    | Yielding
    | Drafting
    | Verifying
    | Appending
    | Requesting
    | Recovering
    | Answering
    | Withdrawing
)
