"""The endpoint of a cell's agents, in this process."""

from typing import Any

from roost.agents.errors import MessageRefused
from roost.agents.questions import ReadTree, WriteProviders
from roost.conductor.agents.relay import ProviderRelay
from roost.machine import Question
from roost.placement.interface import Placement


class AgentEndpoint:
    """Answers the questions of agents: `roost.agents.endpoint.CellEndpoint`."""

    def __init__(self, placement: Placement) -> None:
        self._relay = ProviderRelay(placement)

    async def ask(self, question: Question[Any]) -> Any:
        """The answer. Raises `AgentProtocolError`."""
        match question:
            case ReadTree(_, root):
                return await self._relay.read(root)
            case WriteProviders(_, root, writes):
                return await self._relay.write(root, writes)
        raise MessageRefused(f"the endpoint does not answer {type(question).__name__}")
