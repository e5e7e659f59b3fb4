"""A cell's endpoint for agents, run by asyncio: a `roost.agent.protocol.questions.CellEndpoint`."""

import asyncio
import time
from collections.abc import Callable, Collection
from typing import TypeVar

import structlog

from roost.agent.protocol.errors import AgentProtocolError, EndpointUnavailable
from roost.agent.protocol.questions import Call
from roost.conductor.agent_endpoint.endpoint import AgentEndpoint, EndpointTimes
from roost.conductor.agent_endpoint.endpoint_context import AsyncioEndpointContext
from roost.conductor.agent_endpoint.name_owners import NameOwners
from roost.conductor.agent_endpoint.offer_limits import NO_LIMITS, OfferLimits
from roost.conductor.agent_endpoint.relay import ProviderRelay
from roost.conductor.agent_endpoint.sessions import free_all_sessions
from roost.model.record import RecordSink
from roost.placement.interface import Placement
from roost.state.cell_database import Cell
from roost.storage import Database

T = TypeVar("T")

_log = structlog.get_logger()


class AgentService:
    """Answers the questions of the agents of one cell.

    ``sharing``: the names of the sharing providers that they may write. ``api``: the API database, which
    knows the owners of names in all cells; None where this process does not have it.
    ``limits``: the greatest inventories that agents may report.
    """

    def __init__(
        self,
        cell: Cell,
        placement: Placement,
        records: RecordSink | None = None,
        *,
        sharing: Collection[str] = (),
        api: Database | None = None,
        limits: OfferLimits = NO_LIMITS,
        times: EndpointTimes | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._cell = cell
        context = AsyncioEndpointContext(
            lambda _: cell,
            ProviderRelay(placement, sharing, limits),
            NameOwners(api),
            records=records,
            wakes=cell.wakes,
            clock=clock,
        )
        self._endpoint = AgentEndpoint(context, cell.name, times, limits)

    async def ask(self, question: Call[T], /) -> T:
        """Answer one of the questions of `roost.agent.protocol.questions`. Raises `AgentProtocolError`."""
        try:
            return await self._endpoint.answer(question)  # type: ignore[no-any-return]
        except AgentProtocolError:
            raise
        except Exception as error:
            # As over HTTP: a defect of the endpoint must not end the agents.
            _log.exception("a question of an agent was not answered", cell=self._cell.name)
            raise EndpointUnavailable(f"the endpoint failed: {type(error).__name__}") from error

    async def free_sessions(self) -> None:
        """Take the sessions from the agents of an earlier process, which is gone. Raises `StorageError`."""
        await self._cell.write(free_all_sessions())

    async def run(self) -> None:
        """Run the coroutines of the endpoint besides the answers, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for routine in self._endpoint.routines():
                tasks.create_task(routine)
