"""The messages of an agent to its cell, each with the type of its answer, and the interface of the cell."""

from typing import Generic, Protocol, TypeVar

import msgspec

from roost.agent.protocol.types import (
    Destroyed,
    Guest,
    MovedClaim,
    Opened,
    Polled,
    PowerResult,
    ProviderState,
    ProviderWrite,
    Reshaped,
    SessionKey,
    SetInventories,
    TreeClaim,
    Written,
)
from roost.model.fence import Fence
from roost.model.instance import BuildResult
from roost.model.node import NodeReport

T = TypeVar("T")


class Call(msgspec.Struct, Generic[T], frozen=True):
    """A message of an agent to its cell. ``T`` is the type of the answer."""


class CellEndpoint(Protocol):
    """Answers the questions of agents: by a call in this process, or over HTTPS."""

    async def ask(self, question: Call[T], /) -> T:
        """Return the answer to a question of `roost.agent.protocol.questions`.

        Raises `AgentProtocolError`.
        """


class Opening(Call[Opened], frozen=True, kw_only=True):
    """Requests the session of a host.

    ``nonce``: a new one; a repeated request has the same. ``previous``: earlier nonces of the agent; the
    agent that has the session gets it again at once. ``held``: the reason why the agent carries out no
    orders. ``fence``: in force from before the first request; agents before version 9 have none. Raises
    `SessionTaken`.
    """

    host: str
    nonce: str
    previous: tuple[str, ...] = ()
    service_version: int = 0
    held: str | None = None
    fence: Fence | None = None


class Poll(Call[Polled], frozen=True, kw_only=True, omit_defaults=True):
    """A heartbeat with all changes since the last one that was answered.

    ``counter`` numbers the polls of a session from 1. ``wants_orders``: False if another poll of the agent
    waits for orders at the same time. ``wait_seconds``: the longest time that the endpoint may wait for
    orders. ``reports``: nodes that differ from the reports that the endpoint has acknowledged; ``host`` and
    ``cell`` in them are not read. ``digest``: that of the guests (`roost.agent.protocol.types`), with those
    in the results and without those that were destroyed or stopped; None if the driver cannot list them.
    ``guests``: the list, if the endpoint has asked for it. ``building``, ``destroying``, ``stopping``,
    ``starting``, ``receiving``, ``migrating`` and ``cancelling``: the orders that the agent knows, by
    instance and attempt; the endpoint does not send them again. Of the orders to stop and to start a guest
    only the last one is known. ``held``: the reason why the agent carries out no orders. ``counted``: the
    last poll of the session that the agent knows to be counted; 0: the agent does not check it. ``disabled``:
    whether an operator has disabled the host, as far as the agent knows; the endpoint corrects it at once.
    ``service_version``: the agent's; version 1 did not send it here. ``fenced``: guests that the host has
    stopped by its fence, and that are stopped since; the cell orders which are started again.

    Raises `SessionLost`, `CellTakenBack`, `LateMessage`.
    """

    session: SessionKey
    counter: int
    counted: int = 0
    wait_seconds: float = 0.0
    wants_orders: bool = True
    results: tuple[BuildResult, ...] = ()
    destroyed: tuple[Destroyed, ...] = ()
    powered: tuple[PowerResult, ...] = ()
    reports: tuple[NodeReport, ...] = ()
    digest: int | None = None
    guests: tuple[Guest, ...] | None = None
    building: tuple[tuple[str, int], ...] = ()
    destroying: tuple[tuple[str, int], ...] = ()
    stopping: tuple[tuple[str, int], ...] = ()
    starting: tuple[tuple[str, int], ...] = ()
    receiving: tuple[tuple[str, int], ...] = ()
    migrating: tuple[tuple[str, int], ...] = ()
    cancelling: tuple[tuple[str, int], ...] = ()
    held: str | None = None
    disabled: bool | None = None
    service_version: int = 1
    fenced: tuple[Guest, ...] = ()


class Confirm(Call[bool | None], frozen=True):
    """Asks whether a prepared build may start; a repeated question gets the same answer.

    After True, only this host ends the attempt. None: not yet, the agent is to ask again, such as while the
    guest of the attempt before still runs on the host that the instance moves from. ``waits``: the agent
    understands that answer. ``counted``: as in `Poll`.

    Raises `SessionLost`, `CellTakenBack`.
    """

    session: SessionKey
    instance: str
    attempt: int
    counted: int = 0
    waits: bool = False


class ReadTree(Call[tuple[ProviderState, ...]], frozen=True):
    """Requests the providers of the tree of a node, by the uuid of its root; none if placement has none.

    The answer includes the sharing providers that serve the tree, as further roots, and the existing ones of
    ``sharing`` (uuids) that agents of the cell may change. Raises `SessionLost`, and `AccessRefused` if the
    root belongs to another host.
    """

    session: SessionKey
    root: str
    sharing: tuple[str, ...] = ()


class WriteProviders(Call[Written], frozen=True):
    """Makes writes to the tree of a node one after the other, up to the first that is refused.

    A write to a sharing provider is refused if agents of the cell may not change it, or if it does not exist
    any more. Raises `SessionLost`, and `AccessRefused` for any other provider that is not in the tree.
    """

    session: SessionKey
    root: str
    writes: tuple[ProviderWrite, ...]


class ReadClaims(Call[dict[str, TreeClaim]], frozen=True):
    """Requests all consumers with an allocation of a node's tree, each with all its allocations.

    Raises `SessionLost`, and `AccessRefused` if the root belongs to another host.
    """

    session: SessionKey
    root: str


class Reshape(Call[Reshaped], frozen=True):
    """Changes inventories of a node's tree and moves allocations of its consumers, all or nothing.

    ``inventories`` includes the root's. ``claims``: the claims that move, by consumer. Everything is written
    at the generations that were read, so that a late message changes nothing.

    Raises `SessionLost`, and `AccessRefused` if a provider is not in the tree.
    """

    session: SessionKey
    root: str
    inventories: tuple[SetInventories, ...]
    claims: dict[str, MovedClaim]


class RenewToken(Call[str], frozen=True):
    """Requests a new token of the host. The one before is valid until the first use of the new one.

    Raises `SessionLost`.
    """

    session: SessionKey


class Closing(Call[None], frozen=True):
    """Ends a session in order, so that the next agent of the host need not wait."""

    session: SessionKey
