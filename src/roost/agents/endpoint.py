"""The interface of a cell's endpoint for the agents of its hosts."""

from collections.abc import Sequence
from typing import Protocol

from roost.agents.types import (
    Confirm,
    Opened,
    Opening,
    Poll,
    Polled,
    ProviderState,
    ProviderWrite,
    SessionKey,
    Written,
)


class CellEndpoint(Protocol):
    """What an agent asks of its cell. Every operation may raise an `AgentProtocolError`."""

    async def open(self, opening: Opening) -> Opened:
        """Open the session of a host. Raises `SessionTaken`."""

    async def poll(self, poll: Poll) -> Polled:
        """Take in a heartbeat, and wait for orders. Raises `SessionLost`, `LateMessage`."""

    async def confirm(self, asked: Confirm) -> bool:
        """Whether a build that is prepared may start; yes again if it was confirmed before.

        Raises `SessionLost`.
        """

    async def read_tree(self, session: SessionKey, root: str) -> Sequence[ProviderState]:
        """The providers of the tree of a node (uuid of its root); none if placement has none.

        Raises `SessionLost`, and `AccessRefused` if the root is another host's.
        """

    async def write_providers(
        self, session: SessionKey, root: str, writes: Sequence[ProviderWrite]
    ) -> Written:
        """Make writes to the tree of a node one after the other, up to the first that placement refuses.

        Raises `SessionLost`, and `AccessRefused` if a provider is not in the tree.
        """

    async def renew_token(self, session: SessionKey) -> str:
        """A new token for the host; the one before is valid until the new one is used.

        Raises `SessionLost`.
        """

    async def close(self, session: SessionKey) -> None:
        """End a session in order, so that the next agent of the host need not wait."""
