"""The messages of the agents' protocol. All times are durations in seconds: clocks are never compared."""

import hashlib
from collections.abc import Iterable
from typing import ClassVar, Literal

import msgspec

from roost.model.allocation import Allocations
from roost.model.instance import Instance
from roost.model.instance import OrderKind as OrderKind
from roost.model.instance import PowerResult as PowerResult
from roost.model.inventory import Inventory


class SessionKey(msgspec.Struct, frozen=True):
    """A session of a host. ``nonce``: drawn by its agent. ``epoch``: given by the cell."""

    host: str
    nonce: str
    epoch: int


class HistoryPosition(msgspec.Struct, frozen=True, order=True):
    """The position of a cell's database in time, as a host sees it.

    ``database`` and ``incarnation``: the identity of the database. ``epoch``: that of the host's session.
    ``counter``: the number of the last poll of the session that the database has. While the identity stays,
    positions rise. A lower one means that the database was restored to an earlier state.
    """

    database: str
    incarnation: int
    epoch: int = 0
    counter: int = 0


class Guest(msgspec.Struct, frozen=True):
    """A guest that runs on a host: the instance, and the attempt that built it."""

    instance: str
    attempt: int


class Build(msgspec.Struct, frozen=True, tag=True, omit_defaults=True):
    """An order to build ``instance.attempt`` of an instance, and to leave its guest stopped if
    ``instance.starts`` is False.

    ``seconds``: the build must be confirmed within this time after the agent sent the poll that brought the
    order. ``beside``: the attempt whose stopped guest stays on the host. Only hosts whose reports say that
    they can do that get such orders.
    """

    kind: ClassVar[OrderKind] = "build"

    instance: Instance
    seconds: float
    beside: int | None = None

    @property
    def key(self) -> tuple[str, int]:
        """The instance and the attempt of the order."""
        return self.instance.uuid, self.instance.attempt


PortsReleased = Literal["host", "none", "all", "every", "unbound"]
"""The ports that an instance loses with a guest. ``host``: those that are bound to the guest's host.
``none``: another host has its guest, or is to have it. ``all``: the instance ends. ``every``: the same, and
also if this host has attached none. ``unbound``: none, but those that are bound to the guest's host are bound
to no host, as the instance is shelved. Agents of a service version before that of
`roost.model.service_version.SHELVES` do not know the last two."""


class Destroy(msgspec.Struct, frozen=True, tag=True, omit_defaults=True):
    """An order to destroy the guest of an instance that this attempt, or one before it, has built.

    ``ends_instance``: the instance is deleted; disks of it that hosts share are removed too, and all ports.
    ``keeps``: another attempt whose guest stays on the host.
    """

    kind: ClassVar[OrderKind] = "destroy"

    instance: str
    attempt: int
    ends_instance: bool = False
    ports: PortsReleased = "host"
    keeps: int | None = None

    @property
    def key(self) -> tuple[str, int]:
        """The instance and the attempt of the order."""
        return self.instance, self.attempt


class StopGuest(msgspec.Struct, frozen=True, tag=True):
    """An order to stop the guest that this attempt has built. Its disks stay.

    An agent of a service version before that of `roost.model.service_version.MOVES` cannot read it.
    """

    kind: ClassVar[OrderKind] = "stop"

    instance: str
    attempt: int

    @property
    def key(self) -> tuple[str, int]:
        """The instance and the attempt of the order."""
        return self.instance, self.attempt


class StartGuest(msgspec.Struct, frozen=True, tag=True, omit_defaults=True):
    """An order to start the stopped guest of ``instance.attempt`` of an instance again.

    ``over``: ports that attempts up to this one have bound on other hosts are the guest's again; 0: none.
    Agents that cannot read `StopGuest` cannot read it either.
    """

    kind: ClassVar[OrderKind] = "start"

    instance: Instance
    over: int = 0

    @property
    def key(self) -> tuple[str, int]:
        """The instance and the attempt of the order."""
        return self.instance.uuid, self.instance.attempt


class ReceiveGuest(msgspec.Struct, frozen=True, tag=True):
    """An order to prepare for the guest of ``instance.attempt``, which comes from another host, running.

    The agent asks with `Confirm` until the guest runs here: None: it may come; True: the source has no guest
    any more; False: the attempt is over. ``seconds``: the first question must come within this time after the
    agent sent the poll that brought the order. ``begun``: the source was told to have the guest go, and no
    failure to prepare ends the attempt any more.

    An agent of a service version before that of `roost.model.service_version.LIVE` cannot read it.
    """

    kind: ClassVar[OrderKind] = "receive"

    instance: Instance
    seconds: float
    begun: bool = False

    @property
    def key(self) -> tuple[str, int]:
        """The instance and the attempt of the order."""
        return self.instance.uuid, self.instance.attempt


class MigrateGuest(msgspec.Struct, frozen=True, tag=True):
    """An order to have the guest that this attempt has built go to the host of ``target``, where it runs on.

    Its result is a `PowerResult` as that of an order to stop: the host has no guest any more, or it runs on.
    Agents that cannot read `ReceiveGuest` cannot read it either.
    """

    kind: ClassVar[OrderKind] = "migrate"

    instance: str
    attempt: int
    target: Instance

    @property
    def key(self) -> tuple[str, int]:
        """The instance and the attempt of the order."""
        return self.instance, self.attempt


class CancelMigration(msgspec.Struct, frozen=True, tag=True):
    """An order to end the migration of the guest that this attempt has built. Its result is that of
    `MigrateGuest`."""

    kind: ClassVar[OrderKind] = "cancel"

    instance: str
    attempt: int

    @property
    def key(self) -> tuple[str, int]:
        """The instance and the attempt of the order."""
        return self.instance, self.attempt


Order = Build | Destroy | StopGuest | StartGuest | ReceiveGuest | MigrateGuest | CancelMigration


class Opened(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to `Opening`: the session is the agent's.

    ``position``: that of the host's last session, with epoch and counter 0 if there was none. ``expected``:
    the instances that the cell's database has on the host. ``orders``: destructions of further guests.
    ``poll_seconds``: the longest wait of a poll.
    """

    session: SessionKey
    cell: str
    position: HistoryPosition
    expected: tuple[Instance, ...] = ()
    orders: tuple[Destroy, ...] = ()
    poll_seconds: float = 20.0


class Destroyed(msgspec.Struct, frozen=True, omit_defaults=True):
    """The result of an order to destroy: nothing of the instance up to this attempt is on the host.

    ``guest``: the attempt of the guest that ran until then; None: no guest ran.
    """

    instance: str
    attempt: int
    guest: int | None = None


class Polled(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The answer to a poll: its results and reports are stored.

    ``is_counted``: the database has the poll's counter. A poll that brings nothing need not be counted.

    ``position``: that of the database *before* this poll. ``wants_guests``: the next poll shall have the
    list of guests. ``wants_reports``: the next poll shall have the reports of all nodes. ``accepted``: an
    operator has accepted the state of the cell despite the reason for which the agent carries out no orders.
    ``disabled``: whether an operator has disabled the host; None: that was not read. ``refused``: the nodes
    of the host whose reports the cell does not take (uuid -> reason); None: no statement.
    """

    position: HistoryPosition
    orders: tuple[Order, ...] = ()
    is_counted: bool = True
    wants_guests: bool = False
    wants_reports: bool = False
    accepted: bool = False
    disabled: bool | None = None
    refused: dict[str, str] | None = None


class ProviderState(msgspec.Struct, frozen=True, kw_only=True):
    """A resource provider as placement has it. ``parent``: a uuid; None for a root."""

    uuid: str
    name: str
    parent: str | None
    generation: int
    inventories: dict[str, Inventory] = {}
    traits: frozenset[str] = frozenset()
    aggregates: frozenset[str] = frozenset()


class CreateProvider(msgspec.Struct, frozen=True, tag=True):
    """Create a provider below ``parent``, or as a root."""

    uuid: str
    name: str
    parent: str | None


class MoveProvider(msgspec.Struct, frozen=True, tag=True):
    """Give a provider this name and this parent."""

    uuid: str
    name: str
    parent: str | None


class DeleteProvider(msgspec.Struct, frozen=True, tag=True):
    """Delete a provider without children and allocations."""

    uuid: str


class SetInventories(msgspec.Struct, frozen=True, tag=True):
    """Replace a provider's inventories at the generation that was read.

    New custom resource classes are created.
    """

    uuid: str
    inventories: dict[str, Inventory]
    generation: int


class SetTraits(msgspec.Struct, frozen=True, tag=True):
    """Replace a provider's traits at the generation that was read. New custom traits are created."""

    uuid: str
    traits: frozenset[str]
    generation: int


class SetAggregates(msgspec.Struct, frozen=True, tag=True):
    """Replace a provider's aggregates at the generation that was read."""

    uuid: str
    aggregates: frozenset[str]
    generation: int


# Several writes to one provider in one message name the same generation: each after the first is made at the
# generation that the one before it has set.
ProviderWrite = CreateProvider | MoveProvider | DeleteProvider | SetInventories | SetTraits | SetAggregates


class ProviderRefusal(msgspec.Struct, frozen=True):
    """A refusal of a write by placement. ``conflict``: others have changed the provider since it was read."""

    text: str
    conflict: bool = False


class Written(msgspec.Struct, frozen=True):
    """The first ``done`` writes are made. If ``refusal`` is set, the next one is refused."""

    done: int
    refusal: ProviderRefusal | None = None


class TreeClaim(msgspec.Struct, frozen=True, kw_only=True):
    """All allocations of a consumer that has one of a tree, also those of other providers."""

    allocations: Allocations
    generation: int
    project_id: str
    user_id: str
    consumer_type: str | None = None


class MovedClaim(msgspec.Struct, frozen=True):
    """The allocations of a consumer after a reshape, written at the generation that was read."""

    allocations: Allocations
    generation: int


class Reshaped(msgspec.Struct, frozen=True):
    """The result of a reshape: ``instances`` have moved, or ``refusal`` says why nothing is changed."""

    refusal: ProviderRefusal | None = None
    instances: int = 0


SIZE = 2**64
"""Digests are integers from 0 to ``SIZE`` - 1."""

EMPTY = 0
"""The digest of no guests."""


def digest_of(guests: Iterable[tuple[str, int]]) -> int:
    """Return the digest of guests, each an instance's uuid and the attempt that built the guest."""
    return sum(map(part_of, guests)) % SIZE


def part_of(guest: tuple[str, int]) -> int:
    """Return the part of one guest in the digest."""
    instance, attempt = guest
    text = hashlib.blake2b(f"{instance} {attempt}".encode(), digest_size=8).digest()
    return int.from_bytes(text, "big")
