"""What an agent asks of its cell: the messages, each with the type of its answer."""

from roost.agent.protocol.types import (
    Destroyed,
    Guest,
    MovedClaim,
    Opened,
    Polled,
    ProviderState,
    ProviderWrite,
    Reshaped,
    SessionKey,
    SetInventories,
    TreeClaim,
    Written,
)
from roost.machine import Call
from roost.model.instance import BuildResult
from roost.model.node import NodeReport


class Opening(Call[Opened], frozen=True, kw_only=True):
    """An agent asks for the session of its host.

    ``nonce`` is new; an agent that repeats the question names the same. ``previous``: nonces that the agent
    drew before; the agent that has the session may have it again at once. ``held``: why the agent carries out
    no orders. Raises `SessionTaken`.
    """

    host: str
    nonce: str
    previous: tuple[str, ...] = ()
    service_version: int = 0
    held: str | None = None


class Poll(Call[Polled], frozen=True, kw_only=True, omit_defaults=True):
    """A heartbeat with all that has happened since the last one that was answered.

    ``counter`` numbers the polls of a session from 1. ``wants_orders``: False if another poll of the agent
    waits for orders at the same time. ``wait_seconds``: how long the endpoint may wait for orders.
    ``reports``: nodes that differ from what the endpoint has acknowledged; ``host`` and ``cell`` in them are
    not read. ``digest`` is that of the guests (`roost.agent.protocol.digest`), with those that the results
    tell of and without those that were destroyed; None if the driver cannot list them. ``guests``: the list,
    if the endpoint has asked for it. ``building`` and ``destroying``: the orders that the agent knows, by
    instance and attempt; the endpoint does not send them again. ``held``: why the agent carries out no
    orders. ``counted``: the last poll of the session that the agent knows to be counted, 0 if that does not
    matter to it. ``disabled``: whether an operator has disabled the host, as far as the agent knows; it is
    told at once if it is wrong. ``service_version`` is the agent's; the first one did not tell it here.

    Raises `SessionLost`, `CellTakenBack`, `LateMessage`.
    """

    session: SessionKey
    counter: int
    counted: int = 0
    wait_seconds: float = 0.0
    wants_orders: bool = True
    results: tuple[BuildResult, ...] = ()
    destroyed: tuple[Destroyed, ...] = ()
    reports: tuple[NodeReport, ...] = ()
    digest: int | None = None
    guests: tuple[Guest, ...] | None = None
    building: tuple[tuple[str, int], ...] = ()
    destroying: tuple[tuple[str, int], ...] = ()
    held: str | None = None
    disabled: bool | None = None
    service_version: int = 1


class Confirm(Call[bool], frozen=True):
    """Asks whether a build that is prepared may start; the answer to a question that is repeated is the same.

    From the answer yes on, only this host ends the attempt. ``counted``: as in `Poll`.

    Raises `SessionLost`, `CellTakenBack`.
    """

    session: SessionKey
    instance: str
    attempt: int
    counted: int = 0


class ReadTree(Call[tuple[ProviderState, ...]], frozen=True):
    """Asks for the providers of the tree of a node, by the uuid of its root; none if placement has none.

    The sharing providers that serve the tree are among the answer, as further roots. So are those of
    ``sharing``, by uuid, that are there and that agents of the cell may change. Raises `SessionLost`, and
    `AccessRefused` if the root is another host's.
    """

    session: SessionKey
    root: str
    sharing: tuple[str, ...] = ()


class WriteProviders(Call[Written], frozen=True):
    """Makes writes to the tree of a node one after the other, up to the first that is refused.

    It is refused to write a sharing provider that agents of the cell may not change, and one that is not
    there any more. Raises `SessionLost`, and `AccessRefused` for any other provider that is not in the tree.
    """

    session: SessionKey
    root: str
    writes: tuple[ProviderWrite, ...]


class ReadClaims(Call[dict[str, TreeClaim]], frozen=True):
    """Asks for all consumers with an allocation of a node's tree, each with all that it holds.

    Raises `SessionLost`, and `AccessRefused` if the root is another host's.
    """

    session: SessionKey
    root: str


class Reshape(Call[Reshaped], frozen=True):
    """Changes inventories of a node's tree and moves what consumers hold of it, all or nothing.

    ``inventories`` has the root. ``claims`` are those that move, by consumer. Everything is written at the
    generations that were read, so that a message that comes late changes nothing.

    Raises `SessionLost`, and `AccessRefused` if a provider is not in the tree.
    """

    session: SessionKey
    root: str
    inventories: tuple[SetInventories, ...]
    claims: dict[str, MovedClaim]


class RenewToken(Call[str], frozen=True):
    """Asks for a new token of the host. The one before is valid until the new one is used first.

    Raises `SessionLost`.
    """

    session: SessionKey


class Closing(Call[None], frozen=True):
    """Ends a session in order, so that the next agent of the host need not wait."""

    session: SessionKey
