"""The interface of a cell's endpoint for the agents of its hosts."""

from typing import Protocol, TypeVar

from roost.machine import Call

T = TypeVar("T")


class CellEndpoint(Protocol):
    """Answers the questions of agents. The transports are a call in this process and HTTPS."""

    async def ask(self, question: Call[T], /) -> T:
        """The answer to one of the questions of `roost.agent.protocol.questions`. Raises
        `AgentProtocolError`."""
