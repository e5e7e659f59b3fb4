"""The interface of a cell's endpoint for the agents of its hosts."""

from typing import Generic, Protocol, TypeVar

import msgspec

T = TypeVar("T")


class Call(msgspec.Struct, Generic[T], frozen=True):
    """A message of an agent to its cell. ``T`` is the type of the answer."""


class CellEndpoint(Protocol):
    """Answers the questions of agents: by a call in this process, or over HTTPS."""

    async def ask(self, question: Call[T], /) -> T:
        """Return the answer to a question of `roost.agent.protocol.questions`.

        Raises `AgentProtocolError`.
        """
