"""The interface of a cell's endpoint for the agents of its hosts."""

from typing import Protocol, TypeVar

from roost.process.context import Call

T = TypeVar("T")


class CellEndpoint(Protocol):
    """Answers the questions of agents: by a call in this process, or over HTTPS."""

    async def ask(self, question: Call[T], /) -> T:
        """Return the answer to a question of `roost.agent.protocol.questions`.

        Raises `AgentProtocolError`.
        """
