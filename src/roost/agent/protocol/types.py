"""The messages of the agents' protocol. All times are durations in seconds: nobody compares clocks."""

import msgspec

from roost.model.allocation import Allocations
from roost.model.instance import Instance
from roost.model.inventory import Inventory


class SessionKey(msgspec.Struct, frozen=True):
    """A session of a host. ``nonce`` was drawn by its agent, ``epoch`` was given by the cell."""

    host: str
    nonce: str
    epoch: int


class Position(msgspec.Struct, frozen=True, order=True):
    """How far a cell's database has come, as a host sees it.

    ``database`` and ``incarnation`` are the identity of the database. ``epoch`` is that of the host's
    session, and ``counter`` the number of the last poll in it that the database knows. While the identity
    stays, positions rise. A lower one tells that the database was taken back to an earlier state.
    """

    database: str
    incarnation: int
    epoch: int = 0
    counter: int = 0


class Guest(msgspec.Struct, frozen=True):
    """A guest that runs on a host: the instance, and the attempt that built it."""

    instance: str
    attempt: int


class Build(msgspec.Struct, frozen=True, tag=True):
    """An order to build ``instance.attempt`` of an instance.

    ``seconds``: the build must be confirmed within this time after the agent sent the poll that brought the
    order.
    """

    instance: Instance
    seconds: float

    @property
    def key(self) -> tuple[str, int]:
        """What the order is about: instance and attempt."""
        return self.instance.uuid, self.instance.attempt


class Destroy(msgspec.Struct, frozen=True, tag=True):
    """An order to destroy the guest that an attempt, or one before it, has made of an instance."""

    instance: str
    attempt: int

    @property
    def key(self) -> tuple[str, int]:
        """What the order is about: instance and attempt."""
        return self.instance, self.attempt


Order = Build | Destroy


class Opened(msgspec.Struct, frozen=True, kw_only=True):
    """The session is the agent's.

    ``position`` is that of the host's last session, with epoch and counter 0 if there was none. ``expected``:
    the instances that the cell's database says are on the host. ``orders``: what there is to be destroyed
    beside them. ``poll_seconds``: the longest wait of a poll.
    """

    session: SessionKey
    cell: str
    position: Position
    expected: tuple[Instance, ...] = ()
    orders: tuple[Destroy, ...] = ()
    poll_seconds: float = 20.0


class Destroyed(msgspec.Struct, frozen=True, omit_defaults=True):
    """An order to destroy is carried out: nothing of the instance up to this attempt is on the host.

    ``guest``: the attempt of the guest that ran until then, None if none did.
    """

    instance: str
    attempt: int
    guest: int | None = None


class Polled(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The answer to a poll: its results and reports are stored.

    ``is_counted``: the database has the poll's counter. A poll that brings nothing need not be counted.

    ``position`` is that of the database *before* this poll. ``wants_guests``: the next poll shall have the
    list of guests. ``wants_reports``: the next poll shall have the reports of all nodes. ``accepted``: an
    operator has accepted the state of the cell for the reason for which the agent carries out no orders.
    ``disabled``: whether an operator has disabled the host; None: it was not looked at. ``refused``: the
    nodes of the host whose reports the cell does not take (uuid -> reason); None: that is not told.
    """

    position: Position
    orders: tuple[Order, ...] = ()
    is_counted: bool = True
    wants_guests: bool = False
    wants_reports: bool = False
    accepted: bool = False
    disabled: bool | None = None
    refused: dict[str, str] | None = None


class ProviderState(msgspec.Struct, frozen=True, kw_only=True):
    """A resource provider as placement has it. ``parent`` is a uuid, None for the root."""

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

    Custom resource classes that are new are made.
    """

    uuid: str
    inventories: dict[str, Inventory]
    generation: int


class SetTraits(msgspec.Struct, frozen=True, tag=True):
    """Replace a provider's traits at the generation that was read. Custom traits that are new are made."""

    uuid: str
    traits: frozenset[str]
    generation: int


class SetAggregates(msgspec.Struct, frozen=True, tag=True):
    """Replace a provider's aggregates at the generation that was read."""

    uuid: str
    aggregates: frozenset[str]
    generation: int


# Several writes to one provider in one message name the same generation: each after the first is made at the
# generation that the one before it has given.
ProviderWrite = CreateProvider | MoveProvider | DeleteProvider | SetInventories | SetTraits | SetAggregates


class ProviderRefusal(msgspec.Struct, frozen=True):
    """Placement refuses a write. ``conflict``: others have changed the provider since it was read."""

    text: str
    conflict: bool = False


class Written(msgspec.Struct, frozen=True):
    """The first ``done`` writes are made. If ``refusal`` is set, the next one is refused."""

    done: int
    refusal: ProviderRefusal | None = None


class TreeClaim(msgspec.Struct, frozen=True, kw_only=True):
    """What a consumer holds that has an allocation of a tree, of other providers too."""

    allocations: Allocations
    generation: int
    project_id: str
    user_id: str
    consumer_type: str | None = None


class MovedClaim(msgspec.Struct, frozen=True):
    """What a consumer holds after a reshape, written at the generation that was read."""

    allocations: Allocations
    generation: int


class Reshaped(msgspec.Struct, frozen=True):
    """The reshape is made, or ``refusal`` says why nothing is changed. ``instances`` were moved."""

    refusal: ProviderRefusal | None = None
    instances: int = 0
